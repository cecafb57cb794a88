"""Keep the contexts of agents as of now from record to record, in bounded memory: a step takes its context without a
query.

First the bounds of a context: what it takes of an agent's newest records. The values are rows of `context_bounds.sql`;
this file decides only how long they hold. Then the rows that are read by these bounds, for calls in any turn: this file
adds those of the records that follow. A law holds kept contexts equal to those of the whole statement, after every
commit. Used by `engine`, and by `actors/prompt/context.py`, which reads the rows. See
docs/explanation/decisions/0033-plans-and-bounds.md.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple, overload

from everlog.events import Record
from everlog.projections.hot.rows import Row, Wanted

EVERY_TURN = 2**63 - 2
"""Turn of a question that is about no turn: the context has the inputs of all turns."""

KEEPING = frozenset(
    {
        "archival_deleted", "archival_inserted", "archival_updated", "function_result", "function_started", "heartbeat",
        "message_sent", "model_reply", "user_login", "user_message",
    }
)  # fmt: skip
"""Kinds of records after which the bounds hold. After any other they are read again."""
COLUMNS = (
    "agent_id", "as_of", "slot", "seq", "turn", "step", "type", "message", "at", "version", "text", "shown_chars",
    "payload", "recall", "archival", "warned", "threshold",
)  # fmt: skip
"""Columns of a kept row: those of `context_window` without `during`, which is a part of the question."""
SHOWN = frozenset({"function_result", "heartbeat", "model_reply", "user_login", "user_message"})
"""Kinds in KEEPING that the context shows; also an imported `message_sent`. See `sql/add.sql`."""
ROW_BYTES = 700
"""Approximate bytes in memory of a kept row, and of what is made of it, besides two times its text and payload."""

_PLACES = {name: place for place, name in enumerate(COLUMNS)}
_KeptRow = tuple[Any, ...]
ReadContexts = Callable[[Sequence[str]], Iterable[tuple[str, Iterable[_KeptRow]]]]
"""Reader of the contexts of agents as of now, in any turn: keeps their bounds, and yields agents and values of
COLUMNS.
"""


class ContextBounds(NamedTuple):
    """Row of `context_bounds`, without the agent. The first seven are what a context is read by."""

    kept_from: int
    newest: list[int]
    changed_seq: int | None
    window: int | None
    fraction: float
    threshold: float | None
    warned: bool
    reply_seq: int | None
    turn: int
    """Last turn of a record with a slot: the bounds are those of a call in this turn or a later one."""

    def after(self, reply: Record) -> "ContextBounds | None":
        """Return the bounds after a newer reply; None if the reply that was the newest is not in view, and now is not
        needed any more.
        """
        if self.reply_seq is not None and self.reply_seq < self.kept_from:
            return None
        return self._replace(turn=max(self.turn, reply.turn))


class BoundsCache:
    """Bounds of the contexts of an engine's agents as of now. For one thread at a time."""

    def __init__(self) -> None:
        self._kept: dict[str, ContextBounds | None] = {}
        """None: the agent has no record that a context needs."""
        self._met: set[str] = set()
        """Agents about which `are_new` was asked."""

    def note(self, records: Iterable[Record]) -> None:
        """Take the records that the engine has added."""
        for record in records:
            if record.agent_id not in self._kept:
                continue
            kept = self._kept[record.agent_id]
            if record.type == "model_reply" and kept is not None:
                kept = kept.after(record)
                if kept is not None:
                    self._kept[record.agent_id] = kept
                    continue
            elif record.type in KEEPING and record.type != "model_reply":
                continue
            del self._kept[record.agent_id]

    def forget(self, agents: Collection[str]) -> None:
        """Drop the bounds of these agents."""
        for agent_id in agents:
            self._kept.pop(agent_id, None)
            self._met.discard(agent_id)

    def unknown(self, agents: Iterable[str]) -> list[str]:
        """Return those of these agents whose bounds are not kept, each once."""
        return list(dict.fromkeys(agent_id for agent_id in agents if agent_id not in self._kept))

    def are_new(self, agents: Sequence[str]) -> bool:
        """Return True if there are agents, and this is asked about all of them for the first time since they came."""
        new = bool(agents) and self._met.isdisjoint(agents)
        self._met.update(agents)
        return new

    def find(self, agent_id: str) -> ContextBounds | None:
        """Return the bounds of an agent; None if they are not kept, or if the agent has no record for a context."""
        return self._kept.get(agent_id)

    def keep(self, agents: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Keep the rows of `context_bounds` for these agents."""
        self._kept.update(dict.fromkeys(agents))
        for agent_id, *bounds in rows:
            self._kept[agent_id] = ContextBounds(*bounds)

    def given(self, agents: Iterable[str], as_of: int) -> list[list[Any]]:
        """Return the parameters of the statement that reads the contexts of agents now, in any turn, by kept bounds.

        There is one list for each column. Agents without a context are left out. `as_of`: that of "now".
        """
        known = [(agent_id, self._kept[agent_id]) for agent_id in agents]
        rows = [(agent_id, as_of, EVERY_TURN, *kept[:7]) for agent_id, kept in known if kept is not None]
        return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(10)]


class KeptRows(Sequence[Row]):
    """Rows of the context of one call, in its order. A row becomes a dict only when it is read."""

    __slots__ = ("_during", "_rows", "made")

    def __init__(self, rows: Sequence[_KeptRow], during: int, made: dict[int, Any]) -> None:
        self._rows, self._during = rows, during
        self.made = made
        """Values that a reader makes of rows, by seq. They are kept as long as the rows: the next reader finds them."""

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "KeptRows": ...
    def __getitem__(self, index: int | slice) -> "Row | KeptRows":
        if isinstance(index, slice):
            return KeptRows(self._rows[index], self._during, self.made)
        return {**dict(zip(COLUMNS, self._rows[index], strict=True)), "during": self._during}

    def __iter__(self) -> Iterator[Row]:
        return (self[place] for place in range(len(self._rows)))

    def values(self, *names: str) -> Iterator[_KeptRow]:
        """Return only these columns, row by row. Raises KeyError."""
        return map(itemgetter(*(_PLACES[name] for name in names)), self._rows)


class _Context:
    """Rows of the context of one agent, for calls in any turn: the first rows, then messages by turn and seq."""

    __slots__ = ("bytes", "first", "made", "rows", "turn")

    def __init__(self, rows: Iterable[_KeptRow], turn: int) -> None:
        """`turn`: the first turn for whose calls the rows hold."""
        self.rows = list(rows)
        if self.rows:
            self.rows[0] = _configured(self.rows[0])
        self.turn = turn
        self.first = sum(1 for _ in takewhile(_comes_first, self.rows))
        self.bytes = sum(map(_bytes_of, self.rows[1:]))
        self.made: dict[int, Any] = {}

    def add(self, record: Record) -> int:
        """Add the row of a record that the context shows. Return its approximate bytes in memory."""
        slot = "reply" if record.type == "model_reply" and record.turn else None
        at = record.recorded_at if record.said_at is None else record.said_at
        configuration = self.rows[0]
        row = (
            record.agent_id, configuration[_PLACES["as_of"]], slot, record.seq, record.turn, record.step, record.type,
            True, at, record.version, record.text, None, record.payload, None, None, configuration[_PLACES["warned"]],
            configuration[_PLACES["threshold"]],
        )  # fmt: skip
        place = len(self.rows)
        while place > self.first and self.rows[place - 1][_PLACES["turn"]] > record.turn:
            place -= 1  # an input that waits comes after the running turn
        self.rows.insert(place, row)
        self.bytes += (size := _bytes_of(row))
        return size

    def until(self, during: int) -> list[_KeptRow]:
        """Return the rows for a call in a turn: inputs of later turns wait."""
        end = len(self.rows)
        while end > self.first and self.rows[end - 1][_PLACES["turn"]] > during:
            end -= 1
        return self.rows[:end]


@lru_cache(maxsize=256)
def _one_copy(text: str | None) -> str | None:
    return text


def _configured(row: _KeptRow) -> _KeptRow:
    """Return the row of a configuration with texts that all agents of the same setup share: they are large."""
    values = list(row)
    for name in ("text", "payload"):
        values[_PLACES[name]] = _one_copy(values[_PLACES[name]])
    return tuple(values)


def _comes_first(row: _KeptRow) -> bool:
    slot: str | None = row[_PLACES["slot"]]
    return slot is not None and (slot in {"config", "summary"} or slot.startswith("block:"))


def _bytes_of(row: _KeptRow) -> int:
    return ROW_BYTES + 2 * (len(row[_PLACES["payload"]]) + len(row[_PLACES["text"]] or ""))


class KeptContexts:
    """Contexts of an engine's agents as of now, and the bounds by which they were read. For one thread at a time."""

    def __init__(self, bytes_max: int) -> None:
        """Keep up to `bytes_max` bytes of rows. The context that was asked for last is kept, whatever it takes."""
        self.bounds = BoundsCache()
        self._bytes_max = bytes_max
        self._kept: OrderedDict[str, _Context] = OrderedDict()
        self._used = 0

    @property
    def used(self) -> int:
        """Approximate bytes of all rows."""
        return self._used

    @property
    def agents(self) -> set[str]:
        """Agents whose context is kept."""
        return set(self._kept)

    def note(self, records: Sequence[Record]) -> None:
        """Take the records that the engine has added, of any agents, in order."""
        self.bounds.note(records)
        for record in records:
            kept = self._kept.get(record.agent_id)
            if kept is None:
                continue
            bounds = self.bounds.find(record.agent_id)
            if bounds is None:
                self._drop(record.agent_id)
            elif record.type in SHOWN or (record.type == "message_sent" and '"imported":true' in record.payload):
                kept.turn = bounds.turn
                self._used += kept.add(record)
        self._shrink()

    def answers(self, calls: Sequence[Wanted], read: ReadContexts) -> dict[Wanted, KeptRows]:
        """Return the context of each call (agent, HEAD, turn) that is kept, or is now read and kept.

        Left out are the first call of an agent that comes alone, for which the whole statement is cheaper than reading
        bounds and context, and calls in an earlier turn than the bounds.
        """
        found = {one: rows for one in calls if (rows := self._rows(one)) is not None}
        missing = [one for one in calls if one[0] not in self._kept]
        new = list(dict.fromkeys(agent_id for agent_id, *_ in missing))
        if not new or (len(new) == 1 and self.bounds.are_new(new)):
            return found
        context = dict(read(new))
        for one in missing:
            if one[0] in context:
                self._keep(one[0], context.pop(one[0]))
            if (rows := self._rows(one)) is not None:
                found[one] = rows
        return found

    def _keep(self, agent_id: str, rows: Iterable[_KeptRow]) -> None:
        """Keep the rows of an agent's context for calls in any turn."""
        bounds = self.bounds.find(agent_id)
        if bounds is not None:
            self._kept[agent_id] = kept = _Context(rows, bounds.turn)
            self._used += kept.bytes
            self._shrink()

    def _rows(self, call: Wanted) -> KeptRows | None:
        """Return the rows for a call; None if they are not kept, or not for such an early turn."""
        agent_id, *_, during = call
        kept = self._kept.get(agent_id)
        if kept is None or during < kept.turn:
            return None
        self._kept.move_to_end(agent_id)
        return KeptRows(kept.until(during), during, kept.made)

    def forget(self, agents: Collection[str]) -> None:
        """Drop everything of these agents."""
        self.bounds.forget(agents)
        for agent_id in agents:
            self._drop(agent_id)

    def rest(self) -> None:
        """Give back the memory of all rows. The next call of an agent reads them again, by the same bounds."""
        self._kept.clear()
        self._used = 0

    def _drop(self, agent_id: str) -> None:
        kept = self._kept.pop(agent_id, None)
        self._used -= kept.bytes if kept is not None else 0

    def _shrink(self) -> None:
        """Drop the contexts that were asked for longest ago until the others fit."""
        while self._used > self._bytes_max and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
