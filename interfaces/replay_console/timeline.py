"""Timeline of one agent: its records, and the state at each of them, found by binary search. Pure.

Made by `load_timeline`; read by the other files of this folder.

Core memory comes from rows of the projection `memory_history`. The gauge is updated record by record and equals the
projection `memory_pressure` as of each record; tests compare the two.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.events import (
    AgentConfigured,
    AgentCreated,
    BudgetExceeded,
    FunctionResult,
    ModelFailed,
    ModelReply,
    Record,
    ReplyRejected,
    Summary,
    SummaryExpanded,
    SystemAlert,
    TurnAbandoned,
    TurnsHidden,
    event_of,
)

ENDED = "ended"
"""Operation in `memory_history` of a block that was removed from core memory."""
JumpPoint = Literal["turn", "summary", "edit", "failure"]
"""Kinds of records that a key can jump to."""

_RENDERED_KINDS = frozenset(
    cls.kind
    for cls in (
        AgentConfigured, AgentCreated, BudgetExceeded, FunctionResult, ModelFailed, ModelReply, ReplyRejected, Summary,
        SummaryExpanded, SystemAlert, TurnAbandoned, TurnsHidden,
    )
)  # fmt: skip
"""Kinds of events whose content changes the gauge, or makes the record a jump point."""
_replace = msgspec.structs.replace


class WindowGauge(msgspec.Struct, frozen=True, kw_only=True):
    """Fill level of the context window, and the model that it belongs to."""

    tokens: int = 0
    """Tokens of the last call."""
    window: int = 0
    """Size of the window in tokens; 0 if no configuration is known."""
    fraction: float = 0.75
    """Part of the window at which the agent is warned."""
    warned: bool = False
    """True if the agent was warned since the last summary."""
    summary_seq: int | None = None
    model: str = ""
    hidden: int = 0
    """Number of messages, out of `total`, that summaries replace."""
    total: int = 0


class BlockValueEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A new value of a memory block."""

    seq: int
    turn: int
    label: str
    operation: str
    limit: int
    before: str
    value: str


