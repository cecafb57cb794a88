"""Verify, one of the four ways to replay an agent: are the bytes that I would send today the bytes that I sent then,
and do the recorded replies still mean the same? It writes nothing and asks no model.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from typing import TypeGuard

import msgspec

from everlog.actors.agent.local_system import AgentView
from everlog.actors.formats import parse_reply, render_request, request_fingerprints
from everlog.actors.functions.tools import Tool
from everlog.actors.ports.agent_constants import RENDERER
from everlog.actors.prompt.context import Context, context_of, of_turn
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

ModelCall = ModelReply | ReplyRejected | ModelFailed | Summary

_CALL_KINDS = frozenset(cls.kind for cls in MODEL_CALLS)
_KINDS = _CALL_KINDS | {ContextTrimmed.kind, TurnAbandoned.kind}

CALLS_AT_ONCE = 128
BYTES_AT_ONCE = 8 * 2**20
"""Contexts asked of the projections in one query: so many, or as many as have so many bytes of request."""


def sampled(count: int, sample: int, seed: str) -> list[int]:
    """`sample` of the numbers below `count`, spread over all: one of each of as many equal stretches. The same `seed`
    always gives the same ones; all of them where there are no more.
    """
    if sample >= count:
        return list(range(count))
    chosen = []
    for part in range(sample):
        first, end = part * count // sample, (part + 1) * count // sample
        chance = sha256(f"{seed} {part}".encode()).digest()
        chosen.append(first + int.from_bytes(chance) % (end - first))
    return chosen


class Verifier:
    """Makes every request of one agent again, and works every reply off again."""

    def __init__(self, view: AgentView, tools: Mapping[str, Tool], sample: int | None = None, seed: str = "") -> None:
        """`sample`: only so many model calls; `seed` chooses them, by itself the head of the chain."""
        self.report = ReplayReport(view.agent_id)
        self._calls: CallVerdicts = self.report.calls
        self._view = view
        self._tools = tools
        self._sample, self._seed = sample, seed or view.head.chain.hex()
        self._schemas = view.schemas()
        records = list(view.reader.read(view.agent_id))
        self._history = reexecute.RecordHistory(records)
        self._records: Sequence[Record] = records
        self._erasures = ErasureEffects(self._history)
        self._matched: tuple[Record, ModelCall, Context] | None = None
        """The last call whose request is the same."""
        self._seen: dict[int, str] = {}
        """Marks that single messages had in the requests so far, by seq."""
        self._part: str | None = None
        """The part in which the last request that differed differed first."""

    def run(self) -> ReplayReport:
        """Check every model call of the agent, in order, those of earlier lives included."""
        self.report.faults += check_chain.faults(self._records, self._view.head)
        for some in _groups(self._chosen()):
            contexts = self._contexts([self._records[index] for index, _ in some])
            for (index, event), context in zip(some, contexts, strict=True):
                self._judge(index, self._records[index], event, context)
        self.report.faults += [*map(headline, groups(self.report.mismatches)), *self._history.turn_faults()]
        self.report.checked = len(self._calls.equal) + len(self._calls.mismatch)
        self.report.notes += _notes(self._calls, self._sample)
        return self.report

    def _chosen(self) -> list[tuple[int, AnyEvent]]:
        """What is to be checked, by index: model calls, and without a sample what was done where none would fit."""
        found = [(index, event_of(r)) for index, r in enumerate(self._records) if r.type in _KINDS]
        calls = [item for item in found if isinstance(item[1], MODEL_CALLS) and item[1].context_sha256]
        gone = [r.seq for r in self._records if r.type in _CALL_KINDS and r.turn and is_erased(r.payload)]
        self._calls.calls = len(calls) + len(gone)
        if self._sample is None:
            self._calls.erased += gone
            self._calls.chosen = self._calls.calls
            return [item for item in found if isinstance(item[1], MODEL_CALLS) or _is_measure(item[1])]
        chosen = [calls[number] for number in sampled(len(calls), self._sample, self._seed)]
        self._calls.chosen = len(chosen)
        return chosen

    def _contexts(self, records: Sequence[Record]) -> Iterator[Context | None]:
        """For each call the context that it was made of: what the log held just before, less inputs of later turns.

        None where its configuration was erased.
        """
        wanted = [(self.report.agent_id, record.seq - 1) for record in records]
        answers = self._view.projections.answers("context_window", wanted)
        return map(self._context, records, answers)

    def _context(self, record: Record, rows: Sequence[Row]) -> Context | None:
        if not any(row["slot"] == "config" for row in rows):
            return None
        context = of_turn(context_of(record.agent_id, record.seq - 1, rows), record.turn)
        return context if all(function.sha256 in self._schemas for function in context.config.functions) else None

    def _judge(self, index: int, record: Record, event: AnyEvent, context: Context | None) -> None:
        """Check a record. What differs is no fault where what was erased may be why."""
        is_call = isinstance(event, MODEL_CALLS) and bool(event.context_sha256)
        if context is not None and context.config.renderer != RENDERER:
            if is_call and not self._erasures.is_config_sure(index):
                self._calls.erased.append(record.seq)
            elif is_call:
                self._calls.renderer_gone.setdefault(context.config.renderer, []).append(record.seq)
            return
        found = [*self._mismatches(index, record, event, context)] if context is not None else [None]
        faults = [mismatch for mismatch in found if mismatch is not None]
        self.report.mismatches += faults
        if is_call:
            verdict = self._calls.mismatch if faults else self._calls.erased if found else self._calls.equal
            verdict.append(record.seq)

    def _mismatches(
        self, index: int, record: Record, event: AnyEvent, context: Context
    ) -> Iterator[ReplayMismatch | None]:
        """All that is not as it was; None for what may be another because something was erased."""
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
        """Whether what the reply leads to may be another because of what was erased."""
        if isinstance(event, ModelReply) and self._erasures.in_step(index):
            return True
        if doubts is None or isinstance(event, Summary):
            return doubts is not None and doubts.config
        if isinstance(event, ModelReply):
            return doubts.of_desk(request_fingerprints.decode_fingerprints(event.parts))
        return doubts.config or (event.purpose == "summary" and doubts.of_transcript)

    def _is_measure_excused(self, index: int, event: AnyEvent, doubts: UncertainParts | None) -> bool:
        """Whether something else may be done about the context because of what was erased."""
        if not _is_measure(event):
            return doubts is not None and (doubts.config or doubts.reply)
        return (doubts is not None and doubts.of_any) or self._erasures.in_step(index)

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
        self._seen.update((int(name), mark) for name, mark in marks.items() if name.isdecimal())

    def _differing(
        self, record: Record, event: ModelCall, context: Context, doubts: UncertainParts | None, sizes: str
    ) -> ReplayMismatch | None:
        """Where a request differs; None if only in what may differ."""
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
        """Marks of then and parts of today less those that may differ; None if nothing else does."""
        today, parted = now.parts, set[int]()
        if not _asks_summary(event):
            request = render_request.compose(now.context, self._schemas)
            today = request_fingerprints.of_request(now.context, request, set(newest_of(then)))
            parted = request_fingerprints.repeated_seqs(request)
        excused_names = doubts.excused(then, today, parted)
        found = request_fingerprints.fingerprints(today)
        sure = {name: mark for name, mark in then.items() if name not in excused_names}
        rest = {name: part for name, part in today.items() if name not in excused_names}
        if list(sure.items()) != list(request_fingerprints.fingerprints(rest).items()):
            return sure, msgspec.structs.replace(now, parts=rest)
        return None if found != then or doubts.config else (then, msgspec.structs.replace(now, parts=today))

    def _made(self, record: Record, event: ModelCall, context: Context) -> RebuiltRequest:
        """A request and its parts, as they are made today."""
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
        """Read the raw reply again: it must say what it said, be refused as it was, leave what it left."""
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
        """Read a reply again and work it off: it must leave what it left."""
        reply = reexecute.reply_of(event, context)
        if gone := reexecute.missing(reply, context, self._tools):
            for name in gone:
                self._calls.missing_function.setdefault(name, []).append(record.seq)
            return
        difference = reexecute.reply_difference(self._history, index, reply, context, self._tools)
        if difference is not None:
            yield _mismatch(record, "reply", difference.part, difference)

    def _measure_fault(self, index: int, record: Record, event: AnyEvent, context: Context) -> str | None:
        """Why something else would be done about the size of the context today."""
        if not _is_measure(event):
            if not isinstance(event, MODEL_CALLS) or not event.context_sha256:
                return None
            return check_fitting.sending_fault(event.context_bytes, context)
        size = len(render_request.request(context, self._schemas))
        overflowed = self._overflowed(index, context)
        return check_fitting.taking_fault(event, size, context, step=record.step, overflowed=overflowed)

    def _overflowed(self, index: int, context: Context) -> bool:
        """Whether the endpoint had just refused a request as too long, or a reply had run out of the window."""
        for record in self._history.before_in_step(index):
            event = event_of(record)
            if not isinstance(event, ModelSwitched) and not (_asks_summary(event) and isinstance(event, ReplyRejected)):
                return isinstance(event, ReplyRejected) and reexecute.has_overflowed(event, context)
        return False


def _groups(items: Sequence[tuple[int, AnyEvent]]) -> Iterator[list[tuple[int, AnyEvent]]]:
    """As many at a time as are looked at together."""
    some: list[tuple[int, AnyEvent]] = []
    size = 0
    for item in items:
        some.append(item)
        size += item[1].context_bytes if isinstance(item[1], MODEL_CALLS) else 0
        if len(some) >= CALLS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _is_measure(event: AnyEvent) -> TypeGuard[check_fitting.AppliedMeasure]:
    """Whether it was done, or tried, because a context did not fit."""
    if isinstance(event, TurnAbandoned):
        return event.reason == "context"
    return isinstance(event, ContextTrimmed) or _asks_summary(event)


def _asks_summary(event: AnyEvent) -> TypeGuard[Summary | ReplyRejected]:
    """Whether its request was one for a summary."""
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
    text = f"the reply was refused because {event.text!r}, and would now be because {again!r}"
    return _mismatch(record, "reply", text)


def _mismatch(record: Record, what: str, text: str, difference: RequestDiff | None = None) -> ReplayMismatch:
    place = {"seq": record.seq, "type": record.type, "turn": record.turn}
    return msgspec.convert({**place, "what": what, "text": text, "difference": difference}, ReplayMismatch)


def _notes(calls: CallVerdicts, sample: int | None) -> list[str]:
    """What was not checked, in words."""
    notes = []
    if sample is not None and calls.chosen < calls.calls:
        notes.append(f"a sample: {calls.chosen:,} of {calls.calls:,} model calls were looked at")
    for renderer, seqs in sorted(calls.renderer_gone.items()):
        notes.append(f"renderer {renderer} gone: this everlog has {RENDERER}; not made again: {span(seqs)}")
    if calls.erased:
        notes.append(f"erased: not all that it takes is left to make them again: {span(sorted(calls.erased))}")
    for reader, seqs in sorted(calls.reader_gone.items()):
        notes.append(f"reader {reader} gone: this everlog has {parse_reply.READER}; not read again: {span(seqs)}")
    for name, seqs in sorted(calls.missing_function.items()):
        notes.append(f"missing function {name}: what its calls led to was not worked off again: {span(seqs)}")
    return notes


def verify(view: AgentView, tools: Mapping[str, Tool], sample: int | None = None, seed: str = "") -> ReplayReport:
    """Check every request and every reply of the agent, or those of a sample, against the log alone."""
    return Verifier(view, tools, sample, seed).run()
