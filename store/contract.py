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

(P11 to P20 belong to projections, hosts and later releases; their numbers are those of the roadmap.)
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec
import pyarrow as pa

from events import Draft, Record, StoreError


class Append(msgspec.Struct, frozen=True):
    """One conditional append: `drafts` become the records after `expected_seq` of `agent_id`, in one commit."""

    agent_id: str
    expected_seq: int
    drafts: Sequence[Draft]


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

    def table(self, agent_id: str | None = None) -> pa.Table:
        """Records of one stream (or of all) as an Arrow table of `store.SCHEMA`, in commit order."""
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

    def close(self) -> None:
        """Give the partition up. Idempotent."""
        ...


class Store(Protocol):
    """All agents of one place: which there are, and the log of each."""

    def agents(self) -> list[str]:
        """Ids of all agents that were ever registered, sorted."""
        ...

    def register(self, agent_id: str) -> bool:
        """Give `agent_id` a partition, durably; False if it has one already. BadInput for an impossible name."""
        ...

    def reader(self, agent_id: str) -> LogReader:
        """The partition of `agent_id` for reading; raises UnknownAgent if it was never registered. Never locks."""
        ...

    def open(self, agent_id: str, command: str, *, take_over: bool = False) -> Log:
        """Own the partition of `agent_id`: take the next epoch, recover the tail, return the writer.

        `command` is what a person reads when the partition is busy ("everlog chat"). Raises PartitionBusy while a live
        process owns it, unless `take_over`, which fences that process. Raises UnknownAgent, CorruptLog, NewerFormat.
        """
        ...
