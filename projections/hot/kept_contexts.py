"""Keep the contexts of agents as of now from record to record, in bounded memory: a step takes its context without a
query.

First the bounds of a context: what it takes of an agent's newest records. The values are rows of `context_bounds.sql`.
Then the rows that are read by these bounds, for calls in any turn. This file follows both through the records that an
agent at work writes most: messages, replies, edits of memory blocks, warnings, summaries. After any other record both
are read again. Laws hold kept contexts equal to those of the whole statement, after every commit. Used by `engine`,
and by `actors/prompt/context.py`, which reads the rows. See docs/explanation/decisions/0033-plans-and-bounds.md.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from everlog.events import Record, is_erased
from everlog.projections.hot.rows import EVERY_TURN, PLACES, KeptRow, KeptRows, Wanted

ARCHIVED = {"archival_deleted": -1, "archival_inserted": 1}
"""Change of the number of archived memories, by kind of record."""
FOLLOWED = frozenset(
    {
        *ARCHIVED, "agent_message_received", "agent_message_sent", "agent_message_settled", "archival_updated",
        "function_result", "function_started", "heartbeat", "memory_edited", "message_sent", "model_reply", "summary",
        "system_alert", "user_login", "user_message",
    }
)  # fmt: skip
"""Kinds of records through which bounds and contexts are followed. After any other they are read again."""
SAID = frozenset({"message_sent", "user_message"})
"""Kinds that recall memory has."""
SHOWN = frozenset({"function_result", "heartbeat", "model_reply", "system_alert", "user_login", "user_message"})
"""Kinds in FOLLOWED that the context shows; also an imported `message_sent`. See `sql/add.sql`."""
ROW_BYTES = 700
"""Approximate bytes in memory of a kept row, and of what is made of it, besides two times its text and payload."""

_SLOT, _SEQ, _TURN, _IS_MESSAGE = (itemgetter(PLACES[name]) for name in ("slot", "seq", "turn", "message"))
ReadContexts = Callable[[Sequence[str]], Iterable[tuple[str, Iterable[KeptRow]]]]
"""Reader of the contexts of agents as of now, in any turn: keeps their bounds, and yields agents and values of
KEPT_COLUMNS.
"""


class ContextBounds(NamedTuple):
    """Row of `context_bounds`, without the agent. The first seven are what a context is read by."""

    kept_from: int
    newest: list[int]
    """Seqs of the newest record of each slot. Those of records that the context shows may be missing."""
    changed_seq: int | None
    window: int | None
    fraction: float
    threshold: float | None
    warned: bool
    reply_seq: int | None
    turn: int
    """Last turn of a record with a slot: the bounds are those of a call in this turn or a later one."""
    recall: int
    """Number of things said so far, which the memory header shows from the next change on."""
    archival: int
    """Number of memories in the archive so far, likewise; may be negative, which is shown as 0."""

    def after(self, record: Record) -> "ContextBounds | None":
        """Return the bounds after a newer record of FOLLOWED that takes the place of no older one; None if it may take
        one.
        """
        kind = record.type
        if kind in ARCHIVED:
            return self._replace(archival=self.archival + ARCHIVED[kind])
        if kind in SAID:
            return self._replace(recall=self.recall + 1)
        if kind == "model_reply":
            unseen = self.reply_seq is not None and self.reply_seq < self.kept_from
            return None if unseen else self._replace(turn=max(self.turn, record.turn))
        return None if slot_of(record) else self


class BoundsCache:
    """Bounds of the contexts of an engine's agents as of now. For one thread at a time."""

    def __init__(self) -> None:
        self._kept: dict[str, ContextBounds | None] = {}
        """None: the agent has no record that a context needs."""
        self._met: set[str] = set()
        """Agents about which `are_new` was asked."""

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

    def replace(self, agent_id: str, bounds: ContextBounds | None) -> None:
        """Keep these bounds of an agent; None: none."""
        if bounds is None:
            self._kept.pop(agent_id, None)
        else:
            self._kept[agent_id] = bounds

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


