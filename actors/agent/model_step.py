"""Get one reply of the model: fit the context, send the request, read the reply, and verify a first reply.

Every request that is sent leaves a record with its `context_sha256`, whatever the outcome. Used by `turn_runner.py` and
`Agent`. A switch to another model is committed before the next request, because the context takes the model's name from
the log.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.formats import parse_reply, render_request, request_fingerprints
from everlog.actors.formats.reply_preview import PreviewListener
from everlog.actors.memory import block_sync
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.models.failure_classes import failure_of
from everlog.actors.models.model_types import ModelDefaults
from everlog.actors.models.token_usage import usage_of
from everlog.actors.ports.agent_constants import SEND_MESSAGE, SUMMARY_WORDS, SUMMARY_WORDS_SHORTER, THINKING_ALOUD
from everlog.actors.ports.effects import DeltaCallback, ModelResponse
from everlog.actors.prompt import context_fit, function_rules
from everlog.actors.prompt.context import Context, context_of
from everlog.actors.rules.first_message import first_message_fault, is_first
from everlog.events import (
    BadReply,
    BudgetExceeded,
    ContextOverflow,
    ContextTrimmed,
    Event,
    ModelError,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    OverBudget,
    Record,
    ReplyRejected,
    Summary,
    SummaryExpanded,
    TurnAbandoned,
    decode,
)

NO_FUNCTION = "The turn was stopped: the rules of this agent leave no function that may be called next."


class AcceptedReply(msgspec.Struct, frozen=True):
    """A reply that was accepted, and the context that it answers."""

    context: Context
    reply: ModelReply
    cause: str


class StepAgent(Protocol):
    """Interface of the agent that `ModelCaller` and `TurnRunner` use."""

    agent_id: str
    head: int
    blocks: BlockClient
    schemas: Mapping[str, str]
    previews: PreviewListener

    async def ask(self, name: str, request: bytes, on_delta: DeltaCallback | None = None) -> ModelResponse: ...

    async def with_budgets(self, events: Sequence[Event]) -> Sequence[Event]: ...

    def known_of(self, model: str) -> ModelDefaults: ...

    async def rows(
        self, name: str, as_of: int | None = None, turn: int | None = None
    ) -> Sequence[Mapping[str, Any]]: ...

    async def folded(self, kind: Any, name: str) -> Any: ...

    async def commit(
        self, events: Sequence[Event] | Callable[[int], Sequence[Event]], *, turn: int | None, step: int,
        cause: str | None = None, at: int | None = None,
    ) -> Sequence[Record]: ...  # fmt: skip


class ModelCaller:
    """Asks the model on behalf of one agent."""

    __slots__ = ("_agent",)

    def __init__(self, agent: StepAgent) -> None:
        self._agent = agent

    async def context(self, turn: int, as_of: int | None = None) -> Context:
        """Return the context of a call in `turn`, without inputs that wait for a later turn. `as_of` is inclusive."""
        upto = self._agent.head if as_of is None else as_of
        rows = await self._agent.rows("context_window", as_of, turn)
        return context_of(self._agent.agent_id, upto, rows, turn)

    async def think(self, turn: int, step: int, cause: str) -> AcceptedReply | None:
        """Return the next accepted reply; None if the turn was abandoned because the context cannot fit.

        Raises the ModelError that ended the turn.
        """
        attempt, overflowed = 0, False
        while True:
            try:
                fitted = await self.fitted(turn, step, overflowed=overflowed)
            except ModelError as error:  # the request for a summary failed
                if await self._switched(error, await self.context(turn), {}, turn, step, cause):
                    continue
                await self._failed(error, {}, turn, step, cause)
                raise
            if fitted is None:
                return None
            overflowed = False
            context, request = fitted
            body = request.body
            attempt += 1
            sent = request_fingerprints.naming_fields(body, request_fingerprints.of_request(context, request))
            answer: ModelResponse | None = None
            try:
                answer = await self._answer(context, body, turn, step)
                reply = parse_reply.reply(answer.raw, context.config.window, context.config.calling)
            except ContextOverflow as error:
                overflowed = True
                known = _answer_fields(answer, None, context.model)
                rejected = ReplyRejected(text=str(error), attempt=attempt, **sent, **known)
                await self._agent.commit([rejected], turn=turn, step=step, cause=cause)
                continue
            except ModelError as error:
                # The switch is committed before the next request: the context takes the model's name from the log.
                if await self._switched(error, context, sent, turn, step, cause):
                    continue
                other = context.model != context.config.model or _raw(error)
                asked = {"model": context.model} if other else {}
                await self._failed(error, {**sent, **asked}, turn, step, cause)
                raise
            reply = msgspec.structs.replace(reply, latency_us=answer.latency_us, attempts=answer.attempts, **sent)
            # A reply read by guessing is not acted on. It is refused once; the model's second reply is taken as read.
            if reply.lossy and context.refused is None:
                again = _rejected_reply(
                    reply, parse_reply.lossy_fault(reply), attempt, shown=True, said=parse_reply.said(answer.raw)
                )
                await self._agent.commit([again], turn=turn, step=step, cause=cause)
                continue
            aloud = context.model.startswith(THINKING_ALOUD)
            fault = first_message_fault(reply, aloud=aloud) if self._verifies(context) else None
            if fault is None:
                return AcceptedReply(context, reply, cause)
            await self._agent.commit([_rejected_reply(reply, fault, attempt)], turn=turn, step=step, cause=cause)
            if attempt >= context.config.first_attempts_max:
                gave_up = ModelError(
                    f"The model gave no acceptable first message in {attempt} attempts; the last fault was: {fault}. "
                    "Use another model, or switch the check off with --no-verify-first.",
                    kind="rejected",
                )
                await self._failed(gave_up, sent, turn, step, cause)
                raise gave_up

    async def _answer(self, context: Context, body: bytes, turn: int, step: int) -> ModelResponse:
        """Ask the model, or the rule of a group, which stands in its place."""
        if context.config.members:  # most agents are no groups
            from everlog.actors.groups.group_reply import answer_as_group

            return await answer_as_group(self._agent, context.config, turn)
        return await self._agent.ask(context.model, body, self._preview(context, turn, step))

    def _preview(self, context: Context, turn: int, step: int) -> DeltaCallback | None:
        """Return the callback for the chunks of a reply; None also if the words of a message would be refused."""
        if context.config.rules:
            names = {function.name for function in function_rules.offered(context.config, context.rules)}
            if SEND_MESSAGE not in names:
                return None
        return self._agent.previews.preview_for(turn, step, context.config)

    async def _switched(
        self, error: ModelError, context: Context, sent: Mapping[str, Any], turn: int, step: int, cause: str
    ) -> bool:
        """Switch to the fallback model for the rest of the turn if the error allows it. Return True if switched."""
        fallback = context.config.fallback
        if not fallback or (context.switch and context.switch.to == fallback) or not failure_of(error).falls_back:
            return False
        known = self._agent.known_of(fallback)
        switched = ModelSwitched(
            text=str(error), to=fallback, model=context.model, failure=error.kind, attempts=error.attempts,
            calling=known.calling or "native", window=known.window or context.config.window,
            sampling=known.sampling or context.config.sampling, stream=bool(known.stream),
            raw=_raw(error), usage=usage_of(_raw(error)), **sent,
        )  # fmt: skip
        await self._agent.commit([switched], turn=turn, step=step, cause=cause)
        return True

    def _verifies(self, context: Context) -> bool:
        return context.config.verify_first and is_first(context)

    async def _failed(self, error: ModelError, sent: Mapping[str, Any], turn: int, step: int, cause: str) -> None:
        await self._agent.commit([_ending(error, sent)], turn=turn, step=step, cause=cause)

    async def fitted(
        self, turn: int, step: int, *, overflowed: bool = False
    ) -> tuple[Context, render_request.Request] | None:
        """Fit the context into the window, by as many measures as needed. Return the context and the request.

        Returns None if the turn had to be abandoned. Each measure is committed and the context is read again from the
        log, so that the request follows from the log alone.
        """
        looked = False
        while True:
            context = await self.context(turn)
            if context.config.rules and not function_rules.offered(context.config, context.rules):
                await self._agent.commit([TurnAbandoned(text=NO_FUNCTION, reason="rules")], turn=turn, step=step)
                return None
            # Shared blocks are looked up once: steady edits of others must not keep this request from being sent.
            newer = [] if looked else await block_sync.newer(context.blocks, self._agent.blocks)
            looked = True
            if newer:
                await self._agent.commit(newer, turn=turn, step=step)
                continue
            request = render_request.compose(context, self._agent.schemas)
            tokens, limit = context_fit.tokens_of(len(request.body), context), context_fit.tokens_max(context)
            if tokens <= limit and not overflowed:
                return context, request
            overflowed = False
            match context_fit.measure(context, max(tokens, limit + 1)):
                case context_fit.SummaryMeasure() as cut:
                    await self.summarize(context, cut, turn, step)
                case ContextTrimmed() as trimmed:
                    await self._agent.commit([trimmed], turn=turn, step=step)
                case TurnAbandoned() as abandoned:
                    await self._agent.commit([abandoned], turn=turn, step=step)
                    return None

    async def summarize_now(self, turn: int) -> bool:
        """Summarize as an overflow would. Return False if there is nothing to summarize."""
        context = await self.context(turn)
        cut = context_fit.summarize(context)
        if cut is None:
            return False
        await self.summarize(context, cut, turn, 0)
        return True

    async def summarize(self, context: Context, cut: context_fit.SummaryMeasure, turn: int, step: int) -> None:
        """Replace the messages that `cut` covers by a summary: the model's, else a shorter one, else a mechanical one.

        If the summary model fails, the agent's own model is asked, unless the error rules that out. Raises ModelError
        if that model fails too.
        """
        covered = [m for m in context.messages if m.seq <= cut.covers_to]
        room = context_fit.summary_room(context, cut.covers_to)
        for attempt, words in enumerate((SUMMARY_WORDS, SUMMARY_WORDS_SHORTER), start=1):
            asked = (context, cut.covers_to, words, context_fit.transcript_bytes_max(context))
            body = render_request.summary_request(*asked)
            sent = request_fingerprints.naming_fields(
                body, request_fingerprints.of_summary_request(render_request.summary_parts(*asked))
            )
            try:
                fault, answer, reply = await self._summary(body, context)
            except ModelError as error:
                if context.summarizer == context.model or not failure_of(error).falls_back:
                    # Committed first: the recursive call reads the switch from the log, asks the other model, and so
                    # ends.
                    raise
                await self._agent.commit([_to_own_model(error, context, sent)], turn=turn, step=step)
                await self.summarize(await self.context(turn), cut, turn, step)
                return
            text = reply.text.strip() if reply else ""
            fault = fault or context_fit.summary_fault(text, room)
            known = {**sent, **_answer_fields(answer, reply, context.summarizer)}
            if fault is None:
                await self._commit_summary(context, cut, covered, turn, step, text=text, words=words, **known)
                return
            rejected = ReplyRejected(
                text=fault, purpose="summary", attempt=attempt, covers_to=cut.covers_to, words=words,
                **known,
            )  # fmt: skip
            await self._agent.commit([rejected], turn=turn, step=step)
        text = context_fit.mechanical(context, covered, room)
        await self._commit_summary(context, cut, covered, turn, step, text=text, method="mechanical")

    async def _summary(
        self, body: bytes, context: Context
    ) -> tuple[str | None, ModelResponse | None, ModelReply | None]:
        """Ask for a summary. Return the fault in words or None, the response, and the reply. Raise ModelError."""
        answer: ModelResponse | None = None
        try:
            answer = await self._agent.ask(context.summarizer, body)
            return None, answer, parse_reply.words(answer.raw, context.config.window, context.config.calling)
        except (ContextOverflow, BadReply) as error:
            return str(error), answer, None

    async def _commit_summary(
        self,
        context: Context,
        cut: context_fit.SummaryMeasure,
        covered: Sequence[object],
        turn: int,
        step: int,
        **fields: Any,
    ) -> None:
        before = context.summary.event if context.summary else None
        hidden_before = before.hidden if isinstance(before, Summary | SummaryExpanded) else 0
        hidden = hidden_before + len(covered)
        summary = Summary(
            covers_from=cut.covers_from,
            covers_to=cut.covers_to,
            kept_from=cut.kept_from,
            hidden=hidden,
            total=hidden_before + len(context.messages),
            summarized=len(covered),
            **fields,
        )
        await self._agent.commit([summary], turn=turn, step=step)

    async def expand(self, turn: int) -> bool:
        """Undo the newest summary: its messages are visible again. Return False if there is none.

        The summary before it, if any, holds again.
        """
        summaries = sorted(await self._agent.rows("summaries"), key=lambda row: row["seq"])
        standing: list[tuple[int, Summary]] = []
        for row in summaries:
            event = decode(row["type"], row["version"], row["text"], row["payload"])
            if isinstance(event, Summary):
                standing.append((row["seq"], event))
            elif standing:
                standing.pop()
        if not standing:
            return False
        seq, last = standing.pop()
        before = standing[-1][1] if standing else None
        expanded = SummaryExpanded(
            text=before.text if before else "",
            summary_seq=seq,
            kept_from=before.kept_from if before else min(last.covers_from, last.kept_from),
            hidden=before.hidden if before else 0,
            total=last.total,
            summarized=before.summarized if before else 0,
        )
        await self._agent.commit([expanded], turn=turn, step=0)
        return True


def _ending(error: ModelError, sent: Mapping[str, Any]) -> Event:
    """Return the event that ends a turn without a reply. Over a budget no request was sent, so none is named."""
    if isinstance(error, OverBudget):
        return BudgetExceeded(text=str(error), budget=error.budget, limit=error.limit, spent=error.spent)
    return ModelFailed(
        text=str(error),
        failure=error.kind,
        attempts=error.attempts,
        raw=_raw(error),
        usage=usage_of(_raw(error)),
        **sent,
    )


def _to_own_model(error: ModelError, context: Context, sent: Mapping[str, Any]) -> ModelSwitched:
    """Return the switch from the summary model, which failed, to the agent's own for the rest of the turn."""
    config = context.config
    return ModelSwitched(
        text=str(error), to=config.model, model=context.summarizer, failure=error.kind, attempts=error.attempts,
        calling=config.calling, window=config.window, sampling=config.sampling, stream=config.stream, **sent,
    )  # fmt: skip


def _raw(error: ModelError) -> str:
    """Return the raw reply that came with an error; empty if none came."""
    return error.raw if isinstance(error, BadReply) else ""


def _answer_fields(answer: ModelResponse | None, reply: ModelReply | None, asked: str) -> dict[str, Any]:
    """Return the fields that record a response, as far as there is one; of an unread reply the model is `asked`."""
    known: dict[str, Any] = {}
    if answer is not None:
        known |= {"raw": answer.raw, "latency_us": answer.latency_us, "model": asked, "usage": usage_of(answer.raw)}
    if reply is not None:
        known |= {"model": reply.model, "usage": reply.usage}
    return known


def _rejected_reply(
    reply: ModelReply, fault: str, attempt: int, *, shown: bool = False, said: str = ""
) -> ReplyRejected:
    return ReplyRejected(
        shown=shown,
        said=said,
        text=fault,
        attempt=attempt,
        usage=reply.usage,
        model=reply.model,
        latency_us=reply.latency_us,
        context_sha256=reply.context_sha256,
        context_bytes=reply.context_bytes,
        parts=reply.parts,
        raw=reply.raw,
    )
