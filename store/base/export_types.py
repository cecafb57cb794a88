"""What an export holds, and what a restore did with it: plain values."""

import msgspec


class ExportedStream(msgspec.Struct, frozen=True):
    """One stream of an export: records `from_seq` to `to_seq` of an agent, or of a source, without a gap."""

    agent_id: str
    from_seq: int
    to_seq: int
    chain: str
    """Chain value at `to_seq`, in hexadecimal."""
    parent: str = ""
    """Of a fork: whose records come before these; another stream of the same export."""
    parent_seq: int = 0
    """Of a fork: the cut, the last of the parent's records that are the fork's too."""
    erased: int = 0
    """How many of the records are tombstones."""

    @property
    def records(self) -> int:
        """How many there are."""
        return self.to_seq - self.from_seq + 1


class ExportHeader(msgspec.Struct, frozen=True):
    """What an export holds: its header."""

    format: int
    agent_id: str
    """Whom it is an export of."""
    store_id: str
    """The store that it was made from."""
    made_at: int
    """Microseconds UTC."""
    streams: list[ExportedStream]
    """Ancestors first, oldest first; then the agent; then sources."""
    sources: list[str] = []
    """Sources that the agent could search; those that are among the streams are in the export too."""

    @property
    def records(self) -> int:
        """How many there are in all streams."""
        return sum(stream.records for stream in self.streams)

    @property
    def own(self) -> ExportedStream:
        """The stream of the agent itself."""
        return next(stream for stream in self.streams if stream.agent_id == self.agent_id)


class RestoredStream(msgspec.Struct, frozen=True):
    """What became of one stream of an export."""

    stream: ExportedStream
    written: int
    """Records that were restored; the others were there already."""
    ended: bool = False
    """Whether it is an ancestor that was ended, for only its fork was asked for."""


class RestoreReport(msgspec.Struct, frozen=True):
    """What a restore did."""

    contents: ExportHeader
    streams: list[RestoredStream]

    @property
    def written(self) -> int:
        """Records that were restored, of all streams."""
        return sum(restored.written for restored in self.streams)