class _Context:
    """Rows of the context of one agent, for calls in any turn: the first rows, then messages by turn and seq."""

    __slots__ = ("bytes", "first", "made", "rows")

    def __init__(self, rows: Iterable[KeptRow]) -> None:
        self.rows = list(rows)
        if self.rows:
            self.rows[0] = _configured(self.rows[0])
        self.first = sum(1 for _ in takewhile(_comes_first, self.rows))
        self.bytes = sum(map(_bytes_of, self.rows[1:]))
        self.made: dict[int, Any] = {}

    def follow(self, record: Record, bounds: ContextBounds) -> ContextBounds | None:
        """Follow a record of FOLLOWED, and return the bounds after it, which were `bounds` before it; None if the rows
        do not hold any more.
        """
        following = bounds.after(record) or self._replaced(record, bounds)
        if record.type in SHOWN or (record.type == "message_sent" and '"imported":true' in record.payload):
            self._add(record)
        return following

    def _replaced(self, record: Record, bounds: ContextBounds) -> ContextBounds | None:
        """Take the older record of the same slot out of the rows. Return the bounds after `record`; None if a summary
        shows more than the rows have.
        """
        turn = max(bounds.turn, record.turn)
        slot = slot_of(record)
        if record.type in SHOWN:  # a reply or a warning: an older one that is not shown is not needed any more
            self._keep([row for row in self.rows if _SLOT(row) != slot or _IS_MESSAGE(row)])
            warned = bounds.warned or slot == "warning"
            reply_seq = record.seq if slot == "reply" else bounds.reply_seq
            return bounds._replace(newest=self._newest(), warned=warned, reply_seq=reply_seq, turn=turn)
        kept_from, warned, reply_seq = bounds.kept_from, bounds.warned, bounds.reply_seq
        if slot == "summary":
            kept_from, warned = msgspec.json.decode(record.payload, type=_Change).kept_from, False
            if kept_from < bounds.kept_from:
                return None
            newest = {_SLOT(row): _SEQ(row) for row in sorted(self.rows[self.first :], key=_SEQ)}
            reply_seq = newest.get("reply", reply_seq)
            self._keep(self.rows[: self.first] + list(_since(kept_from, self.rows[self.first :], newest)))
        self._change(self._row(record, slot, bounds.recall, max(bounds.archival, 0)))
        return bounds._replace(
            kept_from=kept_from, newest=self._newest(), changed_seq=record.seq, warned=warned, reply_seq=reply_seq,
            turn=turn,
        )  # fmt: skip

    def _newest(self) -> list[int]:
        """Return the seqs of the rows that the context does not show as messages: each is the newest of its slot."""
        return [_SEQ(row) for row in self.rows if not _IS_MESSAGE(row)]

    def _keep(self, rows: list[KeptRow]) -> None:
        """Keep these rows: all of the first ones, and some of the others."""
        for gone in {_SEQ(row) for row in self.rows} - {_SEQ(row) for row in rows}:
            self.made.pop(gone, None)
        self.rows = rows
        self.bytes = sum(map(_bytes_of, rows[1:]))

    def _change(self, changed: KeptRow) -> None:
        """Put the row of the newest change among the first rows, in place of the older row of its slot."""
        others = [row for row in self.rows[: self.first] if _SLOT(row) != _SLOT(changed)]
        first = sorted([changed, *(_replace(row, recall=None, archival=None) for row in others)], key=_order)
        self._keep(first + self.rows[self.first :])
        self.first = len(first)

    def _add(self, record: Record) -> None:
        """Add the row of a record that the context shows."""
        row = self._row(record, slot_of(record))
        self.bytes += _bytes_of(row)
        place = len(self.rows)
        while place > self.first and _TURN(self.rows[place - 1]) > record.turn:
            place -= 1  # an input that waits comes after the running turn
        self.rows.insert(place, row)

    def _row(self, record: Record, slot: str | None, recall: int | None = None, archival: int | None = None) -> KeptRow:
        """Return the row of a record: a change with its counts, or else a message."""
        at = record.recorded_at if record.said_at is None else record.said_at
        configuration = self.rows[0]
        return (
            record.agent_id, configuration[PLACES["as_of"]], slot, record.seq, record.turn, record.step, record.type,
            recall is None, at, record.version, record.text, None, record.payload, recall, archival,
            configuration[PLACES["threshold"]],
        )  # fmt: skip

    def until(self, during: int) -> list[KeptRow]:
        """Return the rows for a call in a turn: inputs of later turns wait."""
        end = len(self.rows)
        while end > self.first and _TURN(self.rows[end - 1]) > during:
            end -= 1
        return self.rows[:end]


