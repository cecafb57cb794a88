"""Parse a recorded reply again and execute it again: compare the events that it would leave today with the recorded
ones. Pure.

Used by `verify.py`.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

import msgspec

from everlog.actors.agent import turn_transitions
from everlog.actors.agent.decide import ReplyExecution
from everlog.actors.formats import parse_reply
from everlog.actors.functions.external_call import ExternalCall
from everlog.actors.functions.tools import Tool
from everlog.actors.memory.core_memory import FunctionMemory
from everlog.actors.prompt.context import Context
from everlog.actors.prompt.context_fit import summary_fault, summary_room
from everlog.actors.replay.replay_report import RequestDiff
from everlog.actors.replay.request_diff import diff_lines
from everlog.actors.rules.first_message import NO_MONOLOGUE, first_message_fault
from everlog.events import (
    AgentForked,
    ContextOverflow,
    Event,
    FunctionResult,
    ModelError,
    ModelReply,
    Record,
    ReplyRejected,
    Summary,
    TurnAbandoned,
    draft,
    event_of,
    is_erased,
)

_NOT_OF_A_STEP = frozenset({"turn_abandoned", "turn_cancelled", "summary", "context_trimmed", "reply_rejected"})
"""Types of records that may stand among the records of a step, and that no reply leaves."""


class RecordHistory:
    """Records of an agent by incarnation, turn and step."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self._lives: list[int] = []
        self._turns: dict[tuple[int, int], list[int]] = defaultdict(list)
        """Indexes of the records of each turn of each incarnation."""
        self._cuts = {record.seq - 1 for record in records if record.type == AgentForked.kind}
        self._begins = [0]
        life = 0
        for index, record in enumerate(records):
            if record.type == "agent_created":
                life += 1
                self._begins.append(index)
            self._lives.append(life)
            self._turns[life, record.turn].append(index)

    def turn_faults(self) -> list[str]:
        """Return the turns in which a record follows another that it cannot follow."""
        found = []
        for (_, turn), indexes in self._turns.items():
            some = [self.records[index] for index in indexes]
            fault = turn_transitions.fault([(r.type, r.step, r.commit) for r in some]) if turn else None
            if fault is not None:
                found.append(f"turn {turn}: {fault}")
        return found

    def begin_of(self, index: int) -> int:
        """Return the index of the first record of the incarnation that a record belongs to."""
        return self._begins[self._lives[index]]

    def of_turn(self, index: int) -> Iterator[Record]:
        """Return the records of the turn that a record belongs to."""
        own, _ = self._turn_of(index)
        return (self.records[i] for i in own)

    def of_step(self, index: int) -> list[Record]:
        """Return a record and those that it left: the same turn and step, until the next input or call."""
        first = self.records[index]
        found = [first]
        for record in self._later(index):
            if record.step > first.step:
                break
            if record.step == first.step and record.type not in _NOT_OF_A_STEP:
                found.append(record)
        return found

    def ended_early(self, index: int) -> bool:
        """Return True if the turn ended before the calls of this reply did:
        it was cancelled, or the agent was forked there.
        """
        step = self.records[index].step
        return self.of_step(index)[-1].seq in self._cuts or any(
            (record.type == "turn_cancelled" and record.step == step) or _is_forked(record)
            for record in self._later(index)
        )

    def before_in_step(self, index: int) -> Iterator[Record]:
        """Return the records of the same turn and step before this one, the newest first."""
        own, place = self._turn_of(index)
        step = self.records[index].step
        return (self.records[i] for i in reversed(own[:place]) if self.records[i].step == step)

    def _later(self, index: int) -> Iterator[Record]:
        own, place = self._turn_of(index)
        return (self.records[i] for i in own[place + 1 :])

    def _turn_of(self, index: int) -> tuple[list[int], int]:
        """Return the turn of a record, and the record's place in it."""
        own = self._turns[self._lives[index], self.records[index].turn]
        return own, bisect_left(own, index)


def _is_forked(record: Record) -> bool:
    """Return True if a record ended a turn that was open at a fork point.
    An erased one may have done so, and counts.
    """
    event = event_of(record) if record.type == TurnAbandoned.kind else None
    if event is not None and is_erased(record.payload):
        return True
    return isinstance(event, TurnAbandoned) and event.reason == "forked"


def reply_of(event: ModelReply, context: Context) -> ModelReply:
    """Parse the raw reply, and add what only the recorded event has: latency, attempts and the request's fingerprints.

    Raise ModelError.
    """
    parsed = parse_reply.reply(event.raw, context.config.window, context.config.calling)
    return msgspec.structs.replace(
        parsed,
        latency_us=event.latency_us,
        attempts=event.attempts,
        context_sha256=event.context_sha256,
        context_bytes=event.context_bytes,
        parts=event.parts,
    )


