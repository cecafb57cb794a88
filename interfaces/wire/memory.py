"""Memory, context and records of an agent, as they go over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.interfaces.wire.records import HttpRecord


class RecordQuery(msgspec.Struct, frozen=True):
    """Selection and page of records."""

    after: int = 0
    """Seq after which the page begins."""
    limit: int = 100
    """Number of records that are read, from 1 to 1,000."""
    type: list[str] = []
    """Types of events; none: all."""
    as_of: str | None = None
    """Seq, or time with a zone, after which no record is read."""


class RecordPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some records of an agent, in order."""

    agent: str
    as_of: int
    """Seq of the last record that the request could read."""
    records: Sequence[HttpRecord]
    next: int | None
    """`after` of the next page; null: this is the last."""


class StreamQuery(msgspec.Struct, frozen=True):
    """Beginning and selection of a stream of records."""

    after: str | None = None
    """Seq after which the stream begins; the header Last-Event-ID counts before it. Left out: after the last record."""
    type: list[str] = []
    """Types of events; none: all."""


class BlockShape(msgspec.Struct, frozen=True, kw_only=True):
    """A memory block at a moment."""

    label: str
    value: str
    limit: int
    """Largest size in characters."""
    seq: int
    """Record that gave the block its value: the base of an edit."""
    description: str
    read_only: bool
    """True: the agent sees the block and cannot edit it."""
    origin: str
    """Shared block that this one follows; empty: none."""


class BlocksShape(msgspec.Struct, frozen=True, kw_only=True):
    """Core memory at a moment."""

    agent: str
    as_of: int
    blocks: Sequence[BlockShape]


class AddBlockBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new memory block."""

    label: str
    value: str = ""
    limit: int = 2000
    description: str = ""
    read_only: bool = False


class EditBlockBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Change of a memory block; what is left out stays."""

    value: str | None = None
    base: int | None = None
    """`seq` of the block that the edit was made from: if the block has changed since, nothing is changed and the
    answer, 412, has both texts. null: edit the block as it is now.
    """
    limit: int | None = None
    description: str | None = None
    read_only: bool | None = None


class ContextShape(msgspec.Struct, frozen=True, kw_only=True):
    """Context that the model would see at a moment."""

    agent: str
    as_of: int
    tokens: int
    """Estimated tokens of the request."""
    window: int
    messages: Sequence[Mapping[str, Any]]
    """Chat messages, each with the `seq` of its record (0: the system message)."""


class PressureShape(msgspec.Struct, frozen=True, kw_only=True):
    """Memory pressure at a moment."""

    agent: str
    as_of: int
    tokens: int
    """Tokens of the last call."""
    estimate: int
    """Estimated tokens of the next one."""
    window: int
    fraction: float
    """Part of the window at which the agent is warned."""
    warned: bool
    summary_seq: int | None
    summaries: int
    cached: int


class RowsShape(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a projection at a moment. Times are microseconds since 1970 UTC."""

    agent: str
    as_of: int
    rows: Sequence[Mapping[str, Any]]
