"""Ask a model on behalf of a derivation, and record each answer before anything is concluded from it.

Because the answer is in the log first, a crash between the answer and its conclusions costs no second call: the next
derivation sends the same request, finds the recorded answer after its cursor, and reads that. Used by the derivers that
ask models; requests go through the agent, so its budgets and the gateway count them.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from everlog.actors.formats import parse_reply
from everlog.actors.models.model_types import is_gguf
from everlog.actors.models.token_usage import usage_of
from everlog.actors.ports.agent_constants import DERIVATION_ATTEMPTS
from everlog.actors.ports.effects import ModelResponse
from everlog.events import (
    BadReply,
    ContextOverflow,
    DerivationKind,
    DerivationReplied,
    Event,
    Record,
    event_of,
    is_erased,
)

Purpose = Literal["facts", "importance", "questions", "insights", "plan", "block"]
"""Purposes of requests, as in `derivation_replied`."""
FILE_ANSWER_TOKENS_MAX = 600
"""Most tokens of an answer by a model in a file of this machine; an endpoint has a limit of its own."""
T = TypeVar("T")


class AskingAgent(Protocol):
    """Interface of the agent that asks."""

    @property
    def turn(self) -> int: ...

    def records(self, from_seq: int) -> Iterator[Record]: ...

    async def rows(self, name: str) -> Sequence[Mapping[str, Any]]: ...

    async def ask(self, name: str, request: bytes) -> ModelResponse: ...

    async def commit(self, events: Sequence[Event], *, turn: int | None, step: int) -> Sequence[Record]: ...


class DerivationModel:
    """A model that one derivation of one generation asks."""

    def __init__(self, agent: AskingAgent, derivation: DerivationKind, model_name: str, generation: int) -> None:
        self._agent, self._derivation, self._generation = agent, derivation, generation
        self.name = model_name

    async def ask(
        self, purpose: Purpose, messages: Sequence[tuple[str, str]], read: Callable[[str], T]
    ) -> tuple[T | None, str]:
        """Return the result of `read` for the text of the answer, and the event id of the answer's record.

        `messages`: (role, text) in order, of the roles `system`, `user` and `assistant`. `read` raises BadReply for an
        unusable answer: it is recorded with that fault, and asked for DERIVATION_ATTEMPTS times in all. Then the result
        is None. Raise ModelError if the model cannot be asked; nothing is recorded then.
        """
        body = request_body(self.name, messages)
        sha256 = hashlib.sha256(body).hexdigest()
        event_id, attempts = "", 0
        for record, event in await self._recorded(purpose, sha256):
            event_id, attempts = record.event_id, attempts + 1
            if not event.fault:
                with suppress(BadReply):  # read by older code, which took what today's refuses
                    return read(_text(event.raw)), event_id
        while attempts < DERIVATION_ATTEMPTS:
            attempts += 1
            answer, found, fault = await self._answer(body, read)
            replied = DerivationReplied(
                derivation=self._derivation, purpose=purpose, fault=fault, model=self.name, usage=usage_of(answer.raw),
                latency_us=answer.latency_us, context_sha256=sha256, context_bytes=len(body), raw=answer.raw,
                deriver=self.name, generation=self._generation,
            )  # fmt: skip
            event_id = (await self._agent.commit([replied], turn=self._agent.turn, step=0))[0].event_id
            if not fault:
                return found, event_id
        return None, event_id

    async def _answer(self, body: bytes, read: Callable[[str], T]) -> tuple[ModelResponse, T | None, str]:
        """Return the answer, what was read from it, and its fault in words; without a fault the last is empty."""
        answer: ModelResponse | None = None
        try:
            answer = await self._agent.ask(self.name, body)
            return answer, read(_text(answer.raw)), ""
        except BadReply as error:
            # An answer that cannot be read was paid for as well, and is kept as far as it arrived.
            return answer or ModelResponse(error.raw, 0), None, str(error) or "It cannot be read."

    async def _recorded(self, purpose: Purpose, sha256: str) -> list[tuple[Record, DerivationReplied]]:
        """Return the recorded answers to the same request since the cursor of this derivation was committed."""
        rows = await self._agent.rows("derivations")
        own = (self._derivation, self._generation)
        after = max((r["seq"] for r in rows if (r["derivation"], r["generation"]) == own), default=0)
        found: list[tuple[Record, DerivationReplied]] = []
        for record in self._agent.records(after + 1):
            if record.type != DerivationReplied.kind or is_erased(record.payload):
                continue
            event = event_of(record)
            if isinstance(event, DerivationReplied) and event.context_sha256 == sha256 and event.purpose == purpose:
                found.append((record, event))
        return found


def request_body(model: str, messages: Sequence[tuple[str, str]]) -> bytes:
    """Return the body of a chat completion without functions. The same messages give the same bytes."""
    body: dict[str, object] = {
        "model": model, "messages": [{"role": role, "content": text} for role, text in messages]
    }  # fmt: skip
    if is_gguf(model):  # a small model that repeats itself would otherwise fill its window with an answer
        body["max_tokens"] = FILE_ANSWER_TOKENS_MAX
    return msgspec.json.encode(body)


def _text(raw: str) -> str:
    """Return the text of an answer without the model's thoughts. Raise BadReply, also for an empty or cut answer."""
    try:
        text = parse_reply.words(raw, window=0).text.strip()  # 0: whatever stopped for length is cut
    except ContextOverflow as error:
        raise BadReply(f"The end of the answer is missing: {error}", raw, kind="cut") from error
    if not text:
        raise BadReply("The answer is empty.", raw)
    return text
