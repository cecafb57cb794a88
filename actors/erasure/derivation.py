"""Find the records of a stream that followed from those that an erasure takes. Pure.

Used by `stream_scan.py` and `erasure_plan.py`. A record follows from another one by cause: a later step of the same
turn had it in view, a summary covers it, an update changes the memory that it stored, a derived memory rests on it. It
follows by words if it says a run of its words. Records without words follow from nothing: erasing a deletion would
bring back what it deleted.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from everlog.actors.erasure.record_words import SoughtWords, Words, added_words, pieces_of_json, words_of
from everlog.actors.erasure.selection import of_turn
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.mail.mail_functions import OPTIONAL_FUNCTIONS
from everlog.events import (
    AgentConfigured,
    AgentCreated,
    AgentMessageSent,
    ApprovalDecided,
    ApprovalRequested,
    ArchivalInserted,
    ArchivalUpdated,
    DerivationReplied,
    DocumentLoaded,
    FunctionResult,
    FunctionStarted,
    Heartbeat,
    MemoryEdited,
    MessageSent,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    Record,
    ReplyRejected,
    ReplyRethought,
    Summary,
    SummaryExpanded,
    SystemAlert,
    TimerSet,
)
from everlog.events.kinds import DERIVED, INPUTS

_FOLLOWING = frozenset(
    kind.kind
    for kind in (
        ModelReply, ReplyRejected, ModelFailed, ModelSwitched, FunctionStarted, FunctionResult, MessageSent,
        MemoryEdited, ArchivalInserted, ArchivalUpdated, TimerSet, Summary, SystemAlert, ReplyRethought, Heartbeat,
        ApprovalRequested, AgentMessageSent,
    )
)  # fmt: skip
"""Kinds of records that hold words and that a turn can make."""
_STORED = frozenset(
    kind.kind for kind in (MemoryEdited, ArchivalInserted, ArchivalUpdated, Summary, DocumentLoaded, SummaryExpanded)
)
"""Kinds of records whose words are kept to be said again: all words of such a record are looked for."""
_WITH_ARGUMENTS = frozenset(kind.kind for kind in (FunctionStarted, ApprovalRequested, ApprovalDecided))
"""Kinds of records that repeat the arguments of a call."""
_RESTING = frozenset((*DERIVED, DerivationReplied.kind))
"""Kinds of records that name the records that they rest on, or that a model was shown."""
_REPLIES = frozenset(kind.kind for kind in (ModelReply, MessageSent, ReplyRejected))
_SETUP = frozenset(kind.kind for kind in (AgentConfigured, AgentCreated, MemoryEdited))
_OWN_FUNCTIONS = frozenset(tool.name for tool in (*BUILTIN, *OPTIONAL_FUNCTIONS))
"""Functions whose results repeat what other records say."""
_CARRIED_CHARS_MIN = 3


class CauseTracker:
    """Records of one stream that are taken so far, and which later record each of them caused."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._steps: dict[int, tuple[int, int]] = {}
        """By turn: the first step that a taken record may have changed, and the seq of that record."""
        self._memories: dict[str, int] = {}
        self._summary = 0
        """Seq of the newest taken summary: each summary is made from the one before."""

    def take(self, record: Record, payload: Mapping[str, Any], *, by_words: bool = False) -> None:
        """Take a record. `by_words`: it is taken for its words alone, so the rest of its turn need not follow."""
        insort(self._seqs, record.seq)
        if record.type == Summary.kind:
            self._summary = record.seq
        if record.type == ArchivalInserted.kind:
            self._memories[record.event_id] = record.seq
        if by_words or not of_turn(record, payload):
            return
        first = record.step if record.type == ModelReply.kind else record.step + 1
        if record.turn not in self._steps or first < self._steps[record.turn][0]:
            self._steps[record.turn] = first, record.seq

    def cause_of(self, record: Record, payload: Mapping[str, Any]) -> int:
        """Return the seq of the taken record that caused a later one; 0 for none."""
        if record.type == Summary.kind and (covered := self._covered(payload)):
            return covered
        if record.type == AgentMessageSent.kind and (
            told := self._within(payload.get("from_seq", 0), payload.get("to_seq", 0))
        ):
            return told
        if record.type == ApprovalDecided.kind and (request := self._among([payload.get("request", 0)])):
            return request
        if record.type in _RESTING and (source := self._among(payload.get("sources", ()))):
            return source
        if record.type == ArchivalUpdated.kind and (stored := self._memories.get(payload.get("memory_id", ""))):
            return stored
        if record.turn in self._steps and record.type in _FOLLOWING and record.type not in INPUTS:
            first, seq = self._steps[record.turn]
            if record.step >= max(first, 1) and of_turn(record, payload):
                return seq
        return 0

    def _covered(self, payload: Mapping[str, Any]) -> int:
        if self._summary:
            return self._summary
        return self._within(payload.get("covers_from", 0), payload.get("covers_to", 0))

    def _within(self, first: int, last: int) -> int:
        """Return the first taken record from one seq to another, both inclusive; 0 for none."""
        place = bisect_left(self._seqs, first)
        found = self._seqs[place] if place < len(self._seqs) else 0
        return found if found <= last else 0

    def _among(self, seqs: Iterable[int]) -> int:
        """Return the first of some seqs whose record is taken; 0 for none."""
        for seq in seqs:
            place = bisect_left(self._seqs, seq)
            if place < len(self._seqs) and self._seqs[place] == seq:
                return int(seq)
        return 0


