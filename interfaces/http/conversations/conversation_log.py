"""Know which conversations the logs of agents have: their questions, answers and runs, as digests.

Read from the log once, and then only what is new in the agent's partition: for the requests of one turn of the event
loop the end of one file is looked at. Nothing here is stored, and another server in front of the same store has the
same.

Used by the translations that compare a client's history with the log.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from everlog.actors.ports.ports import Ports
from everlog.events import (
    AgentDeleted,
    EverlogError,
    MessageSent,
    Record,
    TurnsHidden,
    UserMessage,
    event_of,
    is_erased,
)
from everlog.interfaces.http.conversations.client_history import answer_digest, opening_digests, question_digest
from everlog.interfaces.http.conversations.resent_history import ExchangeDigests
from everlog.store import FileStore, records_of
from everlog.store.base.arrow_values import int_value
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.names import name_of
from everlog.store.log.log_follower import CommitRewritten, LogFollower
from everlog.store.streams.register_file import Assignment

AGENTS_MAX = 1000
"""Agents of one partition whose conversations are kept; the one that was asked for least recently is dropped."""
PARTITIONS_MAX = 1000
"""Partitions that are followed, likewise."""
NEAR_BYTES = 256 * 1024
"""Bytes of new records that are read at once: fewer than that take less time than a thread would."""
_NOTHING = answer_digest("")
_KINDS = (UserMessage.kind, MessageSent.kind, TurnsHidden.kind, AgentDeleted.kind)


class LoggedExchange(msgspec.Struct):
    """A question of a client, as the log has it, and what was answered so far."""

    asked: bytes
    """Digest of the question."""
    openings: frozenset[bytes]
    """Digests of the question without its last paragraphs."""
    run: str
    """Event id of the question; the id of its run, unless it was imported."""
    seq: int
    turn: int
    imported: bool
    note: bytes
    """Digest of the note that was sent with the question."""
    at: int
    """Time of the newest record, microseconds UTC."""
    hidden: bool = False
    """True: its turn was undone."""
    answers: list[str] = []
    answered: bytes = _NOTHING
    """Digest of all answers together."""

    @property
    def digests(self) -> ExchangeDigests:
        """Digests of question and answer, for comparison."""
        return ExchangeDigests(self.asked, self.answered, self.openings)

    def answer(self, text: str, at: int) -> None:
        """Add a message of the agent that was sent at a time."""
        self.answers.append(text)
        self.answered, self.at = answer_digest("\n".join(self.answers)), at


class AgentConversations:
    """Conversations that the log of one agent has, each by the id that its questions carry."""

    def __init__(self, epoch: int = 1) -> None:
        self.epoch = epoch
        """Number of the agent's assignment to a partition, before whose records all are known."""
        self.seq = 0
        """Last record that was read."""
        self.deleted = False
        self._conversations: dict[str, list[LoggedExchange]] = {}
        self._with: dict[bytes, set[str]] = {}
        """Conversations that have a question, by its digest."""
        self._by_turn: dict[int, LoggedExchange] = {}
        self._by_run: dict[str, str] = {}
        """Conversation of each run."""
        self._imported: LoggedExchange | None = None

    def exchanges(self, conversation: str) -> Sequence[LoggedExchange]:
        """Return the exchanges of a conversation, oldest first, the hidden ones too; none for an unknown one, and for
        a deleted agent.
        """
        return () if self.deleted else list(self._conversations.get(conversation, ()))

    def with_question(self, asked: bytes) -> Sequence[str]:
        """Return the conversations that have a question, or one that begins with it, sorted."""
        return sorted(self._with.get(asked, ()))

    def conversation_of(self, run: str) -> str | None:
        """Return the conversation of a run; None for a run of no conversation."""
        return self._by_run.get(run)

    def add(self, records: Iterable[Record]) -> None:
        """Add records that follow the ones before; those that were added already are left out."""
        for record in records:
            if record.seq <= self.seq:
                continue
            self.seq = record.seq
            if record.type == AgentDeleted.kind:
                self.deleted = True
            elif not is_erased(record.payload):
                self._add(record, event_of(record))

    def _add(self, record: Record, said: Any) -> None:
        if isinstance(said, UserMessage):
            self._ask(record, said)
        elif isinstance(said, MessageSent):
            exchange = self._imported if said.imported else self._by_turn.get(record.turn)
            if exchange is not None:
                exchange.answer(said.text, record.recorded_at)
        elif isinstance(said, TurnsHidden):
            for turn in said.turns:
                if turn in self._by_turn:
                    self._by_turn[turn].hidden = True

    def _ask(self, record: Record, said: UserMessage) -> None:
        if not said.conversation:
            self._imported = None
            return
        exchange = LoggedExchange(
            asked=question_digest(said.text), openings=opening_digests(said.text),
            run=record.event_id, seq=record.seq, turn=record.turn,
            imported=said.imported, note=question_digest(said.note), at=record.recorded_at,
        )  # fmt: skip
        self._conversations.setdefault(said.conversation, []).append(exchange)
        for asked in (exchange.asked, *exchange.openings):
            self._with.setdefault(asked, set()).add(said.conversation)
        self._imported = exchange if said.imported else None
        if not said.imported:
            self._by_turn[record.turn] = exchange
            self._by_run[record.event_id] = said.conversation


