"""Two of the four ways to replay an agent: rebuild (are the projections what the log says?) and verify (are the bytes
that I would send today the bytes that I sent then, and do the recorded replies still mean the same?). Neither writes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile, zip_longest

import msgspec

from events import (
    GENESIS,
    Event,
    FunctionResult,
    FunctionStarted,
    ModelError,
    ModelFailed,
    ModelReply,
    Record,
    ReplyRejected,
    Summary,
    draft,
    event_of,
    extend,
    is_erased,
)
from projections import PROJECTIONS, Projections, Row

from . import parse, render, transitions
from .constants import RENDERER
from .context import Context, context_of, of_turn
from .decide import Step, bare_key, first_message_fault
from .fit import summary_fault, summary_room, transcript_bytes_max
from .memory import Desk
from .system import View
from .tools import Tool

ModelCall = ModelReply | ReplyRejected | ModelFailed | Summary
MODEL_CALLS = (ModelReply, ReplyRejected, ModelFailed, Summary)
"""Events that name a request by its `context_sha256`."""

_CALL_KINDS = frozenset(cls.kind for cls in MODEL_CALLS)

CALLS_AT_ONCE = 64
"""Contexts asked of the projections in one query."""


class Report(msgspec.Struct):
    """What a replay found."""

    agent_id: str
    checked: int = 0
    """Projections compared, or model calls."""
    faults: list[str] = []
    notes: list[str] = []
    """What could not be checked, and why."""


def rebuild(view: View) -> Report:
    """Build every projection again, commit by commit as the agent did, and compare with the one made at once."""
    report = Report(view.agent_id)
    records = list(view.reader.read(view.agent_id))
    chain = GENESIS
    for record in records:
        chain = extend(chain, record)
    if chain != view.head.chain:
        report.faults.append(f"the chain of the {len(records)} records is not the one that the log ends with")
    with Projections() as fresh:
        for _, commit in groupby(records, key=lambda record: record.commit):
            fresh.add([msgspec.structs.replace(record, agent_id=view.agent_id) for record in commit])
        for name in PROJECTIONS:
            report.checked += 1
            ours, theirs = (p.checksum(name, view.agent_id) for p in (view.projections, fresh))
            if ours != theirs:
                report.faults.append(f"{name}: rebuilt {theirs}, found {ours}")
    return report


class Verifier:
    """Renders every request of one agent again, and works every reply off again."""

    def __init__(self, view: View, tools: Mapping[str, Tool]) -> None:
        self.report = Report(view.agent_id)
        self._view = view
        self._tools = tools
        self._schemas = view.schemas()
        self._records = list(view.reader.read(view.agent_id))
        self._erased = [record for record in self._records if is_erased(record.payload)]
        self._unclear: list[int] = []
        """Seqs of the calls that cannot be checked without what was erased."""

    def run(self) -> Report:
        """Check every model call of the agent, in order, those of earlier lives included."""
        calls = [
            (index, event)
            for index, record in enumerate(self._records)
            if isinstance(event := event_of(record), MODEL_CALLS) and event.context_sha256
        ]
        for first in range(0, len(calls), CALLS_AT_ONCE):
            some = calls[first : first + CALLS_AT_ONCE]
            contexts = self._contexts([self._records[index] for index, _ in some])
            for (index, event), context in zip(some, contexts, strict=True):
                self._judge(index, self._records[index], event, context)
        self._check_turns()
        self._tell_of_erased()
        return self.report

    def _check_turns(self) -> None:
        """What follows what in each turn is in the table."""
        turns: dict[tuple[int, int], list[Record]] = defaultdict(list)
        life = 0
        for record in self._records:
            life += record.type == "agent_created"
            if record.turn:
                turns[life, record.turn].append(record)
        for (_, turn), records in turns.items():
            fault = transitions.fault([(record.type, record.step, record.commit) for record in records])
            if fault is not None:
                self.report.faults.append(f"turn {turn}: {fault}")

    def _contexts(self, records: Sequence[Record]) -> list[Context | None]:
        """For each call the context that it was made of: what the log held just before, less inputs of later turns.

        None where its configuration was erased.
        """
        agent_id = self.report.agent_id
        rows: dict[int, list[Row]] = defaultdict(list)
        for row in self._view.projections.batch("context_window", [(agent_id, record.seq - 1) for record in records]):
            rows[row["as_of"]].append(row)
        return [self._context(r, rows[r.seq - 1]) for r in records]

    def _context(self, record: Record, rows: Sequence[Row]) -> Context | None:
        if not any(row["slot"] == "config" for row in rows):
            return None
        context = of_turn(context_of(self.report.agent_id, record.seq - 1, rows), record.turn)
        return context if all(function.sha256 in self._schemas for function in context.config.functions) else None

    def _judge(self, index: int, record: Record, event: ModelCall, context: Context | None) -> None:
        """Check a call. What differs is no fault where records that it was made of, or that it left, were erased."""
        before = len(self.report.faults)
        if context is not None:
            self._check(index, record, event, context)
        if context is None or (len(self.report.faults) > before and self._is_touched(index, record)):
            del self.report.faults[before:]
            self.report.checked -= context is not None
            self._unclear.append(record.seq)

    def _is_touched(self, index: int, record: Record) -> bool:
        if self._erased and self._erased[0].seq < record.seq:
            return True
        return any(is_erased(other.payload) for other in self._of_step(index))

    def _tell_of_erased(self) -> None:
        gone = sum(record.type in _CALL_KINDS for record in self._erased)
        if gone:
            self.report.notes.append(f"records of model calls that were erased: {gone:,}")
        if self._unclear:
            self.report.notes.append(
                f"model calls that cannot be checked, because records were erased: {len(self._unclear):,}, from seq "
                f"{self._unclear[0]} to {self._unclear[-1]}"
            )

    def _check(self, index: int, record: Record, event: ModelCall, context: Context) -> None:
        if context.config.renderer != RENDERER:
            self._note(record, f"renderer {context.config.renderer} is gone; this everlog has {RENDERER}")
            return
        self.report.checked += 1
        body = self._request(context, event)
        if render.sha256(body) != event.context_sha256:
            self._fault(
                record,
                f"the request would now have {len(body)} bytes and sha256 {render.sha256(body)[:12]}; "
                f"it had {event.context_bytes} bytes and {event.context_sha256[:12]}",
            )
        if isinstance(event, ModelReply):
            self._check_reply(index, record, event, context)
        elif isinstance(event, Summary):
            self._check_summary(record, event, context)
        elif isinstance(event, ReplyRejected) and event.raw:
            self._check_rejected(record, event, context)

    def _request(self, context: Context, event: ModelCall) -> bytes:
        if isinstance(event, Summary) or (isinstance(event, ReplyRejected) and event.purpose == "summary"):
            return render.summary_request(context, event.covers_to, event.words, transcript_bytes_max(context))
        return render.request(context, self._schemas)

    def _check_reply(self, index: int, record: Record, event: ModelReply, context: Context) -> None:
        """Parse the raw reply again and work it off again; the events must be those that the log holds."""
        parsed = self._parsed(record, event.raw, context)
        if parsed is None:
            return
        parsed = msgspec.structs.replace(
            parsed,
            latency_us=event.latency_us,
            context_sha256=event.context_sha256,
            context_bytes=event.context_bytes,
        )
        had = {function.name for function in context.config.functions}
        missing = sorted({call.name for call in parsed.calls if call.name in had and call.name not in self._tools})
        if missing:
            self._note(record, f"the functions of the step cannot be run again without {', '.join(missing)}")
            return
        recorded = self._of_step(index)
        again = self._again(record, parsed, context, recorded)
        if len(again) > len(recorded) and self._is_cancelled(index):
            again = again[: len(recorded)]
        for number, (then, now) in enumerate(zip_longest(_shapes(recorded), again, fillvalue="nothing")):
            if then != now:
                self._fault(record, f"event {number} of the step was {then}, and would now be {now}")
                return

    def _check_summary(self, record: Record, event: Summary, context: Context) -> None:
        text = self._parsed(record, event.raw, context)
        if text is not None and text.text.strip() != event.text:
            self._fault(record, "the summary is not what the raw reply says")

    def _check_rejected(self, record: Record, event: ReplyRejected, context: Context) -> None:
        """The fault that was found in the reply must be found in it again."""
        try:
            reply = parse.reply(event.raw, context.config.window)
        except ModelError as error:
            again: str | None = str(error)
        else:
            again = (
                first_message_fault(reply)
                if event.purpose == "reply"
                else summary_fault(reply.text, summary_room(context, event.covers_to))
            )
        if again != event.text:
            self._fault(record, f"the reply was refused because {event.text!r}, and would now be because {again!r}")

    def _parsed(self, record: Record, raw: str, context: Context) -> ModelReply | None:
        try:
            return parse.reply(raw, context.config.window)
        except ModelError as error:
            self._fault(record, f"the raw reply can no longer be read: {error}")
            return None

    def _of_step(self, index: int) -> Sequence[Record]:
        """The reply's record and those that it left behind: the same turn and step, until the next input or call."""
        first = self._records[index]
        found = [first]
        for record in self._records[index + 1 :]:
            if record.type == "agent_created":
                break
            if (record.turn, record.step) == (first.turn, first.step) and record.type not in _NOT_OF_A_STEP:
                found.append(record)
            elif record.turn == first.turn and record.step > first.step:
                break
        return found

    def _is_cancelled(self, index: int) -> bool:
        """Whether the turn was cancelled before the calls of this reply had ended: the later ones were never run."""
        place = (self._records[index].turn, self._records[index].step)
        later = takewhile(lambda record: record.type != "agent_created", self._records[index + 1 :])
        return any(record.type == "turn_cancelled" and (record.turn, record.step) == place for record in later)

    def _again(self, record: Record, reply: ModelReply, context: Context, recorded: Sequence[Record]) -> list[str]:
        """The events that the reply would leave today; calls that reach outside are given their recorded results."""
        results = {e.call_id: e for e in map(event_of, recorded) if isinstance(e, FunctionResult)}
        desk = Desk(context.blocks, now=record.recorded_at, zone=context.config.zone)
        place = f"{record.turn}/{record.step}"
        step = Step(context, reply, self._tools, desk, place, keys=_bare_keys(record.agent_id, place, recorded))
        while (outside := step.outside()) is not None:
            if outside.tool.outside:
                step.started(outside)
            result = results.get(outside.call.id)
            if result is None:
                break
            step.given(result, _left_by(result, recorded) if outside.tool.searches else ())
        else:
            step.finish()
        return [_shape(event) for event in step.taken()]

    def _fault(self, record: Record, text: str) -> None:
        self.report.faults.append(f"seq {record.seq} ({record.type}, turn {record.turn}): {text}")

    def _note(self, record: Record, text: str) -> None:
        self.report.notes.append(f"seq {record.seq}: {text}")


