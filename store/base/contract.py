"""Define the contract of the log: numbered promises of every implementation, checked by the suite in `tests/contract`.

Implemented by `FileLog`, `FileStore` and `stores/memory_store.py`; used by hosts, agents and commands for their types.
Code and tests cite the promises by number, so a number is never given to another promise.

P1  **Acknowledged is durable.** When `append` returns, the records are on the disk (fdatasync of the file, fsync of
    its directory before the first acknowledgement in a new file) and survive a kill, a crash and a power loss.
    A failed write or sync poisons the writer; it is never retried.
P2  **A crash at any byte** leaves the longest prefix of whole commits. No acknowledged commit is lost, no commit
    appears in part, and recovery can itself be interrupted and run again.
P3  **A nonsense tail** (zeros, stale bytes, garbage) is recognised and cut off by the next owner, who keeps the bytes
    next to the file as `.cut`.
P4  **Damage before the end is an error** that names file, offset and seq. No byte is changed, and the records before
    the damage can still be read.
P5  **Appends are conditional and atomic**: all drafts of an append become one commit, or none do. A wrong
    `expected_seq` raises WrongSequence with the actual seq.
P6  **Appends are idempotent**: the same event ids with the same content return the first commit again. A part of a
    commit, or other content under a known id, raises DuplicateId. An id too old to be remembered raises StaleId.
P7  **One writer.** After a newer epoch is published, no append of an older epoch is ever acknowledged: Fenced.
P8  **Gap-free order.** A stream's seq runs 1, 2, 3 ...; a partition's commits run 1, 2, 3 ... A read
    returns them in order.
P9  **No width limits** below 2**63 for counters; names of 1 to 255 bytes; text and payload up to
    `APPEND_BYTES_MAX` a commit, above which the append is refused with BadInput.
P10 **Disk full, I/O errors, a read-only folder** fail the append cleanly with StoreError; after the cause is gone, the
    log opens again without manual steps.

P18 **Erasure.** After a `records_erased` was appended and `seal` returned, no file of the log holds the content of
    those records. A tombstone keeps seq, id, type and digest, so that order, counts and the chain still verify.
P19 **Sealing and compaction** never change the result of a read: the new files are durable and were read back before
    one new manifest names them, and the old files are removed after that. At no moment is a record missing or double.
P20 **Simulation.** Disk, clock and crashes from one seed, in `tests/sim`; each of these promises has a checker there.

(P11 and P13 are laws of `projections/`: reading a state is equivalent to reading its records, and derived data can be
deleted. The other numbers belong to hosts and later releases; the roadmap lists them.)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import pyarrow as pa

from everlog.events import Draft, Record, StoreError
from everlog.store.base.export_types import RestoreReport


class Append(msgspec.Struct, frozen=True):
    """A conditional append: `drafts` become the records of `agent_id` after `expected_seq`, in one commit."""

    agent_id: str
    expected_seq: int
    drafts: Sequence[Draft]
    from_export: bool = False
    """True if the records come from an export and were in a log before: ids of any age, tombstones and completed moves
    are accepted.
    """


class Commit(msgspec.Struct, frozen=True):
    """An acknowledged append."""

    agent_id: str
    number: int
    """Number of the commit in its partition, from 1."""
    records: Sequence[Record]
    repeated: bool = False
    """True if the append had been acknowledged before (P6); `records` are then the recorded ones."""


class Head(msgspec.Struct, frozen=True):
    """The end of a stream."""

    seq: int
    """Last seq, 0 for an empty stream."""
    chain: bytes
    """Chain value at that seq (32 bytes)."""
    away: bool = False
    """True if the stream continues in another partition: appends here are refused until the agent moves back."""


class State(msgspec.Struct, frozen=True):
    """State of an agent at some seq: derived from its records up to there, stored next to them, and replaceable."""

    seq: int
    """Last seq from which the state was derived."""
    rows: pa.Table
    """Rows as the StateDeriver returned them."""


class States(msgspec.Struct, frozen=True):
    """States of several agents, and the records after them: the results of `state` and `table` for many at once."""

    agents: Sequence[str]
    rows: pa.Table | None
    """Newest states of those agents that have one; None if no agent has a state."""
    after: pa.Table
    """Records after the states, in commit order; of an agent without a state, all of its records."""


class SealReport(msgspec.Struct, frozen=True):
    """Result of `seal`."""

    files: int = 0
    """Number of files that were replaced by others."""
    records: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    erased: int = 0
    """Number of records that became tombstones."""


Progress = Callable[[int, int], None]
"""Callback with the bytes done and the bytes in total, called from time to time."""


class StateDeriver(Protocol):
    """Derives states. Another room defines their meaning; the store only keeps them next to the records."""

    @property
    def maker(self) -> str:
        """Version of the derivation: a state is used only under the `maker` that derived it. Changes whenever the
        meaning of states changes.
        """
        ...

    def __call__(self, earlier: pa.Table | None, records: pa.Table) -> pa.Table:
        """Return the state rows of all agents in `earlier` (states derived before, if any) and `records` (in commit
        order).

        The rows have the columns `agent_id` and `seq`, and further columns that this derivation defines. Pure.
        """
        ...


class LogReader(Protocol):
    """Reader of one partition. Sees whole commits only."""

    @property
    def partition(self) -> str: ...

    def agents(self) -> list[str]:
        """Return the ids of all agents with records in the partition, sorted."""
        ...

    def head(self, agent_id: str) -> Head:
        """Return the end of the stream; Head(0, GENESIS) for an agent without records."""
        ...

    def heads(self, agents: Iterable[str]) -> dict[str, Head]:
        """Return `head` of many agents, by the names given, for hardly more than the cost of one."""
        ...

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Yield the records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head)."""
        ...

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        """Return the records of one stream (or of all streams) as an Arrow table of `store.SCHEMA`, in commit order.

        `from_seq` and `to_seq` (both inclusive; None: to the head) apply to one stream only.
        """
        ...

    def chain(self, agent_id: str, seq: int) -> bytes:
        """Return the chain value of a stream at `seq`, from 1 to its head; GENESIS at 0. Raises BadInput for any other
        seq.
        """
        ...

    def erasing(self, agent_id: str) -> bool:
        """Return True if an erasure of the stream was appended and is not carried out yet: its content is still in the
        files.
        """
        ...

    def seq_at(self, agent_id: str, time: int) -> int:
        """Return the last seq of a stream that was recorded at or before `time` (microseconds UTC, inclusive); 0 for
        none.
        """
        ...

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        """Return the newest state of a stream that the StateDeriver of this `maker` derived; None if there is none.

        With `as_of`, return the newest state at or before that seq (inclusive). A state saves reading the records up to
        its seq. It is never required: without a state, read the records.
        """
        ...

    def states(self, maker: str | None, agents: Iterable[str] | None = None) -> Iterator[States]:
        """Yield `state` of many agents with the records after it, some hundred agents at a time; None: all agents of
        the partition. With `maker` None no state is read: all records come after.

        Meant for questions about many agents: each part of a file is read once for many of them.
        """
        ...


