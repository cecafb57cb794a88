"""Keep the talk of agents in bounded memory, as it was committed: words are indexed at the next search of them only.

Part of `search_caches`; read by `talk_reads`, which fills the talk of agents whose records were added otherwise. What
is kept here holds words of messages: whatever drops an agent's rows must drop its talk, too.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from everlog.events import Record, is_erased, upcast_record
from everlog.projections.search.utterance import Utterance

if TYPE_CHECKING:
    from everlog.projections.search.talk_index import TalkIndex, TalkView

WAITING_BYTES = 120
"""Approximate bytes in memory of a message that waits, besides its characters."""

SAID_BY = {"user_message": "user", "message_sent": "assistant"}
"""Role of the speaker by the type of a record that counts as said, unless it was erased; see `sql/add.sql`."""


class _SaidPayload(msgspec.Struct):
    name: str | None = None
    ref: str | None = None


_payloads = msgspec.json.Decoder(_SaidPayload)


def utterance_of(record: Record) -> Utterance:
    """Return what a record of a type in SAID_BY said: the same as a row of `sql/search_talk.sql`."""
    payload = _payloads.decode(record.payload)
    time = record.recorded_at if record.said_at is None else record.said_at
    return Utterance(record.seq, time, SAID_BY[record.type], payload.name or "", record.text or "", payload.ref or "")


class AgentTalk:
    """Talk of an agent's current life: an index, and the messages that were said since it was made."""

    __slots__ = ("_index", "_size", "_waiting", "_waiting_bytes", "since")

    def __init__(self, since: int, said: Iterable[Utterance] = ()) -> None:
        """Begin with what has been `said` so far, in order. `since`: seq of the record that began the life."""
        self.since = since
        self._index: TalkIndex | None = None
        self._size = self._waiting_bytes = 0
        self._waiting: list[Utterance] = []
        for one in said:
            self.add(one)

    @property
    def size(self) -> int:
        """Approximate bytes in memory; 0 if nothing was said."""
        return self._size + self._waiting_bytes

    def add(self, one: Utterance) -> None:
        """Add a message that was said after all others."""
        self._waiting.append(one)
        self._waiting_bytes += one.text.__sizeof__() + WAITING_BYTES

    def view(self, said_by: int) -> "TalkView":
        """Return what had been said by a seq of this life, inclusive. Messages that wait are indexed now."""
        index = self._index
        if index is None:
            # Imported at the first search: its patterns and words take longer to load than all else of an agent.
            from everlog.projections.search.talk_index import TalkIndex

            index = self._index = TalkIndex()
        if self._waiting:
            index.append(self._waiting)
            self._waiting, self._waiting_bytes, self._size = [], 0, index.size
        seqs = index.columns["seq"].first(len(index))
        return index.view(int(np.searchsorted(seqs, said_by, "right")))


def talk_of(records: Iterable[Record]) -> AgentTalk:
    """Return what the records of one agent, of any types, in order, say in its current life."""
    talk = AgentTalk(0)
    for record in records:
        if record.type == "agent_created":
            talk = AgentTalk(record.seq)
        elif record.type in SAID_BY and not is_erased(record.payload):
            talk.add(utterance_of(upcast_record(record)))
    return talk


class TalkCache:
    """Talk of agents, up to the newest record that the engine has. For one thread at a time."""

    def __init__(self, bytes_max: int) -> None:
        """Keep up to `bytes_max` bytes. The agent that was searched or spoke last is kept, whatever its talk takes."""
        self._bytes_max = bytes_max
        self._talks: OrderedDict[str, AgentTalk] = OrderedDict()
        self._used = 0

    @property
    def used(self) -> int:
        """Approximate bytes of all talks."""
        return self._used

    @property
    def agents(self) -> set[str]:
        """Agents of whose talk something is kept."""
        return {agent_id for agent_id, talk in self._talks.items() if talk.size}

    def note(self, records: Sequence[Record]) -> None:
        """Take the records that the engine has added, of any agents, in order."""
        for record in records:
            if record.type == "agent_created":
                # What was said before belongs to a life that has ended, see `sql/end_life.sql`.
                self.keep(record.agent_id, AgentTalk(record.seq))
            elif record.type == "records_erased":
                self.forget([record.agent_id])
            elif record.type in SAID_BY and (talk := self._talks.get(record.agent_id)) is not None:
                if not is_erased(record.payload):
                    before = talk.size
                    talk.add(utterance_of(record))
                    self._grown(record.agent_id, talk.size - before)

    def knows(self, agent_id: str) -> bool:
        """Return True if the talk of an agent's current life is kept, up to its newest record."""
        return agent_id in self._talks

    def keep(self, agent_id: str, talk: AgentTalk) -> None:
        """Keep the talk of an agent, up to its newest record, instead of an earlier one."""
        self.forget([agent_id])
        self._talks[agent_id] = talk
        self._grown(agent_id, talk.size)

    def view(self, agent_id: str, said_by: int) -> "TalkView | None":
        """Return what an agent had said and heard by a seq, inclusive; None if this is not kept, or if the seq is of an
        earlier life.
        """
        talk = self._talks.get(agent_id)
        if talk is None or said_by < talk.since:
            return None
        before = talk.size
        found = talk.view(said_by)
        self._grown(agent_id, talk.size - before)
        return found

    def forget(self, agents: Collection[str]) -> None:
        """Drop the talk of these agents."""
        for agent_id in agents:
            talk = self._talks.pop(agent_id, None)
            self._used -= talk.size if talk is not None else 0

    def clear(self) -> None:
        """Drop everything."""
        self._talks.clear()
        self._used = 0

    def _grown(self, agent_id: str, size: int) -> None:
        """Count an agent's new bytes, and drop the talks that were used longest ago until the others fit."""
        self._talks.move_to_end(agent_id)
        self._used += size
        while self._used > self._bytes_max and len(self._talks) > 1:
            self.forget([next(iter(self._talks))])
