"""What the agent knows: core memory, archival memory, summaries, and how much of each the context shows."""

from typing import ClassVar, Literal

from everlog.events.base import Event
from everlog.events.model import Usage


class MemoryEdited(Event, frozen=True, kw_only=True):
    """A memory block has a new value: `text`, the whole of it."""

    kind: ClassVar[str] = "memory_edited"

    label: str
    operation: Literal["created", "appended", "replaced", "removed", "set", "changed", "copied"]
    """`changed`: only its limit, description or protection; `copied`: from the shared block that it follows."""
    limit: int
    """Characters that the block may hold, at most (inclusive)."""
    origin: str = ""
    """The shared block that the value was copied from, if it was."""
    origin_version: int = 0
    """The seq there of the edit that gave it this value."""
    description: str = ""
    """What the block is for, in words for the model."""
    read_only: bool = False
    """The agent sees it and cannot edit it."""
    author: str = ""
    """In the stream of a shared block: the agent that made the edit; empty for a person."""


class BlockRemoved(Event, frozen=True, kw_only=True):
    """The memory block is no longer in core memory. A shared one goes on without this agent."""

    kind: ClassVar[str] = "block_removed"

    label: str


class ArchivalInserted(Event, frozen=True, kw_only=True):
    """`text` is kept, by the agent or by a person. The record's event id is the memory's id, however long the text."""

    kind: ClassVar[str] = "archival_inserted"

    tags: list[str] = []
    source: str = ""


class ArchivalUpdated(Event, frozen=True, kw_only=True):
    """The archival memory `memory_id` now reads `text`. Its time and source stay those of the insert."""

    kind: ClassVar[str] = "archival_updated"

    memory_id: str
    tags: list[str] = []
    """All tags that it has from now on: none are no tags, not those that it had."""


class ArchivalDeleted(Event, frozen=True, kw_only=True):
    """The archival memory `memory_id` is no longer found, whatever is said of it later."""

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
    """A document was loaded into `source`, in the place of one of the same name; `text` is its whole text."""

    kind: ClassVar[str] = "document_loaded"

    source: str
    document: str
    """Its name, which tells it from all others of the source."""
    title: str = ""
    media_type: str = ""
    """Of the file that the text was taken from, as `application/pdf`."""
    bytes: int = 0
    """Of that file."""
    chars: int = 0
    """Of the text."""
    sha256: str = ""
    """Of the text in UTF-8, hexadecimal."""
    origin: str = ""
    """What it was loaded from: the folder or file that was named, or `sql`."""


class DocumentRemoved(Event, frozen=True, kw_only=True):
    """The document is no longer in `source`."""

    kind: ClassVar[str] = "document_removed"

    source: str
    document: str


class Summary(Event, frozen=True, kw_only=True):
    """`text` stands in the context for the records `covers_from` to `covers_to` (inclusive): hidden, not deleted."""

    kind: ClassVar[str] = "summary"

    covers_from: int
    covers_to: int
    kept_from: int
    """First seq that the context still shows."""
    hidden: int
    """Messages that summaries hide, of all that there are."""
    total: int
    """All messages of the agent at this moment, but for those of turns that were hidden by hand."""
    summarized: int
    """Messages that this summary replaces."""
    method: Literal["model", "mechanical"] = "model"
    """`mechanical`: the last resort when a model's summary is no shorter, or cannot be had."""
    words: int = 0
    """The words that the model was asked to keep to."""
    model: str = ""
    usage: Usage = Usage()
    latency_us: int = 0
    context_sha256: str = ""
    context_bytes: int = 0
    parts: str = ""
    """The request's parts in order, each with its mark."""
    raw: str = ""


class SummaryExpanded(Event, frozen=True, kw_only=True):
    """The summary at `summary_seq` was taken back: the context shows again what it hid, from `kept_from` on.

    `text` and the counts are those of the summary before it, which stands again; empty and 0 where there was none.
    """

    kind: ClassVar[str] = "summary_expanded"

    summary_seq: int
    kept_from: int
    hidden: int = 0
    total: int = 0
    summarized: int = 0


class ContextTrimmed(Event, frozen=True, kw_only=True):
    """The context shows only the first `shown_chars` characters of a record or block, and a handle to the whole."""

    kind: ClassVar[str] = "context_trimmed"

    target_seq: int = 0
    """The record, or 0 for a block."""
    label: str = ""
    """The block, or empty for a record."""
    shown_chars: int


class TurnsHidden(Event, frozen=True, kw_only=True):
    """A person took turns back: the context no longer shows their records, whatever a summary does later.

    Nothing is deleted. What the turns did stays done: edits of memory, messages that were sent, effects outside.
    A turn that was open is ended in the same commit. Imported messages are of no turn, and stay.
    """

    kind: ClassVar[str] = "turns_hidden"

    turns: list[int]
    """Numbers of the turns, from 1, rising."""


class ReplyRethought(Event, frozen=True, kw_only=True):
    """The context shows `text`, which is not empty, as the inner monologue of a reply; the newest one counts.

    The reply's own record stays as the model gave it.
    """

    kind: ClassVar[str] = "reply_rethought"

    target_seq: int
    """The `model_reply`, from 1."""


class HeartbeatsPaused(Event, frozen=True, kw_only=True):
    """No timed heartbeat before `until`."""

    kind: ClassVar[str] = "heartbeats_paused"
    version: ClassVar[int] = 2

    minutes: int
    until: int
    """Microseconds UTC, exclusive."""