def refusal_of(event: ReplyRejected, context: Context) -> str | None:
    """Return why the reply would be rejected today; None if it would be accepted."""
    try:
        if event.purpose == "summary":
            text = parse_reply.words(event.raw, context.config.window, context.config.calling).text
            return summary_fault(text, summary_room(context, event.covers_to))
        parsed = parse_reply.reply(event.raw, context.config.window, context.config.calling)
    except ModelError as error:
        return str(error)
    if event.shown:
        return parse_reply.lossy_fault(parsed) if parsed.lossy and parse_reply.said(event.raw) == event.said else None
    return first_message_fault(parsed, aloud=event.text == NO_MONOLOGUE)  # was once demanded of every model


def has_overflowed(event: ReplyRejected, context: Context) -> bool:
    """Return True if the request was refused because the request or its reply was too long for the window."""
    try:
        if event.raw:
            parse_reply.reply(event.raw, context.config.window, context.config.calling)
    except ContextOverflow:
        return True
    except ModelError:
        return False
    return not event.raw


def summary_text(event: Summary, context: Context) -> str:
    """Return the summary that the raw reply contains, parsed today. Raise ModelError."""
    return parse_reply.words(event.raw, context.config.window, context.config.calling).text.strip()


def missing(reply: ModelReply, context: Context, tools: Mapping[str, Tool]) -> list[str]:
    """Return the names of functions that the reply calls and the agent had, but that are not available now."""
    had = {function.name for function in context.config.functions}
    return sorted({call.name for call in reply.calls if call.name in had and call.name not in tools})


def reply_difference(
    history: RecordHistory, index: int, reply: ModelReply, context: Context, tools: Mapping[str, Tool]
) -> RequestDiff | None:
    """Return the first event of the step that would be different today; None if there is none."""
    recorded = history.of_step(index)
    again = _events_today(history.records[index], reply, context, recorded, tools)
    shapes = [_recorded(record) for record in recorded]
    # A turn that ended early has fewer events than its reply would leave: only the common part is compared.
    if len(again) != len(shapes) and history.ended_early(index):
        again, shapes = again[: len(shapes)], shapes[: len(again)]
    for number, (then, now) in enumerate(zip_longest(shapes, again, fillvalue="nothing")):
        if then != now:
            was, would = then.split(" ", 1)[0], now.split(" ", 1)[0]
            what = f"{would} with other content" if was == would else would
            part = f"event {number} of the step was {was}, and would now be {what}"
            return RequestDiff(part=part, against="the log", lines=diff_lines(then, now))
    return None


def _events_today(
    record: Record, reply: ModelReply, context: Context, recorded: Sequence[Record], tools: Mapping[str, Tool]
) -> list[str]:
    """Return the events that the reply would leave today. Calls with outside effects get their recorded results."""
    results = {e.call_id: e for e in map(event_of, recorded) if isinstance(e, FunctionResult)}
    desk = FunctionMemory(context.blocks, now=record.recorded_at, zone=context.config.zone)
    step = ReplyExecution(context, reply, tools, desk, f"{record.turn}/{record.step}")
    while (outside := step.outside()) is not None:
        if outside.intended:
            step.started(outside)
        result = results.get(outside.call.id)
        # The recorded turn ended at this call.
        if result is None:
            break
        step.given(result, _left_by(result, recorded, outside))
    else:
        step.finish()
    return [_shape(event) for event in step.taken()]


LEFT_BY_SEARCHES = (
    "archival_", "insight_noted", "fact_noted", "fact_ended", "plan_made", "plan_changed", "timer_set",
    "agent_message_sent",
    "timer_cancelled",
)  # fmt: skip
"""Beginnings of the kinds of events that functions leave which look into the agent's memory."""


ASKED = ("approval_requested",)
"""Kind of the event that a function leaves which asks a person."""


def _left_by(result: FunctionResult, recorded: Sequence[Record], outside: ExternalCall) -> list[Event]:
    """Return the events that a call left before its result: memories that it stored, or shared blocks that it read."""
    kinds = ("memory_edited",) if outside.tried else LEFT_BY_SEARCHES if outside.tool.searches else ASKED
    left: list[Event] = []
    for event in map(event_of, recorded):
        if isinstance(event, FunctionResult):
            if event.call_id == result.call_id:
                break
            left = []
        elif isinstance(event, Event) and event.kind.startswith(kinds):
            left.append(event)
    return left


def _recorded(record: Record) -> str:
    """Return the event of a record as it would be written today, as text."""
    event = event_of(record)
    return _shape(event) if isinstance(event, Event) else _line(record.type, record.text, record.payload)


def _shape(event: Event) -> str:
    """Return the event without its envelope, as text."""
    bare = draft(event, event_id="", recorded_at=0, turn=0, step=0)
    return _line(bare.type, bare.text, bare.payload)


def _line(kind: str, text: str | None, payload: str) -> str:
    return f"{kind} {text!r} {payload}"
