"""Shared memory blocks and sources of documents, as they go over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from everlog.actors.memory.shared_block_rules import LIMIT_MAX
from everlog.actors.ports.agent_constants import BLOCK_CHARS

BlockLimit = Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)]
UploadStatus = Literal["new", "changed", "unchanged"]
BlockVersionNumber = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class CreateSharedBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new shared block."""

    block: str
    """Name of the block."""
    value: str = ""
    limit: BlockLimit = BLOCK_CHARS
    """Largest size in characters."""
    description: str = ""
    read_only: bool = False
    """True: agents see the block and cannot edit it."""


class EditSharedBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Change of a shared block; what is left out stays."""

    value: str | None = None
    base: BlockVersionNumber | None = None
    """`version` that the value was made from: if the block has changed since, nothing is changed and the answer, 412,
    has both texts. null: edit the block as it is now.
    """
    limit: BlockLimit | None = None
    description: str | None = None
    read_only: bool | None = None


class AppendToBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line to add to a shared block."""

    text: str


class BlockFollower(msgspec.Struct, frozen=True, kw_only=True):
    """An agent with a shared block in its core memory."""

    agent: str
    label: str


class SharedBlockShape(msgspec.Struct, frozen=True, kw_only=True):
    """A shared block at one version."""

    block: str
    version: int
    """Number of the newest edit: the base of another one."""
    value: str
    limit: int
    description: str
    read_only: bool
    author: str | None
    """Agent that made the newest edit; null: a person."""
    edited: datetime
    deleted: bool


class SharedBlockRow(msgspec.Struct, frozen=True, kw_only=True):
    """A shared block of a listing."""

    block: SharedBlockShape
    followers: Sequence[BlockFollower]


class SharedBlocksShape(msgspec.Struct, frozen=True, kw_only=True):
    """All shared blocks, sorted by name."""

    blocks: Sequence[SharedBlockRow]


class BlockVersionShape(msgspec.Struct, frozen=True, kw_only=True):
    """One edit of a shared block."""

    version: int
    edited: datetime
    operation: str
    """`erased` if the log no longer has it."""
    author: str | None
    value: str
    limit: int
    description: str
    read_only: bool


class BlockHistoryShape(msgspec.Struct, frozen=True, kw_only=True):
    """All edits of a shared block, in order."""

    block: str
    versions: Sequence[BlockVersionShape]


class AttachBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Place of a shared block in an agent's core memory."""

    label: str = ""
    """Label in core memory; empty: the block's name."""


class TimeQuery(msgspec.Struct, frozen=True):
    """A time."""

    as_of: str | None = None
    """Time with a zone. Left out: now."""


class SourceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One source."""

    source: str
    documents: int
    characters: int
    agents: Sequence[str]
    """Agents that can search it."""


class SourcesShape(msgspec.Struct, frozen=True, kw_only=True):
    """All sources, sorted by name."""

    sources: Sequence[SourceRow]


class DocumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One document, without its text."""

    document: str
    title: str
    characters: int
    bytes: int
    media_type: str
    sha256: str
    """Of the text."""
    origin: str
    seq: int
    loaded: datetime


class DocumentsShape(msgspec.Struct, frozen=True, kw_only=True):
    """Documents of a source, in the order of loading."""

    source: str
    documents: Sequence[DocumentRow]


class UploadedShape(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of an upload."""

    source: str
    document: str
    status: UploadStatus
    """`unchanged`: the source had exactly this text under this name."""
    characters: int


class LoadedDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document whose text is known."""

    document: str
    """Name of the document in its source."""
    text: str
    title: str = ""
    media_type: str = ""
    """Of the file that the text is from."""
    bytes: int = 0
    """Size of that file."""
    origin: str = ""
    """Place that the document is from, such as a folder."""


class LoadBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a source."""

    documents: Annotated[list[LoadedDocument], msgspec.Meta(max_length=1000)] = []
    remove: Annotated[list[str], msgspec.Meta(max_length=1000)] = []
    """Names of documents to remove. Their texts stay in the log until they are erased."""


class FailedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was not loaded."""

    document: str
    reason: str


class LoadShape(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a load: names of documents."""

    source: str
    new: Sequence[str]
    changed: Sequence[str]
    unchanged: Sequence[str]
    """Documents that the source had exactly like this."""
    removed: Sequence[str]
    failed: Sequence[FailedDocument]
