"""The contract of the log: what every implementation promises, numbered, and the suite in `tests/contract` checks.

P1  **Acknowledged is durable.** When `append` returns, the records are on the disk (fdatasync of the file, fsync of
    its directory before the first acknowledgement in a new file) and survive a kill, a crash and a power loss.
    A failed write or sync poisons the writer; it is never retried.
P2  **A crash at any byte** leaves the longest prefix of whole commits. Nothing acknowledged is lost, nothing
    half-appears, and recovery can itself be interrupted and run again.
P3  **A nonsense tail** (zeros, stale bytes, garbage) is recognised and cut by the next owner, who keeps the bytes
    beside the file as `.cut`.
P4  **Damage before the end is an error** that names file, offset and seq. No byte is changed, and what lies before the
    damage can still be read.
P5  **Appends are conditional and atomic**: all drafts of an append become one commit, or none do. A wrong
    `expected_seq` raises WrongSequence with the actual one.
P6  **Appends are idempotent**: the same event ids with the same content return the first commit again. A part of them,
    or other content under a known id, raises DuplicateId. An id too old to be remembered raises StaleId.
P7  **One writer.** After a newer epoch is published, no append of an older one is ever acknowledged: Fenced.
P8  **Gap-free order.** A stream's seq runs 1, 2, 3 ...; a partition's commits run 1, 2, 3 ... A read
    returns them in order.
P9  **No width limits** below 2**63 for counters; names of 1 to 255 bytes; text and payload up to
    `APPEND_BYTES_MAX` a commit, above which the append is refused with BadInput.
P10 **Disk full, I/O errors, a read-only folder** fail the append cleanly with StoreError; after the cause is gone, the
    log opens again without manual steps.

P18 **Erasure.** After a `records_erased` was appended and `seal` returned, no file of the log holds what those records
    said. A tombstone keeps seq, id, type and digest, so that order, counts and the chain still verify.
P19 **Sealing and compaction** never change what a read returns: the new files are durable and were read back before one
    new manifest names them, and the old ones are removed after it. At no moment is a record missing or double.
P20 **Simulation.** Disk, clock and crashes from one seed, in `tests/sim`; each of these promises has a checker there.

(P11 and P13 are laws of `projections/`: a state is as good as the records, and what is derived can be dropped. The
other numbers are those of the roadmap: hosts and later releases.)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import pyarrow as pa

from everlog.events import Draft, Record, StoreError
from everlog.store.base.export_types import RestoreReport


class Append(msgspec.Struct, frozen=True):
    """One conditional append: `drafts` become the records after `expected_seq` of `agent_id`, in one commit."""

    agent_id: str
    expected_seq: int
    drafts: Sequence[Draft]
    from_export: bool = False
    """The records were in a log before and come from an export: ids of any age, tombstones, moves that are over."""


class Commit(msgspec.Struct, frozen=True):
    """An acknowledged append."""

    agent_id: str
    number: int
    """Number of the commit in its partition, from 1."""
    records: Sequence[Record]
    repeated: bool = False
    """The append had been acknowledged before (P6); `records` are those of then."""


class Head(msgspec.Struct, frozen=True):
    """The end of a stream."""

    seq: int
    """Last seq, 0 for an empty stream."""
    chain: bytes
    """Chain value at that seq (32 bytes)."""
    away: bool = False
    """The stream goes on in another partition: nothing is appended to it here before it comes back."""


class State(msgspec.Struct, frozen=True):
    """Where an agent stood at some seq: derived from its records up to there, kept beside them, losable."""

    seq: int
    """Last seq that it was derived from."""
    rows: pa.Table
    """As the Derive gave them."""


class States(msgspec.Struct, frozen=True):
    """Where several agents stood, and what came after: what `state` and `table` say of each, together."""

    agents: Sequence[str]
    rows: pa.Table | None
    """The newest states of those agents that have one; None if nobody has."""
    after: pa.Table
    """The records after the states, of agents without a state all of them, in commit order."""


class SealReport(msgspec.Struct, frozen=True):
    """What `seal` did."""

    files: int = 0
    """Files that were made into others."""
    records: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    erased: int = 0
    """Records that became tombstones."""


Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all, now and then."""


