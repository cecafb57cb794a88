"""Find out which parts of a checked call erased records may have changed. Pure.

A tombstone keeps the type and the position of its record. From these follow the parts of a request that the record may
have been in. Every other part must still be what it was. Used by `verify.py`. A part that is wrongly taken as
unaffected makes `verify` report a mismatch after an erasure.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence

import msgspec

from everlog.actors.formats.request_fingerprints import RequestParts
from everlog.actors.prompt.context import Context
from everlog.actors.replay.reexecute import RecordHistory
from everlog.events import (
    AgentConfigured,
    BlockRemoved,
    ContextTrimmed,
    FunctionResult,
    MemoryEdited,
    MessageSent,
    ModelReply,
    ReplyRethought,
    Summary,
    SummaryExpanded,
    SystemAlert,
    TurnsHidden,
    UserMessage,
    is_erased,
)

_CHANGES = frozenset({AgentConfigured.kind, MemoryEdited.kind, BlockRemoved.kind, Summary.kind, SummaryExpanded.kind})
"""The memory header shows the state at the newest record of one of these types."""
_COUNTED = frozenset({UserMessage.kind, MessageSent.kind, "archival_inserted", "archival_deleted"})
"""Types of records that the memory header counts."""
_IMPORTED = frozenset({UserMessage.kind, MessageSent.kind})
"""Types of records that may belong to an imported conversation, which is shown even if its turn is hidden."""
_OF_A_CALL = frozenset({ModelReply.kind, FunctionResult.kind})


class UncertainParts(msgspec.Struct, frozen=True):
    """Parts of a call that may differ today because records were erased."""

    config: bool
    """Prompt, functions, zone, window, model."""
    reply: bool
    """Usage figures of the last reply, from which tokens are estimated."""
    summary: bool
    """Summary, and with it the seq at which the context begins."""
    hidden: bool
    """True if turns that were hidden may be shown."""
    header: bool
    warned: bool
    """True if the agent may have been warned, or not warned, that its context is nearly full."""
    edited: int
    """Seq of the newest erased change of a memory block. A block that changed later is certain."""
    blocks: bool
    """True if blocks may be cut at a different length."""
    messages: Collection[int]
    """Seqs of messages that may differ."""
    torn: Collection[int]
    """Seqs of all messages in a group (a reply and its function results) of which one message may differ."""
    context: Context

    @property
    def transcript_may_differ(self) -> bool:
        """True if the text that a summary was requested of may differ."""
        return self.config or self.reply or self.summary or self.hidden or bool(self.messages)

    @property
    def any_may_differ(self) -> bool:
        """True if any part of a request may differ."""
        return self.transcript_may_differ or self.header or self.blocks or bool(self.edited)

    def memory_may_differ(self, then: Iterable[str]) -> bool:
        """Return True if the memory that a reply is executed on may differ;
        `then`: the names of its request's parts.
        """
        labels = [name for name in (*then, *(f"block {b.label}" for b in self.context.blocks)) if _is_block(name)]
        return self.config or self.warned or any(self._is_edited(name) for name in labels)

    def excused(self, then: Iterable[str], today: RequestParts, parted: Collection[int] = ()) -> set[str]:
        """Return the names of parts that may differ; `today`: today's parts, grouped as in `then`.

        `parted`: seqs of records that are shown in more than one place.
        """
        newest = newest_of(then)
        names = {name for name in (*then, *today) if self._may_differ(name, newest, today)}
        names.update(name for name in (*then, *today) if _seq_of(name) in parted)
        if not {*parted}.isdisjoint(newest):
            names.add("messages")
        return names

    def _may_differ(self, name: str, newest: Sequence[int], today: RequestParts) -> bool:
        if name == "instructions":
            return False
        if _is_block(name):
            return self.blocks or self._is_edited(name)
        if self.config:
            return True
        match name:
            case "prompt" | "functions":
                return False
            case "header":
                return self.header
            case "summary":
                return self.summary
            case "transcript":
                return self.transcript_may_differ
            case "messages":
                return self._older_may_differ(newest)
        return _seq_of(name) in self.messages or (self.summary and name not in today)

    def _is_edited(self, name: str) -> bool:
        """Return True if an erased change may have been the newest of this block."""
        seqs = [b.seq for b in self.context.blocks if f"block {b.label}" == name]
        return self.edited > max(seqs, default=0)

    def _older_may_differ(self, newest: Sequence[int]) -> bool:
        """Return True if the part "messages", which holds the older messages, may differ: an uncertain message is one
        of them, or the group of the first newest message reaches back into them.
        """
        if self.summary or self.hidden or not set(self.messages) <= set(newest):
            return True
        return bool(newest) and newest[0] in self.torn


def _is_block(name: str) -> bool:
    return name.startswith("block ")


def _seq_of(name: str) -> int | None:
    """Return the seq of a message that has its own fingerprint; None for any other part."""
    digits = name.rstrip("+")
    return int(digits) if digits.isdecimal() else None


def newest_of(then: Iterable[str]) -> list[int]:
    """Return the seqs of the messages that have their own fingerprint."""
    return [seq for seq in map(_seq_of, then) if seq is not None]


class ErasureEffects:
    """Erased records of an agent, and the parts of calls that are uncertain because of them."""

    def __init__(self, history: RecordHistory) -> None:
        self._history = history
        records = history.records
        self._gone = [index for index, record in enumerate(records) if is_erased(record.payload)]
        self._configs = self._standing(AgentConfigured.kind)
        self._replies = self._standing(ModelReply.kind)
        self._trims = [index for index, record in enumerate(records) if record.type == ContextTrimmed.kind]

    def _standing(self, kind: str) -> list[int]:
        """Return the indexes of the records of a type that were not erased.
        Replies of turn 0, the boot messages, are left out.
        """
        found = [index for index, record in enumerate(self._history.records) if record.type == kind]
        is_reply = kind == ModelReply.kind
        records = self._history.records
        return [i for i in found if not is_erased(records[i].payload) and (records[i].turn or not is_reply)]

    def is_config_sure(self, index: int) -> bool:
        """Return True if the configuration that a call is checked with is certainly the one that it had."""
        records = self._history.records
        gone = [i for i in self._before(self._gone, index) if records[i].type == AgentConfigured.kind]
        return not gone or gone[-1] < self._last(self._configs, index)

    def in_step(self, index: int) -> bool:
        """Return True if the step of the reply at `index` has an erased record: before the reply, or among the records
        that the reply left.
        """
        step = [*self._history.of_step(index), *self._history.before_in_step(index)]
        return any(is_erased(record.payload) for record in step)

    def doubts(self, index: int, context: Context) -> UncertainParts | None:
        """Return what is uncertain of the call at `index`, which has this context;
        None if no record before it was erased.
        """
        records = self._history.records
        gone = self._before(self._gone, index)
        if not gone:
            return None
        newest = {records[i].type: i for i in gone}
        last = {kind: records[i].seq for kind, i in newest.items()}
        config = newest.get(AgentConfigured.kind, -1) > self._last(self._configs, index)
        replies = [i for i in gone if records[i].type == ModelReply.kind and records[i].turn]
        shown = context.summary.seq if context.summary else 0
        summary = max(last.get(Summary.kind, 0), last.get(SummaryExpanded.kind, 0)) > shown
        configured = self._last(self._configs, index)
        changed = max(records[configured].seq if configured >= 0 else 0, shown, *(b.seq for b in context.blocks), 0)
        view = self._in_view(gone, context, records[index].turn, everything=summary)
        kinds = {records[i].type for i in view}
        trimmed = ContextTrimmed.kind in kinds
        return UncertainParts(
            config=config,
            reply=bool(replies) and replies[-1] > self._last(self._replies, index),
            summary=summary,
            hidden=TurnsHidden.kind in kinds,
            header=config
            or any(last.get(kind, 0) > changed for kind in _CHANGES)
            or any(records[i].type in _COUNTED and records[i].seq < changed for i in gone),
            warned=summary or not kinds.isdisjoint({TurnsHidden.kind, SystemAlert.kind}),
            edited=max(last.get(MemoryEdited.kind, 0), last.get(BlockRemoved.kind, 0)),
            blocks=trimmed or (summary and bool(self._before(self._trims, index))),
            messages=self._messages(view, context),
            torn={seq for i in view for seq in self._call(i)},
            context=context,
        )

    def _before(self, indexes: Sequence[int], index: int) -> Sequence[int]:
        """Return those indexes that are before a record, in the same incarnation."""
        first = self._history.begin_of(index)
        return indexes[bisect_left(indexes, first) : bisect_left(indexes, index)]

    def _last(self, indexes: Sequence[int], index: int) -> int:
        """Return the last of the indexes before a record; -1 if there is none."""
        some = self._before(indexes, index)
        return some[-1] if some else -1

    def _in_view(self, gone: Sequence[int], context: Context, turn: int, *, everything: bool) -> list[int]:
        """Return the indexes of erased records that the context may have shown or applied."""
        begin = getattr(context.summary.event, "kept_from", 0) if context.summary else 0
        shown = {message.seq for message in context.messages}
        records = self._history.records
        return [
            i
            for i in gone
            if records[i].turn <= turn
            and (everything or records[i].seq in shown or (records[i].type in _IMPORTED and records[i].seq >= begin))
        ]

    def _messages(self, view: Sequence[int], context: Context) -> set[int]:
        """Return the messages that may be shown differently:
        the erased ones, and those that erased records were about.
        """
        records = self._history.records
        found: set[int] = set()
        for i in view:
            record = records[i]
            found.add(record.seq)
            if record.type == ModelReply.kind:
                found.update(self._call(i))
            elif record.type == FunctionResult.kind:
                found.update(self._call(i, of=ModelReply.kind))
            elif record.type == ContextTrimmed.kind:
                found.update(m.seq for m in context.messages if m.seq < record.seq)
            elif record.type == ReplyRethought.kind:
                found.update(m.seq for m in context.messages if m.seq < record.seq and m.event.kind == ModelReply.kind)
        return found

    def _call(self, index: int, of: str = "") -> Iterable[int]:
        """Yield the seqs of the reply and the results of a step, if the record is one of them;
        `of`: of this type only.
        """
        record = self._history.records[index]
        if record.type not in _OF_A_CALL:
            return
        for other in self._history.of_turn(index):
            if other.step == record.step and other.type in _OF_A_CALL and (not of or other.type == of):
                yield other.seq
