"""What is done again in a rerun, and what came of it then: the past of an agent from a seq on. Pure.

A rerun begins between turns. What was written from there on is of two sorts: acts, which are what people, timers and
programs did, and are done again; and what followed from them, which follows anew.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import msgspec

from everlog.actors.formats.parse_reply import arguments
from everlog.actors.functions.memgpt_functions import ALIASES
from everlog.actors.functions.tools import HEARTBEAT, Tool
from everlog.events import INPUTS, Event, FunctionError, FunctionResult, ModelReply, Record, event_of, is_erased

ExternalInputKind = Literal[
    "input", "by_hand", "configured", "import", "hide", "retry", "rethink", "summarize", "expand"
]
"""`by_hand`: an edit that names no record, as a timer or a memory; the others are as the agent's methods are called."""

_PLUMBING = frozenset({"agent_forked", "agent_moved", "records_erased"})
"""Where records are, not what happened: the commit of one is passed over."""

_ACTS: Mapping[str, ExternalInputKind] = {
    **dict.fromkeys(INPUTS, "input"),
    "message_sent": "import",
    "agent_configured": "configured",
    "turns_hidden": "hide",
    "reply_rethought": "rethink",
    "summary": "summarize",
    "reply_rejected": "summarize",
    "summary_expanded": "expand",
    **dict.fromkeys(
        (
            "memory_edited", "archival_inserted", "archival_updated", "archival_deleted", "source_attached",
            "source_detached", "timer_set", "timer_cancelled",
        ),
        "by_hand",
    ),
}  # fmt: skip
_FOLLOWING = frozenset({"context_trimmed", "turn_abandoned", "turn_cancelled"})
"""What may be written outside of a step and is no act."""


class ExternalInput(msgspec.Struct, frozen=True):
    """Something that was done to the agent: one commit of step 0."""

    kind: ExternalInputKind
    index: int
    """Place of its first record in the past, from 0."""
    records: Sequence[Record]

    @property
    def opens(self) -> bool:
        """Whether it opens a turn."""
        return self.kind in ("input", "retry")


class RecordedPast(msgspec.Struct, frozen=True):
    """The records from a seq on to the end of that life, and the acts among them."""

    cut: int
    """Seq of the last record before."""
    records: Sequence[Record]
    acts: Sequence[ExternalInput]
    left_out: Sequence[Record]
    """What was done and cannot be done again: it was erased, or is of a kind that this everlog does not know."""

    @property
    def inputs(self) -> list[ExternalInput]:
        """The acts that opened turns."""
        return [act for act in self.acts if act.opens]

    def upto(self, turns: int | None) -> "RecordedPast":
        """The past with so many turns at most; None: all. Acts by hand after the last of them are left out too."""
        inputs = self.inputs
        if turns is None or len(inputs) <= turns:
            return self
        last, over = inputs[turns - 1].records[0].turn, inputs[turns]
        kept = [
            record for number, record in enumerate(self.records)
            if record.turn <= last and (number < over.index or record.step)
        ]  # fmt: skip
        return RecordedPast(self.cut, kept, *_acts(kept))


def commits(records: Sequence[Record]) -> Iterator[list[Record]]:
    """The commits of a stretch of records, in order."""
    for _, commit in groupby(records, key=lambda record: (record.agent_id, record.commit)):
        yield list(commit)


def first_of_commit(records: Sequence[Record], seq: int) -> int:
    """The seq at which the commit begins that holds this one; after the birth of the agent, if that holds it.

    `records` are all of the agent's, from seq 1 on.
    """
    for commit in commits(records):
        if commit[0].seq <= seq <= commit[-1].seq:
            return commit[-1].seq + 1 if commit[0].type == "agent_created" else commit[0].seq
    return seq


def past_of(records: Sequence[Record], cut: int) -> RecordedPast:
    """What came after the cut, of all records of an agent, until it was deleted."""
    then: list[Record] = []
    for commit in commits(records[cut:]):
        if commit[0].type == "agent_deleted":
            break
        if commit[0].type not in _PLUMBING:
            then += commit
    return RecordedPast(cut, then, *_acts(then))


def last_input(records: Sequence[Record]) -> int:
    """Seq of the last record, of all of an agent's, that opened a turn; 0 if none did."""
    return max((act.records[0].seq for act in _acts(records)[0] if act.opens), default=0)