class Log(LogReader, Protocol):
    """Reader and writer of one partition. Thread-safe. Any error of `append` that is not a StoreError is a bug of
    everlog.
    """

    @property
    def epoch(self) -> int:
        """Number of the ownership that this writer holds, from 1."""
        ...

    def append(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append one commit and return when it is durable. Calls from several threads share one sync (group commit)."""
        ...

    def append_group(self, appends: Sequence[Append]) -> list["Commit | StoreError"]:
        """Append many commits as one group: one frame, one sync. Each append is accepted or refused separately, in
        order.

        A refusal (WrongSequence, DuplicateId, StaleId) is returned in place of the commit; a failure of the group is
        raised.
        """
        ...

    @property
    def unsealed_bytes(self) -> int:
        """Number of bytes that `seal` would work on; 0 for an implementation that never seals."""
        ...

    def seal(self, derive: StateDeriver | None = None, progress: Progress | None = None) -> SealReport:
        """Convert appended frames into sealed files, carry out erasures, and compact; reads before and after are equal.

        Appends may continue meanwhile. With `derive`, states are stored next to the records. A `records_erased` that
        was appended before the call is carried out when the call returns: no file of the log holds content of the
        records that it names.
        """
        ...

    def close(self) -> None:
        """Release the partition. Idempotent."""
        ...


class Store(Protocol):
    """All agents of one store, and the log of each."""

    def agents(self) -> list[str]:
        """Return the ids of all agents that were ever registered, sorted; sources and shared blocks are not agents."""
        ...

    def sources(self) -> list[str]:
        """Return the names of all sources that documents were ever loaded into, sorted; `stream_of` returns the stream
        of each.
        """
        ...

    def blocks(self) -> list[str]:
        """Return the names of all shared blocks that were ever created, sorted; `stream_of_block` returns the stream of
        each.
        """
        ...

    def assigned(self) -> dict[str, str]:
        """Return the partition of every stream that was ever registered, sorted by stream name."""
        ...

    @property
    def shards(self) -> int:
        """Number of partitions that agents can share, 0 for none. `set_shards` of any process may change it."""
        ...

    def set_shards(self, number: int) -> bool:
        """Change `shards`, durably. No agent is moved by this. Return False if it is that number already."""
        ...

    def register(self, agent_id: str, *, shared: bool = False) -> bool:
        """Assign a partition to `agent_id`, durably. Return False if the agent already has one, dedicated or shared.

        The partition is dedicated, or with `shared` one of the `shards`, chosen by the agent's name. Raises BadInput
        for an impossible name and for `shared` in a store without shards; UsageError for a name that is being restored.
        """
        ...

    def register_many(self, names: Iterable[str], *, shared: bool = False) -> list[str]:
        """Register many agents at once, with few syncs. Return the names that were new, in the order given."""
        ...

    def partition_of(self, agent_id: str) -> str:
        """Return the partition that `agent_id` is in. Raises UnknownAgent if the agent was never registered."""
        ...

    def check_not_lost(self, agent_id: str) -> None:
        """Raise CorruptLog if an agent without a record in its partition has had some there, as one has that began.
        Raises UnknownAgent.
        """
        ...

    def stream_of(self, name: str) -> str:
        """Return the stream that `rename` gave a name to, or else `latest`. Raises BadInput, CorruptLog."""
        ...

    def latest(self, name: str) -> str:
        """Return the stream of the newest agent of a name: NAME, or NAME@genN if forks took the name of deleted agents.

        A name with the ending @genN means that agent, NAME@gen1 the first one. The stream need not exist. Raises
        CorruptLog if the register has lost the file of a later agent of the name.
        """
        ...

    def next_generation(self, stream: str) -> str:
        """Return the stream of a fork that takes the name of the deleted agent in `stream`, the newest of its name.
        Raises BadInput if a still later one came from another store.
        """
        ...

    def route(self, agent_id: str) -> list[str]:
        """Return the partitions that an agent was in, oldest first, the current one last. Raises UnknownAgent."""
        ...

    def reader(self, agent_id: str, own: Log | None = None) -> LogReader:
        """Return a reader of the log of `agent_id` through all partitions that the agent was in. Never locks.

        The owner of a partition passes its log as `own`, which is then read in place of the files. Raises UnknownAgent
        if the agent was never registered.
        """
        ...

    def states(self, maker: str) -> Iterator[States]:
        """Yield states of all agents and the records after them, some hundred agents at a time. Raises CorruptLog."""
        ...

    def reader_groups(self) -> list[list[str]]:
        """Return the names of all agents in groups: the `reader` of the first agent of a group reads each of them.
        Agents that share a partition are together, sorted by name; each fork and each agent that moved is alone.
        """
        ...

    def begin_move(self, log: Log, agent_id: str, to: str) -> None:
        """Append the departure of an agent from the partition of `log` to the partition `to`: durable when it returns.

        From then on `log` refuses appends to the agent with Moved. Raises Moved if the agent is in another partition,
        BadInput for a partition that the store does not have, and the errors of `append`. Idempotent: the call may be
        repeated after a failure and after success.
        """
        ...

    def finish_move(self, log: Log, agent_id: str) -> bool:
        """Append the arrival of an agent whose move to the partition of `log` was begun. Return False if nothing is
        pending.

        Call it before an agent of a shared partition is activated; `open` does so. Raises Moved if the agent is in
        another partition; if a move away from here was interrupted, that move is finished first.
        """
        ...

    def fork(
        self, parent: str, at: int, name: str, *, event_id: str, closing: Sequence[Draft] = (), by: str = ""
    ) -> Sequence[Record]:
        """Create the agent `name` from the records of `parent` up to seq `at` (1 to its head, inclusive): durable when
        it returns.

        The cost does not depend on the length of the parent: only the fork's first record, `agent_forked` with that
        `event_id` and the key `by`, and the drafts of `closing` are written, in one commit. These records are returned.
        The fork's partition is dedicated. The same call finishes an attempt that was interrupted. Raises BadInput for a
        seq that the parent does not have and for a name that is taken; UnknownAgent.
        """
        ...

    def restore(
        self, path: Path, derive: StateDeriver | None = None, progress: Progress | None = None
    ) -> RestoreReport:
        """Restore the agents of an export (`backup.export`), each with its original records and the same chain.

        The whole file is verified first. An agent that already has all of these records is left unchanged; an agent
        that has only the first of them gets the rest. An ancestor that the store does not have is restored up to the
        fork point and marked as ended. After an interruption the same call continues. Raises CorruptLog for a damaged
        export; BadInput for a file that is not an export, and for a name whose records differ; NewerFormat,
        PartitionBusy, StoreError. Except after the last two, nothing was changed.
        """
        ...

    def parent_of(self, agent_id: str) -> tuple[str, int] | None:
        """Return the parent and the fork point of a fork; None for an agent that is not a fork. Raises UnknownAgent."""
        ...

    def forks_of(self, agent_id: str) -> dict[str, int]:
        """Return the forks of an agent and their forks, with the last seq that each shares with it; sorted by name."""
        ...

    def open(self, agent_id: str, command: str, *, take_over: bool = False, expected: str | None = None) -> Log:
        """Own the partition of `agent_id`: take the next epoch, recover the tail, return the writer.

        `command` describes this process in the error of another process that finds the partition busy ("everlog chat").
        Raises PartitionBusy while a live process owns the partition, unless `take_over`, which fences that process;
        Moved if the agent is not in the partition `expected` (None: any); UnknownAgent, CorruptLog, NewerFormat.
        """
        ...

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> Log:
        """Own a partition by its name; `label` is its name in errors. Raises the errors of `open`."""
        ...
