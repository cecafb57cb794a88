"""Keep logs and a store in memory: the reference implementation, and a test double for the layers above.

The rules are the same as in files (`append_rules`), but there is no disk. All data lives as long as the MemoryStore.

Used by tests, and by a dry run of `everlog load` without a store.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from everlog.events import (
    Draft,
    Fenced,
    PartitionBusy,
    Record,
    RecordsErased,
    StoreError,
    event_of,
    is_erased,
    tombstone,
)
from everlog.store.backup.restore_service import COMMAND, RestoreService
from everlog.store.base.arrow_schema import SCHEMA, batch_of
from everlog.store.base.contract import Append, Commit, Head, Progress, SealReport, State, StateDeriver, States
from everlog.store.base.export_types import ExportedStream
from everlog.store.base.names import name_of, partition_of, shard_of
from everlog.store.partition.append_rules import AppendGroup, StreamHeads, ValidatedAppend
from everlog.store.partition.chain_lookup import BEGINNING, chain_over, no_record_error
from everlog.store.sealed.erasure import CONNECTING_KINDS, erasures_in
from everlog.store.streams.fork_service import ForkService
from everlog.store.streams.memory_register import MemoryRegister
from everlog.store.streams.move_service import MoveService, check_expected
from everlog.store.streams.register_file import Assignment
from everlog.store.streams.routes import Routes
from everlog.store.streams.shard_numbers import MemoryShardNumbers


class _Shared:
    """Data of one partition, common to all of its logs and readers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mutex = threading.Lock()
        self.ledger = StreamHeads()
        self.records: list[Record] = []
        self.commits: dict[int, Sequence[Record]] = {}
        self.epoch = 0
        self.owner = ""
        """Command of the live owner; empty if no log has the partition open."""


class MemoryReader:
    """Reader of a partition in memory."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared

    @property
    def partition(self) -> str:
        """Name of the partition."""
        return self._shared.name

    def agents(self) -> list[str]:
        """Return the ids of all agents with records in the partition, sorted."""
        return sorted(self._shared.ledger.heads)

    def head(self, agent_id: str) -> Head:
        """Return the end of the stream; Head(0, GENESIS) for an agent without records."""
        return self._shared.ledger.head(name_of(agent_id))

    def heads(self, agents: Iterable[str]) -> dict[str, Head]:
        """Return `head` of many agents, by the names given."""
        return {agent_id: self.head(agent_id) for agent_id in agents}

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Yield the records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head)."""
        name = name_of(agent_id)
        for record in list(self._shared.records):
            if record.agent_id == name and record.seq >= from_seq and (to_seq is None or record.seq <= to_seq):
                yield record

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        """Return the records of one stream (or of all) as an Arrow table of `store.SCHEMA`, in commit order."""
        records = list(self._shared.records) if agent_id is None else list(self.read(agent_id, from_seq, to_seq))
        return pa.Table.from_batches([batch_of(records)] if records else [], SCHEMA)

    def chain(self, agent_id: str, seq: int) -> bytes:
        """Return the chain value of a stream at `seq`; GENESIS at 0. Raises BadInput if the partition has no record
        there.
        """
        name = name_of(agent_id)
        found = chain_over(BEGINNING, [self.table(name, 1, seq)], name, self.partition)
        if found.seq != seq:
            raise no_record_error(self, name, seq)
        return found.chain

    def erasing(self, agent_id: str) -> bool:
        """Return True if an erasure of the stream is still pending."""
        records = list(self.read(agent_id))
        asked = [event for event in map(event_of, records) if isinstance(event, RecordsErased)]
        left = [r.seq for r in records if r.type not in CONNECTING_KINDS and not is_erased(r.payload)]
        return any(event.from_seq <= seq <= event.to_seq for event in asked for seq in left)

    def seq_at(self, agent_id: str, time: int) -> int:
        """Return the last seq of a stream that was recorded at or before `time`, inclusive; 0 for none."""
        return max((record.seq for record in self.read(agent_id) if record.recorded_at <= time), default=0)

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        """Return None: no states are stored in memory."""
        name_of(agent_id)
        return None

    def states(self, maker: str | None, agents: Iterable[str] | None = None) -> Iterator[States]:
        """Yield all records of the agents: no states are stored in memory."""
        names = sorted(map(name_of, self.agents() if agents is None else agents))
        among = frozenset(names)
        records = [record for record in list(self._shared.records) if record.agent_id in among]
        yield States(names, None, pa.Table.from_batches([batch_of(records)] if records else [], SCHEMA))