class WordSource:
    """Words that the taken records of one stream say, collected in one pass over the stream in order."""

    def __init__(self, sought: SoughtWords) -> None:
        self.sought = sought
        self._blocks: dict[str, str] = {}
        """Newest value of each memory block."""
        self._begun = False
        self._said: set[str] = set()
        """Words of the records before, without those that are taken."""
        self._carried: set[str] = set()
        """Words that the selected records said first: a reply that repeats one of them repeats the record."""

    def keep(self, record: Record, payload: Mapping[str, Any]) -> None:
        """Pass over a record that is not taken."""
        if record.type in INPUTS:
            self._begun = True
        if not self._begun and record.type in _SETUP:
            self.sought.exclude([record.text or ""])
        self._said.update(words_of(record.text or ""))
        self._remember(record, payload)

    def take(self, record: Record, payload: Mapping[str, Any], *, caused: bool, whole: bool) -> None:
        """Look for the words of a record that is taken. `caused`: it only followed from a selected record.

        `whole`: False if the record was selected for a phrase that it says, and not for its other words.
        """
        if record.type in INPUTS:
            self._begun = True
        pieces = list(self._pieces(record, payload)) if whole else []
        self._remember(record, payload)
        if not caused:
            words = {word for piece in pieces for word in piece}
            self._carried |= {word for word in words - self._said if _is_rare(word)}
        carried = frozenset(self._carried) if caused and record.type not in _STORED else None
        for piece in pieces:
            self.sought.add(piece, f"{record.agent_id} {record.seq}", carried)

    def _remember(self, record: Record, payload: Mapping[str, Any]) -> None:
        if record.type == MemoryEdited.kind:
            self._blocks[payload["label"]] = record.text or ""

    def _pieces(self, record: Record, payload: Mapping[str, Any]) -> Iterator[Words]:
        """Yield the words of each text that a record says first."""
        if record.type == FunctionResult.kind and payload.get("name") in _OWN_FUNCTIONS:
            return
        if record.type == MemoryEdited.kind:
            yield added_words(self._blocks.get(payload["label"], ""), record.text or "")
            return
        if record.type != AgentConfigured.kind:
            yield words_of(record.text or "")
        if record.type in _REPLIES:
            yield words_of(str(payload.get("said", "")))
            for call in payload.get("calls", ()):
                for piece in pieces_of_json(call["arguments"]):
                    yield words_of(piece)
        if record.type == ApprovalRequested.kind and (question := payload.get("question")):
            yield words_of(f"{question['text']} {question.get('state', '')}")
        if record.type in _WITH_ARGUMENTS:
            for piece in pieces_of_json(payload.get("arguments", "")):
                yield words_of(piece)


def is_bare(record: Record) -> bool:
    """Return True for the result of a call that says only that the call is done."""
    return record.type == FunctionResult.kind and (record.text or "None") == "None"


def _is_rare(word: str) -> bool:
    return len(word) >= _CARRIED_CHARS_MIN or any(sign.isdigit() for sign in word)
