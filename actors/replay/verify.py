"""Verify an agent, one of the four kinds of replay: render each request again, execute each reply again, and compare
both with the log. It writes nothing, reads nothing and calls no model.

Used by `verify_agents.py`, which reads the records of one agent or of many, and their contexts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from typing import NamedTuple, TypeGuard

import msgspec

from everlog.actors.formats import parse_reply, render_request, request_fingerprints
from everlog.actors.functions.tools import Tool
from everlog.actors.ports.agent_constants import RENDERER
from everlog.actors.prompt.context import Context, context_of, is_configured
from everlog.actors.prompt.context_fit import transcript_bytes_max
from everlog.actors.replay import check_chain, check_fitting, reexecute, request_diff
from everlog.actors.replay.erasure_effects import ErasureEffects, UncertainParts, newest_of
from everlog.actors.replay.replay_report import (
    CallVerdicts,
    ReplayMismatch,
    ReplayReport,
    RequestDiff,
    groups,
    headline,
    span,
)
from everlog.actors.replay.request_diff import RebuiltRequest
from everlog.events import (
    MODEL_CALLS,
    AnyEvent,
    ContextTrimmed,
    ModelError,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    Record,
    ReplyRejected,
    Summary,
    TurnAbandoned,
    event_of,
    is_erased,
)
from everlog.projections import Row
from everlog.store import Head

ModelCall = ModelReply | ReplyRejected | ModelFailed | Summary
"""Event that a call of a model left in the log."""

_CALL_KINDS = frozenset(cls.kind for cls in MODEL_CALLS)
_KINDS = _CALL_KINDS | {ContextTrimmed.kind, TurnAbandoned.kind}


class RecordedAgent(msgspec.Struct, frozen=True):
    """All that is read of an agent before its calls are verified."""

    agent_id: str
    head: Head
    """End of the log, with the recorded value of the chain."""
    records: Sequence[Record]
    """All records up to the head, as they were written."""
    schemas: Mapping[str, str]
    """Every function schema in the log, by its sha256."""


def sampled(count: int, sample: int, seed: str) -> list[int]:
    """Return `sample` of the numbers below `count`, spread over all: one from each of as many equal ranges. The same
    `seed` always gives the same numbers. If there are no more than `sample` numbers, return all.
    """
    if sample >= count:
        return list(range(count))
    chosen = []
    for part in range(sample):
        first, end = part * count // sample, (part + 1) * count // sample
        chance = sha256(f"{seed} {part}".encode()).digest()
        chosen.append(first + int.from_bytes(chance) % (end - first))
    return chosen


class ChosenRecord(NamedTuple):
    """Record of an agent that is to be checked."""

    place: int
    """Place among the agent's records, from 0."""
    seq: int
    turn: int
    event: AnyEvent

    @property
    def request_bytes(self) -> int:
        """Bytes of the request that the record was the answer to; 0 if it was none."""
        return self.event.context_bytes if isinstance(self.event, MODEL_CALLS) else 0