def _since(kept_from: int, rows: Iterable[KeptRow], newest: Mapping[str | None, int]) -> Iterator[KeptRow]:
    """Yield the messages since a seq, and the newest record of each slot, which is no message if it came earlier."""
    for row in rows:
        slot, seq = _SLOT(row), _SEQ(row)
        if seq >= kept_from:
            yield row
        elif slot is not None and newest[slot] == seq:
            yield _replace(row, message=False)


@lru_cache(maxsize=256)
def _one_copy(text: str | None) -> str | None:
    return text


def _configured(row: KeptRow) -> KeptRow:
    """Return the row of a configuration with texts that all agents of the same setup share: they are large."""
    return _replace(row, **{name: _one_copy(row[PLACES[name]]) for name in ("text", "payload")})


def _comes_first(row: KeptRow) -> bool:
    slot: str | None = _SLOT(row)
    return slot is not None and (slot in {"config", "summary"} or slot.startswith("block:"))


def _order(row: KeptRow) -> str:
    """Return the place of a row among those that come first. See `sql/context_window.sql`."""
    slot: str = _SLOT(row)
    return {"config": "0", "block:persona": "1", "block:human": "2", "summary": "4"}.get(slot, "3" + slot)


def _replace(row: KeptRow, **columns: object) -> KeptRow:
    """Return the row with other values in some columns."""
    values = list(row)
    for name, value in columns.items():
        values[PLACES[name]] = value
    return tuple(values)


class _Change(msgspec.Struct):
    """Fields of the payload of an edit of memory, or of a summary."""

    label: str = ""
    kept_from: int = 0


def slot_of(record: Record) -> str | None:
    """Return the slot of a record of FOLLOWED that was not erased. See `sql/add.sql`."""
    if record.type == "memory_edited":
        return f"block:{msgspec.json.decode(record.payload, type=_Change).label}"
    if record.type == "system_alert":
        return "warning" if '"source":"memory_pressure"' in record.payload else None
    if record.type == "model_reply":
        return "reply" if record.turn else None
    return "summary" if record.type == "summary" else None


def _bytes_of(row: KeptRow) -> int:
    return ROW_BYTES + 2 * (len(row[PLACES["payload"]]) + len(row[PLACES["text"]] or ""))


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
        for record in records:
            agent_id = record.agent_id
            bounds, kept = self.bounds.find(agent_id), self._kept.get(agent_id)
            if bounds is None or record.type not in FOLLOWED or is_erased(record.payload):
                following = None
            elif kept is None:
                following = bounds.after(record)
            else:
                before = kept.bytes
                following = kept.follow(record, bounds)
                self._used += kept.bytes - before
            self.bounds.replace(agent_id, following)
            if following is None:
                self._drop(agent_id)
        self._shrink()

    def find(self, call: Wanted) -> KeptRows | None:
        """Return the rows for a call; None if they are not kept, or not for such an early turn."""
        agent_id, *_, during = call
        kept, bounds = self._kept.get(agent_id), self.bounds.find(agent_id)
        if kept is None or bounds is None or during < bounds.turn:
            return None
        self._kept.move_to_end(agent_id)
        return KeptRows(kept.until(during), {"warned": bounds.warned, "during": during}, kept.made)

    def answers(self, calls: Sequence[Wanted], read: ReadContexts) -> dict[Wanted, KeptRows]:
        """Return the context of each call (agent, HEAD, turn) that is kept, or is now read and kept.

        Left out are the first call of an agent that comes alone, for which the whole statement is cheaper than reading
        bounds and context, and calls in an earlier turn than the bounds.
        """
        found = {one: rows for one in calls if (rows := self.find(one)) is not None}
        missing = [one for one in calls if one[0] not in self._kept]
        new = list(dict.fromkeys(agent_id for agent_id, *_ in missing))
        if not new or (len(new) == 1 and self.bounds.are_new(new)):
            return found
        context = dict(read(new))
        for one in missing:
            if one[0] in context:
                self._keep(one[0], context.pop(one[0]))
            if (rows := self.find(one)) is not None:
                found[one] = rows
        return found

    def _keep(self, agent_id: str, rows: Iterable[KeptRow]) -> None:
        """Keep the rows of an agent's context for calls in any turn."""
        if self.bounds.find(agent_id) is not None:
            self._kept[agent_id] = kept = _Context(rows)
            self._used += kept.bytes
            self._shrink()

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