class MemoryLog(MemoryReader):
    """Reader and writer of one partition in memory. Thread-safe."""

    def __init__(self, partition: str = "memory", command: str = "memory", shared: _Shared | None = None,
                 *, take_over: bool = False) -> None:  # fmt: skip
        """Own a new, empty partition, or with `shared` take over an existing one. Raises PartitionBusy."""
        super().__init__(shared or _Shared(partition))
        with self._shared.mutex:
            if self._shared.owner and not take_over:
                raise PartitionBusy(
                    f"{self._shared.name} is open ({self._shared.owner}); close it there, or use --take-over to "
                    "fence it."
                )
            self._shared.epoch += 1
            self._shared.owner = command
            self._epoch = self._shared.epoch
        self._closed = False

    @property
    def epoch(self) -> int:
        """Number of the ownership that this writer holds, from 1."""
        return self._epoch

    def append(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append one commit. Raises BadInput and StoreError."""
        (result,) = self.append_group([Append(agent_id, expected_seq, drafts)])
        if isinstance(result, StoreError):
            raise result
        return result

    def append_group(self, appends: Sequence[Append]) -> list[Commit | StoreError]:
        """Append many commits as one group. Raises BadInput, before anything is stored, if any append has a wrong
        shape.
        """
        weighed = [ValidatedAppend(append) for append in appends]
        shared = self._shared
        with shared.mutex:
            self._raise_if_unusable()
            group = AppendGroup(shared.ledger, lambda number: shared.commits[number])
            results = [group.admit(append) for append in weighed]
            group.settle()
            shared.records += group.records
            shared.commits.update(
                (result.number, result.records)
                for result in results
                if isinstance(result, Commit) and not result.repeated
            )
            return results

    @property
    def unsealed_bytes(self) -> int:
        """0: memory has nothing to seal."""
        return 0

    def seal(self, derive: StateDeriver | None = None, progress: Progress | None = None) -> SealReport:
        """Carry out erasures; there is nothing else to do."""
        del derive, progress
        shared = self._shared
        with shared.mutex:
            self._raise_if_unusable()
            spans = erasures_in(pa.Table.from_batches([batch_of(shared.records)], SCHEMA))
            left = [
                tombstone(r)
                if r.type not in CONNECTING_KINDS and any(s.holds(r.seq) for s in spans.get(r.agent_id, ()))
                else r
                for r in shared.records
            ]
            count = sum(now is not then for now, then in zip(left, shared.records, strict=True))
            shared.records = left
            shared.commits = {n: list(records) for n, records in groupby(left, key=lambda record: record.commit)}
            return SealReport(records=len(left), erased=count)

    def close(self) -> None:
        """Release the partition. Idempotent."""
        with self._shared.mutex:
            if self._shared.epoch == self._epoch:
                self._shared.owner = ""
            self._closed = True

    def _raise_if_unusable(self) -> None:
        if self._shared.epoch != self._epoch:
            raise Fenced(
                f"epoch {self._epoch} of {self._shared.name} is over: a newer owner has the partition. This append was "
                "not acknowledged and this writer must stop."
            )
        if self._closed:
            raise StoreError(f"the log {self._shared.name} is closed; open it again.")


class _Opener:
    """Partitions of a store in memory, created on first use."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._partitions: dict[str, _Shared] = {}

    def at(self, name: str) -> _Shared:
        """Return the partition of that name."""
        with self._mutex:
            return self._partitions.setdefault(name, _Shared(name))

    def place(self, name: str, partition: str) -> MemoryReader:
        del name
        return MemoryReader(self.at(partition))

    def open(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> MemoryLog:
        del label
        return MemoryLog(command=command, shared=self.at(partition), take_over=take_over)

    def open_restoring(self, stream: ExportedStream) -> MemoryLog:
        return self.open(partition_of(stream.agent_id), COMMAND)

    def is_restoring(self, agent_id: str) -> bool:
        del agent_id
        return False

    def release_restored(self, agent_id: str) -> None:
        """Do nothing: a store in memory does not survive an interrupted restore."""


class MemoryStore:
    """All agents of one store, in memory."""

    def __init__(self, shards: int = 0, now: Callable[[], int] = lambda: 0) -> None:
        """Create an empty store with that many shared partitions; `now` returns microseconds UTC."""
        self._mutex = threading.Lock()
        self.shard_numbers = numbers = MemoryShardNumbers(shards)
        self.set_shards = numbers.change
        self._register = register = MemoryRegister()
        self._opener = opener = _Opener()
        routes = Routes(register, opener.place)
        moving = MoveService(register, routes, numbers, now)
        self.agents, self.sources, self.blocks = routes.agents, routes.sources, routes.blocks
        self.assigned, self.assignments = routes.assigned, routes.assignments
        self.latest, self.next_generation = routes.latest, routes.next_generation
        self.stream_of = routes.latest  # only a store on a disk gives agents other names
        self.route, self.partition_of = routes.route, routes.partition_of
        self.reader, self.states, self.reader_groups = routes.reader, routes.states, routes.reader_groups
        self.parent_of, self.forks_of, self.check_not_lost = routes.parent_of, routes.forks_of, routes.check_not_lost
        self.begin_move, self.finish_move = moving.begin_move, moving.finish_move
        self.fork = ForkService(register, routes, opener, now).fork
        self.restore = RestoreService(register, routes, opener, self.open, now).restore

    @property
    def shards(self) -> int:
        """Number of shared partitions now."""
        return self.shard_numbers.all()[-1]

    def register(self, agent_id: str, *, shared: bool = False) -> bool:
        """Assign a partition to `agent_id`. Return False if it has one already. Raises BadInput for an impossible
        name.
        """
        return bool(self.register_many([agent_id], shared=shared))

    def register_many(self, names: Iterable[str], *, shared: bool = False) -> list[str]:
        """Assign partitions to many agents. Return those that were new."""
        known = dict.fromkeys(map(name_of, names))
        placed = {name: shard_of(name, self.shards) if shared else partition_of(name) for name in known}
        with self._mutex:
            new = [name for name in placed if name not in self._register.places]
            self._register.places.update((name, [Assignment(name, placed[name])]) for name in new)
        return new

    def open(self, agent_id: str, command: str, *, take_over: bool = False, expected: str | None = None) -> MemoryLog:
        """Own the partition of `agent_id`; see `store.Store`. Raises Moved; PartitionBusy while another log has it
        open, unless `take_over`.
        """
        partition = self.partition_of(agent_id)
        check_expected(agent_id, partition, expected)
        log = self.open_partition(partition, command, take_over=take_over)
        self.finish_move(log, agent_id)
        return log

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> MemoryLog:
        """Own a partition by its name, which is also its name in errors."""
        return self._opener.open(partition, command, label=label, take_over=take_over)