class Verifier:
    """Verifier of one agent: renders each request again, and executes each reply again."""

    def __init__(
        self, agent: RecordedAgent, tools: Mapping[str, Tool], sample: int | None = None, seed: str = ""
    ) -> None:
        """Check all calls, or only a `sample` of so many. `seed` selects them; the default is the head of the chain, so
        that the same log always gives the same sample.
        """
        self._report = ReplayReport(agent.agent_id)
        self._calls: CallVerdicts = self._report.calls
        self._head = agent.head
        self._tools = tools
        self._sample, self._seed = sample, seed or agent.head.chain.hex()
        self._schemas = agent.schemas
        self._records = records = agent.records
        self._history = reexecute.RecordHistory(records)
        self._erasures = ErasureEffects(self._history)
        self._matched: tuple[Record, ModelCall, Context] | None = None
        """Last call whose request is the same: its text is the nearest to that of a request that differs."""
        self._seen: dict[int, str] = {}
        """Fingerprints of single messages in the requests so far, by seq."""
        self._part: str | None = None
        """Part in which the last request that differed differed first. The next one is reported in full only if its
        part is another.
        """

    def finish(self) -> ReplayReport:
        """Check what concerns the whole log, and return the report. Call it after `judge` had every chosen record."""
        chain_faults = check_chain.faults(self._records, self._head)
        mismatches = map(headline, groups(self._report.mismatches))
        self._report.faults += [*chain_faults, *mismatches, *self._history.turn_faults()]
        self._report.checked = len(self._calls.equal) + len(self._calls.mismatch)
        self._report.notes += _notes(self._calls, self._sample)
        return self._report

    def chosen(self) -> list[ChosenRecord]:
        """Return the records to check, in order: model calls, those of earlier incarnations included, and, without a
        sample, measures against full contexts.
        """
        found = [(index, event_of(r)) for index, r in enumerate(self._records) if r.type in _KINDS]
        calls = [item for item in found if isinstance(item[1], MODEL_CALLS) and item[1].context_sha256]
        gone = [r.seq for r in self._records if r.type in _CALL_KINDS and r.turn and is_erased(r.payload)]
        self._calls.calls = len(calls) + len(gone)
        if self._sample is None:
            self._calls.erased += gone
            self._calls.chosen = self._calls.calls
            kept = [item for item in found if isinstance(item[1], MODEL_CALLS) or _is_measure(item[1])]
        else:
            kept = [calls[number] for number in sampled(len(calls), self._sample, self._seed)]
            self._calls.chosen = len(kept)
        return [
            ChosenRecord(index, self._records[index].seq, self._records[index].turn, event) for index, event in kept
        ]

    def _context(self, record: Record, rows: Sequence[Row]) -> Context | None:
        """Return the context of a call: what the log held just before the call, without inputs of later turns.

        None if the call's configuration was erased.
        """
        if not is_configured(rows):
            return None
        context = context_of(record.agent_id, record.seq - 1, rows, record.turn)
        return context if all(function.sha256 in self._schemas for function in context.config.functions) else None

    def judge(self, chosen: ChosenRecord, rows: Sequence[Row]) -> None:
        """Check one chosen record; call it in the order of `chosen`. A difference is no fault if an erased record may
        be the reason.

        `rows`: the projection `context_window` as of the seq before the record, for the record's turn.
        """
        index, event, record = chosen.place, chosen.event, self._records[chosen.place]
        context = self._context(record, rows)
        is_call = isinstance(event, MODEL_CALLS) and bool(event.context_sha256)
        # Another renderer version gives other bytes for the same context: a comparison would say nothing.
        if context is not None and context.config.renderer != RENDERER:
            if is_call and not self._erasures.is_config_sure(index):
                self._calls.erased.append(record.seq)
            elif is_call:
                self._calls.renderer_gone.setdefault(context.config.renderer, []).append(record.seq)
            return
        found = [*self._mismatches(index, record, event, context)] if context is not None else [None]
        faults = [mismatch for mismatch in found if mismatch is not None]
        self._report.mismatches += faults
        if is_call:
            verdict = self._calls.mismatch if faults else self._calls.erased if found else self._calls.equal
            verdict.append(record.seq)

    def _mismatches(
        self, index: int, record: Record, event: AnyEvent, context: Context
    ) -> Iterator[ReplayMismatch | None]:
        """Yield each mismatch; None in place of one whose reason may be an erased record."""
        # Effects of erasure are costly to find and needed only if something differs, so they are computed on demand.
        doubts = cache(partial(self._erasures.doubts, index, context))
        if isinstance(event, MODEL_CALLS) and event.context_sha256:
            yield from self._of_request(record, event, context, doubts)
        if isinstance(event, ModelReply | ReplyRejected | Summary) and event.raw:
            for found in self._of_reply(index, record, event, context):
                yield None if self._is_reply_excused(index, event, doubts()) else found
        fault = self._measure_fault(index, record, event, context)
        if fault is not None:
            excused = self._is_measure_excused(index, event, doubts())
            yield None if excused else _mismatch(record, "decision", fault)

    def _is_reply_excused(
        self, index: int, event: ModelReply | ReplyRejected | Summary, doubts: UncertainParts | None
    ) -> bool:
        """Return True if erased records may be the reason that the reply leads to something else."""
        if isinstance(event, ModelReply) and self._erasures.in_step(index):
            return True
        if doubts is None or isinstance(event, Summary):
            return doubts is not None and doubts.config
        if isinstance(event, ModelReply):
            return doubts.memory_may_differ(request_fingerprints.decode_fingerprints(event.parts))
        return doubts.config or (event.purpose == "summary" and doubts.transcript_may_differ)

    def _is_measure_excused(self, index: int, event: AnyEvent, doubts: UncertainParts | None) -> bool:
        """Return True if erased records may be the reason that something else would be done about the context."""
        if not _is_measure(event):
            return doubts is not None and (doubts.config or doubts.reply)
        return (doubts is not None and doubts.any_may_differ) or self._erasures.in_step(index)

    def _of_request(
        self, record: Record, event: ModelCall, context: Context, doubts: Callable[[], UncertainParts | None]
    ) -> Iterator[ReplayMismatch | None]:
        body = _body(event, context, self._schemas)
        digest, marks = render_request.sha256(body), request_fingerprints.decode_fingerprints(event.parts)
        if digest == event.context_sha256:
            self._matched = (record, event, context)
            self._part = None
        else:
            sizes = (
                f"{event.context_bytes:,} bytes ({event.context_sha256[:12]}), and has {len(body):,} ({digest[:12]})"
            )
            yield self._differing(record, event, context, doubts(), sizes)
        # Added last: a request is compared with the fingerprints of earlier requests only.
        self._seen.update((int(name), mark) for name, mark in marks.items() if name.isdecimal())

    def _differing(
        self, record: Record, event: ModelCall, context: Context, doubts: UncertainParts | None, sizes: str
    ) -> ReplayMismatch | None:
        """Return where a request differs; None if it differs only in parts that erased records may have changed."""
        then = request_fingerprints.decode_fingerprints(event.parts)
        now = self._made(record, event, context)
        if doubts is not None:
            sure = self._sure(then, event, now, doubts)
            if sure is None:
                return None
            then, now = sure
        matched = self._made(*self._matched) if self._matched else None
        difference = request_diff.difference(then, now, matched, self._seen)
        fresh = difference if difference.part != self._part else None
        self._part = difference.part
        return _mismatch(record, "request", f"the request differs first in {difference.part}; it had {sizes}", fresh)

    def _sure(
        self, then: dict[str, str], event: ModelCall, now: RebuiltRequest, doubts: UncertainParts
    ) -> tuple[dict[str, str], RebuiltRequest] | None:
        """Return the recorded fingerprints and today's parts, without the uncertain ones;
        None if nothing else differs.
        """
        today, parted = now.parts, set[int]()
        if not _asks_summary(event):
            # Today's messages are grouped like the recorded ones.
            # Otherwise parts of one name would hold different messages.
            request = render_request.compose(now.context, self._schemas)
            today = request_fingerprints.of_request(now.context, request, set(newest_of(then)))
            parted = request_fingerprints.repeated_seqs(request)
        excused_names = doubts.excused(then, today, parted)
        found = request_fingerprints.fingerprints(today)
        sure = {name: mark for name, mark in then.items() if name not in excused_names}
        rest = {name: part for name, part in today.items() if name not in excused_names}
        if list(sure.items()) != list(request_fingerprints.fingerprints(rest).items()):
            return sure, msgspec.structs.replace(now, parts=rest)
        # No certain part differs. If even the uncertain parts are the same, the difference is outside of all parts, and
        # no erased record explains it.
        return None if found != then or doubts.config else (then, msgspec.structs.replace(now, parts=today))

    def _made(self, record: Record, event: ModelCall, context: Context) -> RebuiltRequest:
        """Render a request again, and split it into its parts."""
        if _asks_summary(event):
            asked = render_request.summary_parts(context, event.covers_to, event.words, transcript_bytes_max(context))
            return RebuiltRequest(
                record.seq, context, request_fingerprints.of_summary_request(asked), {}, self._schemas
            )
        request = render_request.compose(context, self._schemas)
        found = request_fingerprints.of_request(context, request)
        return RebuiltRequest(record.seq, context, found, request_fingerprints.singles(request), self._schemas)

    def _of_reply(
        self, index: int, record: Record, event: ModelReply | ReplyRejected | Summary, context: Context
    ) -> Iterator[ReplayMismatch]:
        """Yield what differs when the raw reply is read again:
        its text, its rejection, or the events that it leaves.
        """
        try:
            if isinstance(event, ReplyRejected):
                again = reexecute.refusal_of(event, context)
                if event.text != again:
                    yield _rejection_mismatch(record, event, again)
            elif isinstance(event, Summary):
                summary = reexecute.summary_text(event, context)
                if event.text != summary:
                    yield _other_summary(record, event, summary)
            elif event.reader != parse_reply.READER:
                self._calls.reader_gone.setdefault(event.reader, []).append(record.seq)
            else:
                yield from self._of_answer(index, record, event, context)
        except ModelError as error:
            yield _mismatch(record, "reply", f"the raw reply can no longer be read: {error}")

    def _of_answer(self, index: int, record: Record, event: ModelReply, context: Context) -> Iterator[ReplayMismatch]:
        """Parse a reply and execute it again: it must leave the recorded events."""
        reply = reexecute.reply_of(event, context)
        # Without the function's code the events of a call cannot be computed. That is reported, and is no fault.
        if gone := reexecute.missing(reply, context, self._tools):
            for name in gone:
                self._calls.missing_function.setdefault(name, []).append(record.seq)
            return
        difference = reexecute.reply_difference(self._history, index, reply, context, self._tools)
        if difference is not None:
            yield _mismatch(record, "reply", difference.part, difference)

    def _measure_fault(self, index: int, record: Record, event: AnyEvent, context: Context) -> str | None:
        """Return why something else would be done today about the size of the context;
        None if the same would be done.
        """
        if not _is_measure(event):
            if not isinstance(event, MODEL_CALLS) or not event.context_sha256:
                return None
            return check_fitting.sending_fault(event.context_bytes, context)
        size = len(render_request.request(context, self._schemas))
        overflowed = self._overflowed(index, context)
        return check_fitting.measure_fault(event, size, context, step=record.step, overflowed=overflowed)

    def _overflowed(self, index: int, context: Context) -> bool:
        """Return True if the endpoint had just refused a request as too long, or a reply had exceeded the window."""
        for record in self._history.before_in_step(index):
            # A switch of the model, or a rejected summary, may stand between the overflow and the measure against it.
            event = event_of(record)
            if not isinstance(event, ModelSwitched) and not (_asks_summary(event) and isinstance(event, ReplyRejected)):
                return isinstance(event, ReplyRejected) and reexecute.has_overflowed(event, context)
        return False