def _acts(then: Sequence[Record]) -> tuple[list[ExternalInput], list[Record]]:
    acts: list[ExternalInput] = []
    left_out: list[Record] = []
    index = 0
    tried = False  # a summary by hand was asked for, and its next attempt is no act of its own
    for commit in commits(then):
        kind = _kind(commit)
        if kind == "summarize":
            follows = tried or (bool(acts) and acts[-1].kind == "import")
            tried = commit[0].type == "reply_rejected"
            kind = None if follows else kind
        if kind == "unknown":
            left_out.append(commit[0])
        elif kind is not None:
            acts.append(ExternalInput(kind, index, commit))
        index += len(commit)
    return acts, left_out


def _kind(commit: Sequence[Record]) -> ExternalInputKind | Literal["unknown"] | None:
    """What a commit is as an act; None where it followed from others."""
    first = commit[0]
    if first.step or first.type in _FOLLOWING:
        return None
    if is_erased(first.payload):
        return "unknown"
    kind: ExternalInputKind | Literal["unknown"] = _ACTS.get(first.type, "unknown")
    if kind == "input" and getattr(event_of(first), "imported", False):
        return "import"
    if kind == "input" and any(record.type == "turns_hidden" for record in commit):
        return "retry"
    return kind


CallKey = tuple[str, str]
"""Name of a function, and its arguments as canonical JSON."""


def key_of(tool: Tool | None, name: str, text: str) -> CallKey:
    """What a call is known by: its arguments as the function would get them, without the heartbeat."""
    try:
        given = arguments(text)
    except (ValueError, TypeError):
        return name, text
    given.pop(HEARTBEAT, None)
    try:
        return name, canonical(given if tool is None else tool.bind(given))
    except FunctionError:
        return name, canonical(given)


def canonical(given: Mapping[str, Any]) -> str:
    """Arguments as text: the same for the same values, in whatever order."""
    return msgspec.json.encode(msgspec.to_builtins(dict(given)), order="sorted").decode()


def plain_name(name: str) -> str:
    """The name of a function today."""
    return ALIASES.get(name, name)


def results_of(records: Sequence[Record]) -> Iterator[tuple[Record, str, str, FunctionResult | None]]:
    """Every call among records: the record of its reply, its name and arguments, and its result, if it has one."""
    answered: dict[tuple[int, int, str], FunctionResult] = {}
    asked: list[tuple[Record, ModelReply]] = []
    for record in records:
        event = event_of(record)
        if isinstance(event, FunctionResult):
            answered[record.turn, record.step, event.call_id] = event
        elif isinstance(event, ModelReply):
            asked.append((record, event))
    for record, reply in asked:
        for call in reply.calls:
            yield record, plain_name(call.name), call.arguments, answered.get((record.turn, record.step, call.id))


class RecordedResults:
    """Results of the past, each given once: to the same call, as often as it was made. There is no next best."""

    def __init__(self) -> None:
        self._left: dict[CallKey, list[FunctionResult]] = defaultdict(list)

    def add(self, key: CallKey, result: FunctionResult) -> None:
        """Another result of that call."""
        self._left[key].append(result)

    def take(self, key: CallKey) -> FunctionResult | None:
        """What came of the call then, the first that was not taken yet; None if it was not made so often."""
        left = self._left.get(key)
        return left.pop(0) if left else None


def edits_of(records: Sequence[Record], name: str) -> bool:
    """Whether a function of that name edited memory in one of these calls: its result alone is not what it did."""
    edited = False
    for record in records:
        if record.type == "function_result":
            if edited and msgspec.json.decode(record.payload).get("name") == name:
                return True
            edited = False
        elif record.type in ("model_reply", "function_started"):
            edited = False
        else:
            edited = edited or record.type == "memory_edited"
    return False


def events_in(records: Sequence[Record]) -> list[Event]:
    """The typed events of an act, of those kinds that are known."""
    return [event for event in map(event_of, records) if isinstance(event, Event)]


def fork_point_before(records: Sequence[Record], seq: int, open_at: Callable[[int], Sequence[int]]) -> int:
    """The cut of a rerun from `seq` on: the last record before it at which no commit and no turn is cut in two.

    `records` are all of the agent's; `open_at` tells at which seqs the turns began that are open as of a seq. The
    birth of an agent is not done again: from within it, the cut is its end.
    """
    start = first_of_commit(records, seq)
    while (begun := open_at(start - 1)) and min(begun) < start:
        start = first_of_commit(records, min(begun))
    return start - 1