class StateDeriver(Protocol):
    """Makes states. Another room knows what they mean; the store only keeps them beside the records."""

    @property
    def maker(self) -> str:
        """What tells states of this derivation from those of others: changes with every change of their meaning."""
        ...

    def __call__(self, earlier: pa.Table | None, records: pa.Table) -> pa.Table:
        """The new state rows of all agents in `earlier` (states made before, if any) after `records` (commit order).

        The rows have columns `agent_id` and `seq`, and others that are this derivation's own. Pure.
        """
        ...


class LogReader(Protocol):
    """One partition, for reading. Sees whole commits only."""

    @property
    def partition(self) -> str: ...

    def agents(self) -> list[str]:
        """Ids of all agents with records here, sorted."""
        ...

    def head(self, agent_id: str) -> Head:
        """The end of the stream; Head(0, GENESIS) for an agent without records."""
        ...

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head)."""
        ...

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        """Records of one stream (or of all) as an Arrow table of `store.SCHEMA`, in commit order.

        `from_seq` and `to_seq` (both inclusive; None: to the head) are for one stream.
        """
        ...

    def chain(self, agent_id: str, seq: int) -> bytes:
        """The chain value of a stream at `seq`, from 1 to its head; GENESIS at 0. Raises BadInput for any other."""
        ...

    def erasing(self, agent_id: str) -> bool:
        """Whether an erasure of the stream was asked for and is not carried out yet: the words are still there."""
        ...

    def seq_at(self, agent_id: str, time: int) -> int:
        """The last seq of a stream that was recorded up to a time (microseconds UTC, inclusive); 0 for none."""
        ...

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        """The newest state of a stream that the Derive of this `maker` derived; None if there is none.

        With `as_of`, the newest of those that are of a seq up to it (inclusive). It saves reading the records up to its
        seq, and is never needed: whoever gets None reads them.
        """
        ...

    def states(self, maker: str, agents: Iterable[str] | None = None) -> Iterator[States]:
        """`state` of many agents, and the records after it, some hundred agents at a time; None: of all that are here.

        For whoever asks about everybody: it reads each part of a file once for many.
        """
        ...


class Log(LogReader, Protocol):
    """One partition, with its writer. Thread-safe. Any error of `append` that is not a StoreError is our bug."""

    @property
    def epoch(self) -> int:
        """The ownership generation that this writer holds, from 1."""
        ...

    def append(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append one commit and return when it is durable. Calls from several threads share one sync (group commit)."""
        ...

    def append_group(self, appends: Sequence[Append]) -> list["Commit | StoreError"]:
        """Append many commits as one group: one frame, one sync. Each is accepted or refused by itself, in order.

        A refusal (WrongSequence, DuplicateId, StaleId) is returned in its place; a failure of the group is raised.
        """
        ...

    @property
    def unsealed_bytes(self) -> int:
        """Bytes that `seal` would work on; 0 where nothing is ever sealed."""
        ...

    def seal(self, derive: StateDeriver | None = None, progress: Progress | None = None) -> SealReport:
        """Bring what was appended into its lasting form, carry erasures out, compact; reads before and after are equal.

        Appends may go on meanwhile. With `derive`, states are kept beside. A `records_erased` appended before is
        carried out when this returns: of the records that it names no content is left in any file of the log.
        """
        ...

    def close(self) -> None:
        """Give the partition up. Idempotent."""
        ...


