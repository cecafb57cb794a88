"""Outline of an agent's whole life: kind and time of each record, the turns, and the landmarks. It holds no words.

Pure, but for `LifeCache`, which keeps the outlines of the agents that were looked at last, and reads what is new.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate, count, islice, pairwise
from typing import Literal, get_args

import pyarrow as pa

from everlog.events import (
    AgentForked,
    BlockRemoved,
    BudgetExceeded,
    FunctionResult,
    MemoryEdited,
    MessageSent,
    ModelFailed,
    ReplyRejected,
    Summary,
    SummaryExpanded,
    TurnAbandoned,
    UserMessage,
)
from everlog.store import LogReader
from everlog.store.base.arrow_values import text_value
from everlog.store.base.lazy_pyarrow import pc

Landmark = Literal["turn", "edit", "summary", "failure", "fork"]
LifeScale = Literal["events", "time"]
LANDMARKS: Sequence[Landmark] = get_args(Landmark)
RECORDS_AT_ONCE = 32_768
"""Records that are read together."""
LIVES_MAX = 16
"""Agents whose outlines are kept."""
OTHER, TALK, EDIT, SUMMARY, FAILURE = range(5)
"""Kinds of records, the rarest last: a bar that has one of them shows it."""

_KINDS = {
    UserMessage.kind: TALK, MessageSent.kind: TALK, MemoryEdited.kind: EDIT, BlockRemoved.kind: EDIT,
    Summary.kind: SUMMARY, SummaryExpanded.kind: SUMMARY, ModelFailed.kind: FAILURE, ReplyRejected.kind: FAILURE,
    TurnAbandoned.kind: FAILURE, BudgetExceeded.kind: FAILURE,
}  # fmt: skip
_LANDMARK_OF: dict[int, Landmark] = {EDIT: "edit", SUMMARY: "summary", FAILURE: "failure"}


class AgentLife:
    """Outline of one agent up to a seq. Records can only be added."""

    def __init__(self) -> None:
        self.kinds = bytearray()
        """Kind of each record, by seq - 1."""
        self.points: dict[Landmark, array[int]] = {landmark: array("q") for landmark in LANDMARKS}
        """Seqs of the landmarks of each kind, ascending. Those of `turn` are the first seqs of the turns."""
        self._times: array[int] = array("q")
        """Time of each record, microseconds UTC, by seq - 1. It is never earlier than that of a record before: a clock
        that was set back shows as a standstill.
        """
        self._turns: array[int] = array("q")
        """Number of the turn that begins at each of `points["turn"]`."""

    @property
    def last(self) -> int:
        """Seq of the last record; 0: there is none."""
        return len(self.kinds)

    def add(self, records: pa.Table) -> None:
        """Add the next records, a table of the log's schema. Only the columns that count become Python values."""
        types = records.column("type").to_pylist()
        kinds = bytearray(_KINDS.get(name, OTHER) for name in types)
        for place in _failed_results(records):
            kinds[place] = FAILURE
        turns = records.column("turn").to_pylist()
        for seq, name, kind, turn in zip(count(self.last + 1), types, kinds, turns, strict=False):
            if kind in _LANDMARK_OF:
                self.points[_LANDMARK_OF[kind]].append(seq)
            if name == AgentForked.kind:
                self.points["fork"].append(seq)
            if turn > 0 and (not self._turns or self._turns[-1] != turn):
                self._turns.append(turn)
                self.points["turn"].append(seq)
        self.kinds += kinds
        times = records.column("recorded_at").cast(pa.int64()).to_pylist()
        latest = self._times[-1] if self._times else 0
        self._times.extend(islice(accumulate(times, max, initial=latest), 1, None))

    def copy(self) -> "AgentLife":
        """Return an outline to which records can be added without a change of this one."""
        made = AgentLife()
        made.kinds, made._times, made._turns = self.kinds[:], self._times[:], self._turns[:]
        made.points = {landmark: seqs[:] for landmark, seqs in self.points.items()}
        return made

    def after(self, landmark: Landmark, seq: int) -> int | None:
        """Return the next landmark of a kind after a seq; None if there is none."""
        found = self.points[landmark]
        place = bisect_right(found, seq)
        return found[place] if place < len(found) else None

    def before(self, landmark: Landmark, seq: int) -> int | None:
        """Return the last landmark of a kind before a seq; None if there is none."""
        found = self.points[landmark]
        place = bisect_left(found, seq)
        return found[place - 1] if place else None

    def bars(self, most: int, scale: LifeScale = "events") -> list[list[int]]:
        """Return the number of records of each kind in at most `most` equal parts of the life: of its events, or of its
        time.
        """
        edges = self._by_events(min(most, self.last)) if scale == "events" else [0, *self.clock(most)[1:]]
        parts = (self.kinds[start:end] for start, end in pairwise(edges))
        return [[part.count(kind) for kind in range(5)] for part in parts]

    def _by_events(self, parts: int) -> list[int]:
        return [self.last * place // parts for place in range(parts + 1)] if parts else []

    def clock(self, steps: int) -> list[int]:
        """Return the seq of the last record by each of `steps` + 1 moments, which are equally far apart: from the time
        of the first record to that of the last. Without records the list is empty.
        """
        if not self._times:
            return []
        first, span = self._times[0], self._times[-1] - self._times[0]
        return [bisect_right(self._times, first + span * step // steps) for step in range(steps + 1)]


class LifeCache:
    """Outlines of the agents that were looked at last. Used from threads, one at a time for each agent."""

    def __init__(self) -> None:
        self._lives: OrderedDict[str, AgentLife] = OrderedDict()

    def life(self, reader: LogReader, stream: str) -> AgentLife:
        """Return the outline of an agent up to its head. Blocks. Only records that are new are read."""
        known = self._lives.pop(stream, None)
        head = reader.head(stream).seq
        # A stream that is shorter than its outline was restored from a backup.
        life = known if known is not None and known.last <= head else AgentLife()
        if life.last < head:
            life = life.copy()  # another thread may read the outline that was given to it
            while life.last < head:
                life.add(reader.table(stream, life.last + 1, min(head, life.last + RECORDS_AT_ONCE)))
        self._lives[stream] = life
        while len(self._lives) > LIVES_MAX:
            self._lives.popitem(last=False)
        return life


def _failed_results(records: pa.Table) -> Sequence[int]:
    """Return the places of the results of functions that failed."""
    results = pc.equal(records.column("type"), text_value(FunctionResult.kind))
    failed = pc.match_substring(records.column("payload"), '"ok":false')
    places: list[int] = pc.indices_nonzero(pc.and_(results, failed)).to_pylist()
    return places
