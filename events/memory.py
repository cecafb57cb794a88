"""Events of what the agent knows: core memory, archival memory, summaries, and how much of each the context shows.

Written by functions of the agent, edits of people, and summaries; read by the SQL of projections. Released shapes never
change: see `upcast`.
"""

from typing import ClassVar, Literal

from everlog.events.base import Event
from everlog.events.model import Usage


class MemoryEdited(Event, frozen=True, kw_only=True):
    """A memory block has a new value: `text`, the whole of it."""

    kind: ClassVar[str] = "memory_edited"

    label: str
    operation: Literal["created", "appended", "replaced", "removed", "set", "changed", "copied"]
    """`changed`: only its limit, description or protection changed; `copied`: from the shared block that it follows."""
    limit: int
    """Maximum characters of the block, inclusive."""
    origin: str = ""
    """Shared block that the value was copied from, if any."""
    origin_version: int = 0
    """Seq, in the shared block's stream, of the edit that has this value."""
    description: str = ""
    """Purpose of the block, in words for the model."""
    read_only: bool = False
    """True if the agent sees the block and cannot edit it."""
    author: str = ""
    """In the stream of a shared block: the agent that made the edit; empty for a person."""


class BlockRemoved(Event, frozen=True, kw_only=True):
    """The memory block is no longer in core memory. A shared block continues without this agent."""

    kind: ClassVar[str] = "block_removed"

    label: str


class ArchivalInserted(Event, frozen=True, kw_only=True):
    """The agent or a person stored `text`. The record's event id is the memory's id, however long the text is."""

    kind: ClassVar[str] = "archival_inserted"

    tags: list[str] = []
    source: str = ""


class ArchivalUpdated(Event, frozen=True, kw_only=True):
    """The archival memory `memory_id` now has the text `text`. Its time and source stay those of the insert."""

    kind: ClassVar[str] = "archival_updated"

    memory_id: str
    tags: list[str] = []
    """All tags from now on: an empty list removes the earlier tags."""


class ArchivalDeleted(Event, frozen=True, kw_only=True):
    """The archival memory `memory_id` is no longer found, whatever later records say of it."""

    kind: ClassVar[str] = "archival_deleted"

    memory_id: str


class SourceAttached(Event, frozen=True, kw_only=True):
    """The documents of `source` can be searched by the agent."""

    kind: ClassVar[str] = "source_attached"

    source: str


class SourceDetached(Event, frozen=True, kw_only=True):
    """The documents of `source` can no longer be searched by the agent."""

    kind: ClassVar[str] = "source_detached"

    source: str


class DocumentLoaded(Event, frozen=True, kw_only=True):
    """A document was loaded into `source`, in place of one with the same name; `text` is its whole text."""

    kind: ClassVar[str] = "document_loaded"

    source: str
    document: str
    """Name of the document, unique in the source."""
    title: str = ""
    media_type: str = ""
    """Media type of the file that the text was taken from, as `application/pdf`."""
    bytes: int = 0
    """Size of that file."""
    chars: int = 0
    """Length of the text."""
    sha256: str = ""
    """Digest of the text in UTF-8, hexadecimal."""
    origin: str = ""
    """Folder or file that the document was loaded from, as the user named it, or `sql`."""


class DocumentRemoved(Event, frozen=True, kw_only=True):
    """The document is no longer in `source`."""

    kind: ClassVar[str] = "document_removed"

    source: str
    document: str


class Summary(Event, frozen=True, kw_only=True):
    """`text` replaces the records `covers_from` to `covers_to` (inclusive) in the context: hidden, not deleted."""

    kind: ClassVar[str] = "summary"

    covers_from: int
    covers_to: int
    kept_from: int
    """First seq that the context still shows."""
    hidden: int
    """Number of messages that this and earlier summaries hide."""
    total: int
    """Number of all messages of the agent at this moment, without those of turns that were hidden by hand."""
    summarized: int
    """Number of messages that this summary replaces."""
    method: Literal["model", "mechanical"] = "model"
    """`mechanical`: the last resort if a model's summary is no shorter, or no model answers."""
    words: int = 0
    """Maximum words that the model was asked for."""
    model: str = ""
    usage: Usage = Usage()
    latency_us: int = 0
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """Parts of the request in order, each with its fingerprint."""
    raw: str = ""


class SummaryExpanded(Event, frozen=True, kw_only=True):
    """The summary at `summary_seq` was undone: the context shows again what it hid, from `kept_from` on.

    `text` and the counts are those of the summary before it, which is valid again; empty and 0 if there was none.
    """

    kind: ClassVar[str] = "summary_expanded"

    summary_seq: int
    kept_from: int
    hidden: int = 0
    total: int = 0
    summarized: int = 0


class ContextTrimmed(Event, frozen=True, kw_only=True):
    """The context shows only the first `shown_chars` characters of a record or block, and a reference to the whole."""

    kind: ClassVar[str] = "context_trimmed"

    target_seq: int = 0
    """Seq of the record; 0 for a block."""
    label: str = ""
    """Label of the block; empty for a record."""
    shown_chars: int


class TurnsHidden(Event, frozen=True, kw_only=True):
    """A person undid turns: the context no longer shows their records, whatever a summary does later.

    Nothing is deleted. Effects of the turns remain: edits of memory, messages that were sent, effects outside. A turn
    that was open is ended in the same commit. Imported messages belong to no turn, and remain.
    """

    kind: ClassVar[str] = "turns_hidden"

    turns: list[int]
    """Numbers of the turns, from 1, ascending."""


class ReplyRethought(Event, frozen=True, kw_only=True):
    """The context shows `text`, which is not empty, as the inner monologue of a reply; the newest one counts.

    The reply's own record is unchanged.
    """

    kind: ClassVar[str] = "reply_rethought"

    target_seq: int
    """Seq of the `model_reply`, from 1."""


class HeartbeatsPaused(Event, frozen=True, kw_only=True):
    """No timed heartbeat is sent before `until`."""

    kind: ClassVar[str] = "heartbeats_paused"
    version: ClassVar[int] = 2

    minutes: int
    until: int
    """Microseconds UTC, exclusive."""
