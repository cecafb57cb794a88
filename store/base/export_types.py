"""Define the contents of an export and the results of a restore: plain values.

Used by `store/backup` and `everlog export`. `ExportHeader` is in export files as JSON: a new field needs a default.
"""

import msgspec


class ExportedStream(msgspec.Struct, frozen=True):
    """One stream of an export: records `from_seq` to `to_seq` of an agent or a source, without a gap."""

    agent_id: str
    from_seq: int
    to_seq: int
    chain: str
    """Chain value at `to_seq`, in hexadecimal."""
    parent: str = ""
    """Parent of a fork, whose records precede these: another stream of the same export. Empty if the stream is not a
    fork.
    """
    parent_seq: int = 0
    """Fork point of a fork: the last of the parent's records that belong to the fork too."""
    erased: int = 0
    """Number of tombstones among the records."""

    @property
    def records(self) -> int:
        """Number of records of the stream."""
        return self.to_seq - self.from_seq + 1


class ExportHeader(msgspec.Struct, frozen=True):
    """Header of an export: its contents."""

    format: int
    agent_id: str
    """Agent that was exported."""
    store_id: str
    """Id of the store from which the export was made."""
    made_at: int
    """Time of the export, microseconds UTC."""
    streams: list[ExportedStream]
    """Ancestors first, oldest first; then the agent; then sources."""
    sources: list[str] = []
    """Sources that the agent could search; the export holds those that are among the streams too."""

    @property
    def records(self) -> int:
        """Number of records in all streams."""
        return sum(stream.records for stream in self.streams)

    @property
    def own(self) -> ExportedStream:
        """Stream of the exported agent itself."""
        return next(stream for stream in self.streams if stream.agent_id == self.agent_id)


class RestoredStream(msgspec.Struct, frozen=True):
    """Outcome of one stream of an export."""

    stream: ExportedStream
    written: int
    """Number of records that were written; the others were there already."""
    ended: bool = False
    """True if it is an ancestor that was marked as ended, because only its fork was restored."""


class RestoreReport(msgspec.Struct, frozen=True):
    """Result of a restore."""

    contents: ExportHeader
    streams: list[RestoredStream]
    revived: str = ""
    """Stream of the fork as which an agent that was deleted here came back; empty if none did."""
    erased_since: int = 0
    """Exported records that were erased since the agent was deleted here, which therefore stays deleted."""

    @property
    def written(self) -> int:
        """Number of records that were written, in all streams."""
        return sum(restored.written for restored in self.streams)