class ReplayTimeline:
    """Records of an agent from seq 1 on, and the state at each seq. Records can only be added."""

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.records: list[Record] = []
        self.edits: dict[int, BlockValueEdit] = {}
        """Edits by seq."""
        self._edits_of: dict[str, list[BlockValueEdit]] = {}
        self._incarnation_starts: list[int] = []
        self._gauge = WindowGauge()
        self._gauges: list[tuple[int, WindowGauge]] = []
        self._calls: list[tuple[int, int]] = []
        """Seq and tokens of each model call."""
        self._jump_points: dict[JumpPoint, list[int]] = {"turn": [], "summary": [], "edit": [], "failure": []}
        self._warnings: dict[int, int] = {}
        """Turns of the warnings in this incarnation, by the seq of the warning."""
        self._hidden: set[int] = set()

    @property
    def last(self) -> int:
        """Seq of the last record; 0 if there is none."""
        return len(self.records)

    def record(self, seq: int) -> Record:
        """Return the record at a seq, from 1."""
        return self.records[seq - 1]

    def opens_turn(self, seq: int) -> bool:
        """Return True if a turn begins at the seq."""
        return self.record(seq).turn > 0 and (seq == 1 or self.record(seq - 1).turn != self.record(seq).turn)

    def add(self, records: Sequence[Record], rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the next records, and the rows of `memory_history` that they caused."""
        for record in records:
            self.records.append(record)
            if self.opens_turn(record.seq):
                self._jump_points["turn"].append(record.seq)
            if record.type in _RENDERED_KINDS:
                self._render_record(record)
        for row in rows:
            self._edit(row)

    def gauge(self, seq: int) -> WindowGauge:
        """Return the gauge as of a seq."""
        place = bisect_right(self._gauges, seq, key=_seq)
        return self._gauges[place - 1][1] if place else WindowGauge()

    def calls(self, seq: int, most: int) -> list[int]:
        """Return the tokens of the last calls up to a seq, at most `most` of them."""
        place = bisect_right(self._calls, seq, key=_seq)
        return [tokens for _, tokens in self._calls[max(0, place - most) : place]]

    def blocks(self, seq: int) -> list[BlockValueEdit]:
        """Return the last edit of each memory block as of a seq: persona, human, then the others by label."""
        born = self._incarnation_start(seq)
        found = []
        for edits in self._edits_of.values():
            place = bisect_right(edits, seq, key=_seq_of)
            if place and edits[place - 1].seq >= born and edits[place - 1].operation != ENDED:
                found.append(edits[place - 1])
        first = {"persona": 0, "human": 1}
        return sorted(found, key=lambda edit: (first.get(edit.label, 2), edit.label))

    def jump_points(self, kind: JumpPoint) -> Sequence[int]:
        """Return the seqs of a kind of jump point in rising order."""
        return self._jump_points[kind]

    def after(self, kind: JumpPoint, seq: int) -> int | None:
        """Return the next jump point of a kind after a seq; None if there is none."""
        found = self._jump_points[kind]
        place = bisect_right(found, seq)
        return found[place] if place < len(found) else None

    def before(self, kind: JumpPoint, seq: int) -> int | None:
        """Return the last jump point of a kind before a seq; None if there is none."""
        found = self._jump_points[kind]
        place = bisect_left(found, seq)
        return found[place - 1] if place else None

    def count(self, kind: JumpPoint, seq: int) -> int:
        """Return the number of jump points of a kind up to a seq, inclusive."""
        return bisect_right(self._jump_points[kind], seq)

    def find_all(self, words: str, seqs: Iterable[int]) -> list[int]:
        """Return those of the seqs whose record contains the words, in any case, in their order."""
        wanted = words.casefold()
        return [seq for seq in seqs if self._says(seq, wanted)]

    def _says(self, seq: int, wanted: str) -> bool:
        """Return True if a record's type, text or calls contain `wanted`, which is in lower case.

        An edit matches only if it changed the number of occurrences.
        """
        record, edit = self.record(seq), self.edits.get(seq)
        if edit is not None:
            return edit.value.casefold().count(wanted) != edit.before.casefold().count(wanted)
        if wanted in record.type or wanted in (record.text or "").casefold():
            return True
        event = event_of(record) if record.type == ModelReply.kind else None
        return isinstance(event, ModelReply) and any(
            wanted in call.name.casefold() or wanted in call.arguments.casefold() for call in event.calls
        )

    def _incarnation_start(self, seq: int) -> int:
        place = bisect_right(self._incarnation_starts, seq)
        return self._incarnation_starts[place - 1] if place else 0

    def _edit(self, row: Mapping[str, Any]) -> None:
        seq, label = row["seq"], row["label"]
        known = self._edits_of.setdefault(label, [])
        lives = known and known[-1].seq >= self._incarnation_start(seq)
        edit = BlockValueEdit(
            seq=seq,
            turn=self.record(seq).turn,
            label=label,
            operation=row["operation"],
            limit=row["limit"] or 0,
            before=known[-1].value if lives else "",
            value=row["value"],
        )
        known.append(edit)
        self.edits[seq] = edit
        self._jump_points["edit"].append(seq)

    def _render_record(self, record: Record) -> None:
        event = event_of(record)
        match event:
            case AgentCreated():
                self._incarnation_starts.append(record.seq)
                self._warnings, self._hidden = {}, set()
                self._set(record, WindowGauge())
            case AgentConfigured():
                fraction = event.pressure_fraction
                self._set(record, _replace(self._gauge, window=event.window, fraction=fraction, model=event.model))
            case ModelReply() if record.turn > 0:
                self._calls.append((record.seq, event.usage.total))
                self._set(record, _replace(self._gauge, tokens=event.usage.total))
            case Summary() | SummaryExpanded():
                self._jump_points["summary"].append(record.seq)
                counts = {"hidden": event.hidden, "total": event.total}
                self._set(record, _replace(self._gauge, summary_seq=record.seq, warned=False, **counts))
            case SystemAlert(source="memory_pressure"):
                self._warnings[record.seq] = record.turn
                self._warn(record)
            case TurnsHidden():
                self._hidden.update(event.turns)
                self._warn(record)
            case FunctionResult(ok=False) | ModelFailed() | ReplyRejected() | TurnAbandoned() | BudgetExceeded():
                self._jump_points["failure"].append(record.seq)

    def _warn(self, record: Record) -> None:
        seen = (seq for seq, turn in self._warnings.items() if turn not in self._hidden)
        warned = max(seen, default=0) > (self._gauge.summary_seq or 0)
        self._set(record, _replace(self._gauge, warned=warned))

    def _set(self, record: Record, gauge: WindowGauge) -> None:
        self._gauge = gauge
        self._gauges.append((record.seq, gauge))


def _seq(point: tuple[int, Any]) -> int:
    return point[0]


def _seq_of(edit: BlockValueEdit) -> int:
    return edit.seq
