"""Make spans of OpenTelemetry from records of an agent: one a turn, one a step, one a model call, one a function.

Used by `everlog traces`. Names and attributes are those of the semantic conventions for generative AI, version 0.1.0.
Pure: the same records give the same spans with the same ids. The trace of a turn has the id of the event that opened
the turn, so that a log and a trace find each other. Turns that are not finished have no spans yet. Words are in the
spans only if they are asked for, and words that were erased are in no log.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from everlog.actors.agent.fork_agent import open_turns_of
from everlog.actors.prompt.context import is_imported
from everlog.actors.reports import span_attributes as genai
from everlog.actors.reports.dataset import TimeSpan
from everlog.actors.reports.span_attributes import AttributeValue, ModelRequestEvent
from everlog.events import (
    INPUTS,
    AgentConfigured,
    AgentCreated,
    AnyEvent,
    Call,
    FunctionResult,
    FunctionStarted,
    MessageSent,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    Record,
    Summary,
    UserMessage,
    event_of,
    is_erased,
)

ALWAYS = TimeSpan()


class TraceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One span. Times are microseconds UTC."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    parent_id: str = ""
    """Span that this one is a part of; empty for a root."""
    name: str
    kind: Literal["internal", "client"] = "internal"
    start: int
    end: int
    attributes: Mapping[str, AttributeValue]
    error: str = ""
    """Class of the failure; empty if it succeeded."""
    message: str = ""
    """Words on the failure, if words were asked for."""


class _Placed(NamedTuple):
    """A record, its event, and the configuration that held then."""

    record: Record
    event: AnyEvent
    config: AgentConfigured | None


def spans_of(
    agent_id: str,
    records: Iterable[Record],
    *,
    name: str = "",
    config: AgentConfigured | None = None,
    within: TimeSpan = ALWAYS,
    content: bool = False,
) -> Iterator[TraceSpan]:
    """Yield the spans of the turns that were opened within a time, and of the model calls outside of turns.

    `records`: those of the agent in order, from any seq on; `config`: configuration before the first one. Records of an
    ancestor are not repeated for its fork. `name`: shown name of the agent (default: its id). `content`: True: spans
    have the words too.
    """
    life: list[_Placed] = []
    maker = _SpanMaker(name or agent_id, within, content=content)
    for record in records:
        event = event_of(record)
        if isinstance(event, AgentCreated):
            yield from maker.of_life(life)
            life = []
        config = event if isinstance(event, AgentConfigured) else config
        if record.agent_id == agent_id:
            life.append(_Placed(record, event, config))
    yield from maker.of_life(life)


class _SpanMaker:
    """Maker of the spans of one agent."""

    def __init__(self, name: str, within: TimeSpan, *, content: bool) -> None:
        self._name, self._within, self._content = name, within, content

    def of_life(self, life: Sequence[_Placed]) -> Iterator[TraceSpan]:
        """Yield the spans of the records of one incarnation."""
        turns: dict[int, list[_Placed]] = defaultdict(list)
        for placed in life:
            record = placed.record
            if record.turn and (turns[record.turn] or _opens(placed)):
                turns[record.turn].append(placed)
            if (
                not record.step
                and isinstance(placed.event, ModelRequestEvent)
                and self._within.holds(record.recorded_at)
            ):
                yield from self._call(
                    placed, _trace_id(record), "", record.recorded_at - genai.latency_of(placed.event), None
                )
        unfinished = set(open_turns_of([placed.record for placed in life]))
        for turn, placed_records in turns.items():
            if placed_records and turn not in unfinished and self._within.holds(placed_records[0].record.recorded_at):
                yield from self._turn([one for one in placed_records if one.record.step or genai.ends_turn(one.event)
                                       or one is placed_records[0]])  # fmt: skip

    def _turn(self, placed: Sequence[_Placed]) -> Iterator[TraceSpan]:
        opening = placed[0].record
        trace = _trace_id(opening)
        root = _span_id(opening, "turn")
        steps: dict[int, list[_Placed]] = defaultdict(list)
        for one in placed[1:]:
            if one.record.step:
                steps[one.record.step].append(one)
        switched: str | None = None
        usage: dict[str, int] = defaultdict(int)
        inner: list[TraceSpan] = []
        floor = opening.recorded_at
        for records in steps.values():
            made, switched = self._step(records, trace, root, floor, switched)
            inner += made
            floor = max(floor, *(one.record.recorded_at for one in records))
        for span in inner:
            for key in (genai.INPUT_TOKENS, genai.OUTPUT_TOKENS, genai.CACHED_TOKENS):
                value = span.attributes.get(key, 0)
                usage[key] += value if isinstance(value, int) else 0
        outcome, error, why = genai.outcome_of(one.event for one in reversed(placed))
        attributes: dict[str, AttributeValue] = {
            genai.OPERATION: "invoke_agent",
            **self._common(placed[0].config),
            genai.TURN: opening.turn,
            genai.SEQ: opening.seq,
            genai.OPENED_BY: opening.type,
            genai.OUTCOME: outcome,
            **{key: value for key, value in usage.items() if value},
            **self._words_of_turn(placed),
        }
        yield TraceSpan(
            trace_id=trace, span_id=root, name=f"invoke_agent {self._name}", start=opening.recorded_at,
            end=max(one.record.recorded_at for one in placed), attributes=genai.with_error(attributes, error),
            error=error, message=why if self._content else "",
        )  # fmt: skip
        yield from inner

    def _step(
        self, records: Sequence[_Placed], trace: str, root: str, floor: int, switched: str | None
    ) -> tuple[list[TraceSpan], str | None]:
        """Return the spans of a step, and the model that was switched to. `floor`: time of the earliest beginning."""
        first = records[0].record
        parent = _span_id(first, "step")
        inner: list[TraceSpan] = []
        at = floor
        for placed in records:
            event = placed.event
            if isinstance(event, ModelRequestEvent):
                latency = genai.latency_of(event)
                start = max(at, placed.record.recorded_at - latency) if latency else at
                inner += self._call(placed, trace, parent, start, switched)
                switched = event.to if isinstance(event, ModelSwitched) else switched
            if isinstance(event, ModelReply):
                inner += self._functions(event.calls, placed, records, trace, parent)
            at = placed.record.recorded_at
        span = TraceSpan(
            trace_id=trace, span_id=parent, parent_id=root, name=f"step {first.step}",
            start=min((one.start for one in inner), default=floor), end=at,
            attributes={**self._common(None), genai.TURN: first.turn, genai.STEP: first.step},
        )  # fmt: skip
        return [span, *inner], switched

    def _call(self, placed: _Placed, trace: str, parent: str, start: int, switched: str | None) -> Iterator[TraceSpan]:
        """Yield the span of a request to a model, if the record is of one."""
        record, event, config = placed
        if not isinstance(event, ModelRequestEvent) or not event.context_sha256:
            return
        model = genai.requested_model(event, config, switched)
        error, why = genai.fault_of(event)
        attributes: dict[str, AttributeValue] = {
            genai.OPERATION: "chat",
            genai.PROVIDER: genai.provider_of(model),
            genai.REQUEST_MODEL: model,
            **self._common(None),
            genai.SEQ: record.seq,
            genai.PURPOSE: genai.purpose_of(event),
            **genai.usage_of(event),
            **genai.sampling_of(config if switched is None and isinstance(event, ModelReply | ModelFailed) else None),
        }
        if event.model and not isinstance(event, ModelFailed | ModelSwitched):
            attributes[genai.RESPONSE_MODEL] = event.model
        if isinstance(event, ModelReply) and event.finish_reason:
            attributes[genai.FINISH] = [event.finish_reason]
        if self._content and isinstance(event, ModelReply):
            attributes[genai.OUTPUT_MESSAGES] = genai.reply_words(event)
        if self._content and isinstance(event, Summary):
            attributes[genai.OUTPUT_MESSAGES] = genai.messages_of("assistant", [event.text])
        yield TraceSpan(
            trace_id=trace, span_id=_span_id(record, "call"), parent_id=parent, name=f"chat {model}", kind="client",
            start=start, end=record.recorded_at, attributes=genai.with_error(attributes, error), error=error,
            message=why if self._content else "",
        )  # fmt: skip

    def _functions(
        self, calls: Sequence[Call], reply: _Placed, records: Sequence[_Placed], trace: str, parent: str
    ) -> Iterator[TraceSpan]:
        """Yield a span for each call that has a result. It began when it was recorded as started, or with the reply."""
        started = {one.event.call_id: one.record for one in records if isinstance(one.event, FunctionStarted)}
        results = [(one.record, one.event) for one in records if isinstance(one.event, FunctionResult)]
        for call in calls:
            found = next((pair for pair in results if pair[1].call_id == call.id), None)
            if found is None:
                continue
            results.remove(found)
            record, result = found
            begun = started.get(call.id, reply.record)
            error = "" if result.ok and not result.unknown else "interrupted" if result.unknown else "function_failed"
            attributes: dict[str, AttributeValue] = {
                genai.OPERATION: "execute_tool",
                genai.TOOL_NAME: result.name,
                genai.TOOL_TYPE: "function",
                genai.TOOL_CALL: call.id,
                **self._common(None),
                genai.SEQ: record.seq,
            }
            if self._content:
                attributes |= {genai.TOOL_ARGUMENTS: call.arguments, genai.TOOL_RESULT: result.text}
            yield TraceSpan(
                trace_id=trace, span_id=_span_id(record, "function"), parent_id=parent,
                name=f"execute_tool {result.name}", start=begun.recorded_at, end=record.recorded_at,
                attributes=genai.with_error(attributes, error), error=error,
                message=result.text if error and self._content else "",
            )  # fmt: skip

    def _common(self, config: AgentConfigured | None) -> dict[str, AttributeValue]:
        """Return the attributes of every span; with the configuration, those of the agent's own model."""
        common: dict[str, AttributeValue] = {genai.AGENT_NAME: self._name, genai.CONVERSATION: self._name}
        if config is not None:
            common |= {genai.PROVIDER: genai.provider_of(config.model), genai.REQUEST_MODEL: config.model}
        return common

    def _words_of_turn(self, placed: Sequence[_Placed]) -> dict[str, AttributeValue]:
        if not self._content:
            return {}
        opening = placed[0].event
        sent = [one.event.text for one in placed if isinstance(one.event, MessageSent) and one.event.text]
        words: dict[str, AttributeValue] = {}
        if isinstance(opening, UserMessage) and opening.text:
            words[genai.INPUT_MESSAGES] = genai.messages_of("user", [opening.text])
        if sent:
            words[genai.OUTPUT_MESSAGES] = genai.messages_of("assistant", sent)
        return words


def _opens(placed: _Placed) -> bool:
    """Return True for the input that opened a turn, unless it was erased: then it cannot be told from an import."""
    record = placed.record
    is_input = record.type in INPUTS and not record.step and not is_erased(record.payload)
    return is_input and not is_imported(placed.event)


def _trace_id(record: Record) -> str:
    return record.event_id.replace("-", "")


def _span_id(record: Record, what: str) -> str:
    """Return the id of a span. It depends on the agent, because a rerun may repeat the ids of the events."""
    return sha256(f"{record.agent_id}\0{record.event_id}\0{what}".encode()).hexdigest()[:16]