def _is_measure(event: AnyEvent) -> TypeGuard[check_fitting.AppliedMeasure]:
    """Return True if an event was a measure, or an attempt at one, against a context that did not fit."""
    if isinstance(event, TurnAbandoned):
        return event.reason == "context"
    return isinstance(event, ContextTrimmed) or _asks_summary(event)


def _asks_summary(event: AnyEvent) -> TypeGuard[Summary | ReplyRejected]:
    """Return True if the event's request asked for a summary."""
    return isinstance(event, Summary) or (isinstance(event, ReplyRejected) and event.purpose == "summary")


def _body(event: ModelCall, context: Context, schemas: Mapping[str, str]) -> bytes:
    if _asks_summary(event):
        return render_request.summary_request(context, event.covers_to, event.words, transcript_bytes_max(context))
    return render_request.request(context, schemas)


def _other_summary(record: Record, event: Summary, today: str) -> ReplayMismatch:
    lines = request_diff.diff_lines(event.text, today)
    difference = RequestDiff(part="the summary", against="the log", lines=lines)
    return _mismatch(record, "reply", "the summary is not what the raw reply says", difference)


def _rejection_mismatch(record: Record, event: ReplyRejected, again: str | None) -> ReplayMismatch:
    today = "it would be accepted" if again is None else f"the reason would be {again!r}"
    text = f"the reply was rejected because {event.text!r}; today {today}"
    return _mismatch(record, "reply", text)


def _mismatch(record: Record, what: str, text: str, difference: RequestDiff | None = None) -> ReplayMismatch:
    place = {"seq": record.seq, "type": record.type, "turn": record.turn}
    return msgspec.convert({**place, "what": what, "text": text, "difference": difference}, ReplayMismatch)


def _notes(calls: CallVerdicts, sample: int | None) -> list[str]:
    """Describe in words what was not checked."""
    notes = []
    if sample is not None and calls.chosen < calls.calls:
        notes.append(f"a sample: {calls.chosen:,} of {calls.calls:,} model calls were looked at")
    for renderer, seqs in sorted(calls.renderer_gone.items()):
        notes.append(f"renderer {renderer} gone: this everlog has {RENDERER}; requests not checked: {span(seqs)}")
    if calls.erased:
        notes.append(f"erased: records needed for a full check were erased: {span(sorted(calls.erased))}")
    for reader, seqs in sorted(calls.reader_gone.items()):
        notes.append(f"reader {reader} gone: this everlog has {parse_reply.READER}; replies not checked: {span(seqs)}")
    for name, seqs in sorted(calls.missing_function.items()):
        notes.append(f"missing function {name}: replies that call it were not executed again: {span(seqs)}")
    return notes
