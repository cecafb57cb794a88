"""Split the recorded past of an agent, from a seq on, into external inputs and their consequences. Pure.

A rerun begins between turns. It repeats the external inputs: what people, timers and programs did. The consequences
(replies, results, edits) are not repeated; the fork makes its own. Used by the other files of this folder. An event
type of a new external input must be added to `_INPUT_KINDS`, or a rerun leaves the input out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import msgspec

from everlog.actors.formats.parse_reply import arguments
from everlog.actors.functions.memgpt_functions import ALIASES
from everlog.actors.functions.tools import HEARTBEAT, Tool
from everlog.events import (
    INPUTS,
    ApprovalDecided,
    ApprovalRequested,
    Event,
    FunctionError,
    FunctionResult,
    ModelReply,
    Record,
    event_of,
    is_erased,
)

ExternalInputKind = Literal[
    "input", "by_hand", "configured", "import", "hide", "retry", "rethink", "summarize", "expand"
]
"""Kind of an external input. `by_hand`: an edit that names no record, such as a timer or a memory. The other kinds are
named after the agent's methods.
"""

_STORAGE_TYPES = frozenset({"agent_forked", "agent_moved", "records_erased", "agent_message_settled"})
"""Types of records that say where records are, or that a message has left, not what happened. A commit that begins with
such a record is skipped.
"""

_INPUT_KINDS: Mapping[str, ExternalInputKind] = {
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
"""Kind of an external input, by the type of its first record."""
_CONSEQUENCE_TYPES = frozenset({"context_trimmed", "turn_abandoned", "turn_cancelled"})
"""Types of records that may be written outside of a step without being an external input."""


class ExternalInput(msgspec.Struct, frozen=True):
    """One external input to the agent: one commit of step 0."""

    kind: ExternalInputKind
    index: int
    """Index of its first record in `RecordedPast.records`, from 0."""
    records: Sequence[Record]

    @property
    def opens(self) -> bool:
        """True if the input opens a turn."""
        return self.kind in ("input", "retry")


class RecordedPast(msgspec.Struct, frozen=True):
    """Records from a seq to the end of that incarnation, and the external inputs among them."""

    cut: int
    """Fork point: seq of the last record before these."""
    records: Sequence[Record]
    acts: Sequence[ExternalInput]
    left_out: Sequence[Record]
    """First record of each input that cannot be repeated: it was erased, or a rerun does not know its type."""

    @property
    def inputs(self) -> list[ExternalInput]:
        """External inputs that open turns."""
        return [act for act in self.acts if act.opens]

    def upto(self, turns: int | None) -> "RecordedPast":
        """Return the past with at most so many turns; None: all of it.
        Inputs after the last of them are left out too.
        """
        inputs = self.inputs
        if turns is None or len(inputs) <= turns:
            return self
        last, over = inputs[turns - 1].records[0].turn, inputs[turns]
        # The next input may arrive before the last kept turn ends:
        # that turn's steps stay, although they come after the input.
        kept = [
            record for number, record in enumerate(self.records)
            if record.turn <= last and (number < over.index or record.step)
        ]  # fmt: skip
        return RecordedPast(self.cut, kept, *_acts(kept))


def commits(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield the commits of consecutive records, in order."""
    for _, commit in groupby(records, key=lambda record: (record.agent_id, record.commit)):
        yield list(commit)


def first_of_commit(records: Sequence[Record], seq: int) -> int:
    """Return the seq of the first record of the commit that holds `seq`. If the commit creates the agent, return the
    seq after it.

    `records` are all records of the agent, from seq 1 on.
    """
    for commit in commits(records):
        if commit[0].seq <= seq <= commit[-1].seq:
            return commit[-1].seq + 1 if commit[0].type == "agent_created" else commit[0].seq
    return seq


def past_of(records: Sequence[Record], cut: int) -> RecordedPast:
    """Return the records after seq `cut` until the agent was deleted. `records` are all records of the agent."""
    then: list[Record] = []
    for commit in commits(records[cut:]):
        if commit[0].type == "agent_deleted":
            break
        if commit[0].type not in _STORAGE_TYPES:
            then += commit
    return RecordedPast(cut, then, *_acts(then))


def last_input(records: Sequence[Record]) -> int:
    """Return the seq of the last record that opened a turn, among all records of an agent; 0 if there is none."""
    return max((act.records[0].seq for act in _acts(records)[0] if act.opens), default=0)