_NOT_OF_A_STEP = frozenset({"turn_abandoned", "turn_cancelled", "summary", "context_trimmed", "reply_rejected"})


def _bare_keys(agent_id: str, place: str, recorded: Sequence[Record]) -> dict[str, str]:
    """By call id, the keys of calls that were begun when a key was the place of its call and no more."""
    begun = [event for event in map(event_of, recorded) if isinstance(event, FunctionStarted)]
    bare = {event.call_id: bare_key(agent_id, place, event.call_id) for event in begun}
    return {event.call_id: event.key for event in begun if event.key == bare[event.call_id]}


def _left_by(result: FunctionResult, recorded: Sequence[Record]) -> list[Event]:
    """The events that a call left before its result."""
    left: list[Event] = []
    for event in map(event_of, recorded):
        if isinstance(event, FunctionResult):
            if event.call_id == result.call_id:
                break
            left = []
        elif isinstance(event, Event) and event.kind.startswith("archival_"):
            left.append(event)
    return left


def _shape(event: Event) -> str:
    """The event without envelope, as text."""
    bare = draft(event, event_id="", recorded_at=0, turn=0, step=0)
    return f"{bare.type} {bare.text!r} {bare.payload}"


def _shapes(records: Sequence[Record]) -> list[str]:
    return [f"{record.type} {record.text!r} {record.payload}" for record in records]


def verify(view: View, tools: Mapping[str, Tool]) -> Report:
    """Check every request and every reply of the agent, against the log alone."""
    return Verifier(view, tools).run()