class _PartitionConversations:
    """Conversations of the agents of one partition that were asked for. Belongs to one event loop.

    A thread reads what takes long, for all requests that wait together: they continue together too, and so their
    messages share commits and queries.
    """

    def __init__(self, store: FileStore, partition: str, ports: Ports) -> None:
        self._store, self._partition, self._ports = store, partition, ports
        self._follower = LogFollower(store.partition(partition))
        self._commit: int | None = None
        """Last commit that was read; None: the end of the partition is not known."""
        self._agents: OrderedDict[str, AgentConversations] = OrderedDict()
        self._wanted: dict[str, Assignment] = {}
        """Agents that the next reading is for, by stream."""
        self._reading: asyncio.Future[Mapping[str, EverlogError]] | None = None
        """Reading in a thread, to which everything here belongs meanwhile. Its result: agents that it failed for."""
        self._is_looked_at = False
        """True: what this turn of the event loop may need to know of the partition was read."""

    async def current(self, agent: Assignment) -> AgentConversations:
        """Return the conversations of an agent as its log has them now."""
        stream = agent.agent_id
        while self._reading is not None or (kept := self._at_once(agent)) is None:
            self._wanted[stream] = agent
            if self._reading is None:
                self._reading = asyncio.ensure_future(self._read_aside())
            failures = await asyncio.shield(self._reading)
            if stream in failures:
                raise failures[stream]
        self._wanted.pop(stream, None)
        return kept

    def _kept(self, agent: Assignment) -> AgentConversations | None:
        """Return the conversations of an agent; None if they are not kept, or were read before it moved away and back:
        what it said meanwhile is in another partition.
        """
        kept = self._agents.get(agent.agent_id)
        return None if kept is None or kept.epoch < agent.epoch else kept

    def _at_once(self, agent: Assignment) -> AgentConversations | None:
        """Return the conversations of an agent as its log has them now, if little has to be read for that; else None.

        A thread for it would cost more, and the message would miss the others that are handled together.
        """
        if self._commit is None or self._kept(agent) is None:
            return None
        if not self._is_looked_at:
            behind = self._follower.bytes_behind(self._commit)
            if behind > NEAR_BYTES:
                return None
            if behind:
                self._read_on(self._commit)
            # All that runs before the flag is cleared was waiting when the log was looked at, and needs nothing newer.
            self._is_looked_at = True
            asyncio.get_running_loop().call_soon(self._look_again)
        if (kept := self._kept(agent)) is not None:
            self._agents.move_to_end(agent.agent_id)
        return kept

    def _look_again(self) -> None:
        self._is_looked_at = False

    async def _read_aside(self) -> Mapping[str, EverlogError]:
        wanted = [self._wanted.pop(stream) for stream in sorted(self._wanted)[:AGENTS_MAX]]
        try:
            failures: Mapping[str, EverlogError] = await self._ports.aside(self._read, wanted)
            return failures
        except EverlogError as error:
            return {agent.agent_id: error for agent in wanted}
        finally:
            self._reading = None

    def _read(self, wanted: Sequence[Assignment]) -> Mapping[str, EverlogError]:
        """Read the log to its end, and the conversations of agents. Return the errors of agents that have one."""
        if self._commit is not None and self._follower.has_more(self._commit):
            self._read_on(self._commit)
        fresh = [agent for agent in wanted if self._kept(agent) is None]
        passed: list[pa.Table] = []
        # The agents are read after the end was found: what is written in between is in both, and is added once.
        if self._commit is None:
            self._commit = self._follower.skip_to_end(passed.append)
            place = self._follower
        elif fresh:
            place = LogFollower(self._store.partition(self._partition))
            place.skip_to_end(passed.append)
        closed = place.closed_heads() if fresh else {}
        found = {agent.agent_id: AgentConversations(agent.epoch) for agent in fresh}
        failures: dict[str, EverlogError] = {}
        for agent in fresh:
            stream = agent.agent_id
            # Records may be elsewhere: in closed files, in earlier partitions, with the parent of a fork.
            if stream in closed or agent.epoch > 1 or agent.parent:
                try:
                    found[stream].add(records_of(_said(self._store.reader(stream).table(stream))))
                except EverlogError as error:
                    failures[stream] = error
        for table in passed:
            self._add(table, found)
        # What was passed may lack the end of a file that was closed meanwhile: only `wanted` ones were read there.
        away = failures.keys() | (found.keys() & closed.keys()) - {agent.agent_id for agent in fresh}
        self._agents.update((stream, talk) for stream, talk in found.items() if stream not in away)
        for agent in wanted:
            if agent.agent_id in self._agents:
                self._agents.move_to_end(agent.agent_id)
        while len(self._agents) > AGENTS_MAX:
            self._agents.popitem(last=False)
        return failures

    def _read_on(self, after: int) -> None:
        try:
            for table in self._follower.since(after):
                self._commit = table.column("commit")[-1].as_py()
                self._add(table, self._agents)
        except CommitRewritten:  # a crash took a commit that was never acknowledged: read the logs again
            self._agents.clear()
            self._commit = None

    def _add(self, table: pa.Table, agents: dict[str, AgentConversations]) -> None:
        """Add records to agents. An agent whose first record is among them is added with it, if there is room and it is
        not kept yet: its first request then finds it read.
        """
        for record in records_of(_said(table)):
            talk = agents.get(record.agent_id)
            if talk is None and record.seq == 1 and record.agent_id not in self._agents and len(agents) < AGENTS_MAX:
                talk = agents[record.agent_id] = AgentConversations()
            if talk is not None:
                talk.add((record,))


