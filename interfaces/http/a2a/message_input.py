"""Read what a client's message says: words for the agent, or a person's decision about a call that waits. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.actors.rules.questions import ANSWERS
from everlog.events import ApprovalRequested, Record, event_of
from everlog.interfaces.http.a2a.shapes import PLAIN_TEXT, A2aMessage, MessagePart, SendConfiguration
from everlog.interfaces.http.a2a.surface import A2aFault

_WORDS = re.compile(r"(?is)\s*(approve|refuse)\b[\s:,.;-]*(.*?)\s*")
_HOW = (
    "The task waits for a person's decision: send the text `approve` or `refuse`, with a reason after it if there is "
    'one, or a data part {"decision": "approve" or "refuse", "call": SEQ, "arguments": {}, "answers": {}, "reason": '
    '""}. Nothing was decided.'
)


class SentDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A person's decision, as a client sends it."""

    decision: Literal["approve", "refuse"]
    call: int = 0
    """Seq of the request; 0: the oldest that waits."""
    arguments: Mapping[str, Any] | None = None
    answers: Mapping[str, Any] | None = None
    """Answers to a question, by the names of its forms."""
    reason: str = ""


def check_wishes(wishes: SendConfiguration) -> None:
    """Raise A2aFault for a wish that cannot be met."""
    if wishes.task_push_notification_config is not None:
        raise A2aFault(
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
            "Tasks are not pushed: read the stream, or ask for the task. The operator can set up webhooks. Nothing was "
            "sent.",
        )  # fmt: skip
    taken = {PLAIN_TEXT, "text/*", "*/*", "text"}
    if wishes.accepted_output_modes and not taken & set(wishes.accepted_output_modes):
        raise A2aFault(
            "CONTENT_TYPE_NOT_SUPPORTED",
            f"Agents answer in {PLAIN_TEXT}; the client takes only {', '.join(wishes.accepted_output_modes)[:200]}. "
            "Nothing was sent.",
        )  # fmt: skip


def words_of(message: A2aMessage) -> str:
    """Return the words of a message. Raises A2aFault for parts that an agent cannot read, and for no words at all."""
    text = "\n".join(map(_part_text, message.parts))
    if not text.strip():
        raise A2aFault("INVALID_PARAMS", "The message says nothing: a part with a text was expected. Nothing was sent.")
    return text


def _part_text(part: MessagePart) -> str:
    if isinstance(part.text, str):
        return part.text
    if part.data is not msgspec.UNSET:
        return msgspec.json.encode(part.data).decode()
    raise A2aFault(
        "CONTENT_TYPE_NOT_SUPPORTED", "Agents read parts with `text` or `data`, no files and no addresses. Nothing was "
        "sent."
    )  # fmt: skip


def decision_of(message: A2aMessage) -> SentDecision:
    """Return the decision that a message gives. Raises A2aFault if it gives none."""
    given = next((part.data for part in message.parts if isinstance(part.data, dict)), None)
    if given is not None:
        try:
            return msgspec.convert(given, SentDecision)
        except msgspec.ValidationError as error:
            raise A2aFault("INVALID_PARAMS", f"{error}. {_HOW}") from error
    found = _WORDS.fullmatch(words_of(message))
    if found is None:
        raise A2aFault("INVALID_PARAMS", _HOW)
    decision: Literal["approve", "refuse"] = "approve" if found[1].lower() == "approve" else "refuse"
    return SentDecision(decision=decision, reason=found[2])


def arguments_of(sent: SentDecision, seq: int, records: Sequence[Record]) -> Mapping[str, Any] | None:
    """Return the arguments with which an approved call runs; None: those of the model. `seq`: of its request, which is
    among `records`.
    """
    if sent.answers is None:
        return sent.arguments
    request = next((event_of(record) for record in records if record.seq == seq), None)
    before = msgspec.json.decode(request.arguments) if isinstance(request, ApprovalRequested) else {}
    return {**(before if sent.arguments is None else sent.arguments), ANSWERS: sent.answers}