def _acts(then: Sequence[Record]) -> tuple[list[ExternalInput], list[Record]]:
    """Return the external inputs, and the first record of each input that cannot be repeated."""
    acts: list[ExternalInput] = []
    left_out: list[Record] = []
    index = 0
    tried = False  # True after a rejected summary by hand: its next attempt is no input of its own
    for commit in commits(then):
        kind = _kind(commit)
        if kind == "summarize":
            # An import summarizes by itself, and a rejected summary is tried again: neither was asked for by a person.
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
    """Return the kind of the external input that a commit is; None if the commit followed from other records."""
    first = commit[0]
    if first.step or first.type in _CONSEQUENCE_TYPES:
        return None
    if is_erased(first.payload):
        return "unknown"
    kind: ExternalInputKind | Literal["unknown"] = _INPUT_KINDS.get(first.type, "unknown")
    if kind == "input" and getattr(event_of(first), "imported", False):
        return "import"
    if kind == "input" and any(record.type == "turns_hidden" for record in commit):
        return "retry"
    return kind


CallKey = tuple[str, str]
"""Name of a function, and its arguments as canonical JSON."""


def key_of(tool: Tool | None, name: str, text: str) -> CallKey:
    """Return the key of a call: the arguments as the function would get them, without the request for a heartbeat."""
    try:
        given = arguments(text)
    except (ValueError, TypeError):
        # Arguments that are not valid JSON are compared as text.
        return name, text
    given.pop(HEARTBEAT, None)
    try:
        return name, canonical(given if tool is None else tool.bind(given))
    except FunctionError:
        return name, canonical(given)


def canonical(given: Mapping[str, Any]) -> str:
    """Encode arguments as text that is the same for the same values in any order."""
    return msgspec.json.encode(msgspec.to_builtins(dict(given)), order="sorted").decode()


def plain_name(name: str) -> str:
    """Return today's name of a function, which may be recorded under an alias."""
    return ALIASES.get(name, name)


def results_of(records: Sequence[Record]) -> Iterator[tuple[Record, str, str, FunctionResult | None]]:
    """Yield every call among records: the record of its reply, its name and arguments, and its result or None.

    A call that waited for an approval has the arguments that ran, and the result that followed; None if it did not
    run.
    """
    answered: dict[tuple[int, int, str], FunctionResult] = {}
    asked: list[tuple[Record, ModelReply]] = []
    waited: dict[tuple[int, int, str], int] = {}
    approved: dict[int, str] = {}
    ran: dict[int, FunctionResult] = {}
    for record in records:
        event = event_of(record)
        if isinstance(event, FunctionResult):
            if event.approval:
                ran[event.approval] = event
            else:
                answered[record.turn, record.step, event.call_id] = event
        elif isinstance(event, ModelReply):
            asked.append((record, event))
        elif isinstance(event, ApprovalRequested):
            waited[record.turn, record.step, event.call_id] = record.seq
        elif isinstance(event, ApprovalDecided):
            approved[event.request] = event.arguments
    for record, reply in asked:
        for call in reply.calls:
            place = (record.turn, record.step, call.id)
            if (request := waited.get(place)) is None:
                yield record, plain_name(call.name), call.arguments, answered.get(place)
            else:
                arguments_run = approved.get(request) or call.arguments
                yield record, plain_name(call.name), arguments_run, ran.get(request)


class RecordedResults:
    """Recorded function results. Each result is returned once, and for an identical call only."""

    def __init__(self) -> None:
        self._left: dict[CallKey, list[FunctionResult]] = defaultdict(list)

    def add(self, key: CallKey, result: FunctionResult) -> None:
        """Add a result of that call."""
        self._left[key].append(result)

    def take(self, key: CallKey) -> FunctionResult | None:
        """Return the oldest result of the call that was not taken yet; None if no more are left."""
        left = self._left.get(key)
        return left.pop(0) if left else None


def edits_of(records: Sequence[Record], name: str) -> bool:
    """Return True if a function of that name edited memory in one of these calls.
    Its result alone does not repeat the edit.
    """
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
    """Return the typed events of an input's records. Records of unknown types are skipped."""
    return [event for event in map(event_of, records) if isinstance(event, Event)]


def fork_point_before(records: Sequence[Record], seq: int, open_at: Callable[[int], Sequence[int]]) -> int:
    """Return the fork point of a rerun from `seq` on: the last seq before it that splits no commit and no turn.

    `records` are all records of the agent. `open_at(s)` returns the seqs at which the turns began that are open as of
    `s`. The creation of an agent is not repeated: for a `seq` within it, the fork point is its last record.
    """
    start = first_of_commit(records, seq)
    # Moving back to the begin of an open turn may lead into another turn that was open there.
    while (begun := open_at(start - 1)) and min(begun) < start:
        start = first_of_commit(records, min(begun))
    return start - 1