def _said(table: pa.Table) -> pa.Table:
    """Return the rows that conversations are made of, and the first of each agent."""
    said = pc.is_in(table.column("type"), pa.array(_KINDS))
    return table.filter(pc.or_(said, pc.equal(table.column("seq"), int_value(1))))


class ConversationLog:
    """Conversations of the agents of one store. Belongs to one event loop.

    Each method raises UnknownAgent, CorruptLog, StoreError.
    """

    def __init__(self, store: FileStore, ports: Ports) -> None:
        self._store, self._ports = store, ports
        self._partitions: OrderedDict[str, _PartitionConversations] = OrderedDict()

    def knows(self, stream: str) -> bool:
        """Return True if there is an agent of a name, by one look into the register."""
        return self._store.register_files.find(stream) is not None

    async def of(self, stream: str) -> AgentConversations:
        """Return the conversations of an agent as its log has them now. The caller reads them before it waits for
        anything: later they may change in another thread.
        """
        agent = self._store.assignment(name_of(stream))
        partition = self._partitions.get(agent.partition)
        if partition is None:
            partition = _PartitionConversations(self._store, agent.partition, self._ports)
            self._partitions[agent.partition] = partition
        self._partitions.move_to_end(agent.partition)
        if len(self._partitions) > PARTITIONS_MAX:
            self._partitions.popitem(last=False)
        return await partition.current(agent)