class Store(Protocol):
    """All agents of one place: which there are, and the log of each."""

    def agents(self) -> list[str]:
        """Ids of all agents that were ever registered, sorted; sources and shared blocks are no agents."""
        ...

    def sources(self) -> list[str]:
        """Names of all sources that documents were ever loaded into, sorted; `stream_of` gives the stream of each."""
        ...

    def blocks(self) -> list[str]:
        """Names of all shared blocks that were ever made, sorted; `stream_of_block` gives the stream of each."""
        ...

    def assigned(self) -> dict[str, str]:
        """The partition of every stream that was ever registered, sorted by its name."""
        ...

    @property
    def shards(self) -> int:
        """How many partitions there are for agents that share them, 0 for none; fixed when the store was made."""
        ...

    def register(self, agent_id: str, *, shared: bool = False) -> bool:
        """Give `agent_id` a partition, durably; False if it has one already, of either kind.

        It has it for itself, or with `shared` it is in one of the `shards`, chosen by its name. BadInput for an
        impossible name, and for `shared` where there are no shards; UsageError for one that is being restored.
        """
        ...

    def register_many(self, names: Iterable[str], *, shared: bool = False) -> list[str]:
        """`register` many together, for a fraction of the cost; gives those that were new, in the order given."""
        ...

    def partition_of(self, agent_id: str) -> str:
        """Name of the partition that `agent_id` is in; raises UnknownAgent if it was never registered."""
        ...

    def route(self, agent_id: str) -> list[str]:
        """The partitions that an agent was in, in order, and last the one in which it is. Raises UnknownAgent."""
        ...

    def reader(self, agent_id: str, own: Log | None = None) -> LogReader:
        """The log of `agent_id` for reading, through all partitions that it was in. Never locks.

        `own` is for the owner of a partition, who reads there what it knows. Raises UnknownAgent if the agent was never
        registered.
        """
        ...

    def states(self, maker: str) -> Iterator[States]:
        """Where every agent stood, and the records after that, some hundred agents at a time. Raises CorruptLog."""
        ...

    def begin_move(self, log: Log, agent_id: str, to: str) -> None:
        """Let an agent go from the partition of `log`, which has it, to another one: durable when it returns.

        Then `log` refuses what is appended to it with Moved. Raises that if the agent is elsewhere, BadInput for a
        partition that the store does not have, and what `append` does. After a failure, and when it is done, the same
        call is harmless.
        """
        ...

    def finish_move(self, log: Log, agent_id: str) -> bool:
        """Take an agent in whose move to the partition of `log` was begun; False if there is nothing to do.

        To be called before an agent is activated from a partition that others share; `open` does it. Raises Moved if
        the agent is elsewhere, and finishes a move from here that was interrupted.
        """
        ...

    def fork(
        self, parent: str, at: int, name: str, *, event_id: str, closing: Sequence[Draft] = ()
    ) -> Sequence[Record]:
        """Begin the agent `name` as what `parent` was at seq `at` (1 to its head, inclusive): durable when it returns.

        Costs the same however long the parent is: its own first record, `agent_forked` with that `event_id`, and those
        of `closing` in the same commit, are all that is written; they are given back. Its partition is one of its own.
        An attempt that was interrupted is finished by the same call. Raises BadInput for a seq that is not there, and
        for a name that is taken; UnknownAgent.
        """
        ...

    def restore(
        self, path: Path, derive: StateDeriver | None = None, progress: Progress | None = None
    ) -> RestoreReport:
        """Take in the agents of an export (`backup.export`), each with the records that it had, and the same chain.

        All of it is verified first. An agent that is here with all of these records is left as it is; one that has the
        first of them gets the others; an ancestor that nobody has is ended where its fork was cut. After an
        interruption the same call goes on. Raises CorruptLog for an export that is damaged; BadInput for a file that
        is none, and for a name whose records are others; NewerFormat, PartitionBusy, StoreError. But for the last two
        nothing was changed then.
        """
        ...

    def parent_of(self, agent_id: str) -> tuple[str, int] | None:
        """Of a fork its parent and the cut, None for everybody else. Raises UnknownAgent."""
        ...

    def forks_of(self, agent_id: str) -> dict[str, int]:
        """The forks of an agent, their forks too, and the last seq that each shares with it; sorted by name."""
        ...

    def open(self, agent_id: str, command: str, *, take_over: bool = False) -> Log:
        """Own the partition of `agent_id`: take the next epoch, recover the tail, return the writer.

        `command` is what a person reads when the partition is busy ("everlog chat"). Raises PartitionBusy while a live
        process owns it, unless `take_over`, which fences that process. Raises UnknownAgent, CorruptLog, NewerFormat.
        """
        ...

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> Log:
        """Own a partition by its name; `label` is what a person calls it. Raises what `open` does."""
        ...
