"""Archival memory and searches, as they go over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec

SearchPlace = Literal["messages", "archive", "documents", "derived"]
PageNumber = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
ResultCount = Annotated[int, msgspec.Meta(ge=1, le=100)]


class TextsQuery(msgspec.Struct, frozen=True):
    """Choice of texts of archival memory."""

    page: PageNumber = 1
    count: ResultCount = 20
    """Texts on a page."""
    tag: list[str] = []
    """Tags: a result has all of these."""
    since: str = ""
    """First day, YYYY-MM-DD in the agent's zone, inclusive."""
    until: str = ""
    """Last day, inclusive."""
    as_of: str | None = None
    """Seq, or time with a zone. Left out: now."""


class SearchQuery(msgspec.Struct, frozen=True):
    """Search in one agent."""

    query: str
    page: PageNumber = 1
    count: ResultCount = 10
    """Results on a page."""
    place: list[SearchPlace] = []
    """Places to search; none: all. `archive` and `documents` are what MemGPT calls archival memory."""
    role: list[Literal["user", "assistant"]] = []
    """Roles of messages."""
    tag: list[str] = []
    """Tags of stored texts and documents: a result has all of these."""
    source: str = ""
    """Source into which documents were loaded."""
    kind: list[Literal["insight", "fact", "plan"]] = []
    """Kinds of derived memories."""
    ended: bool = False
    """True: facts that have ended are results, too."""
    since: str = ""
    """First day, YYYY-MM-DD in the agent's zone, inclusive."""
    until: str = ""
    """Last day, inclusive."""
    as_of: str | None = None
    """Seq, or time with a zone. Left out: now."""


class FleetSearchQuery(SearchQuery, frozen=True):
    """Search in many agents."""

    agent: list[str] = []
    """Agents to search; none: all."""
    as_of: str | None = None
    """Time with a zone: only what was recorded up to then."""


class HitShape(msgspec.Struct, frozen=True, kw_only=True):
    """One result of a search."""

    agent: str
    """Agent that was searched."""
    place: SearchPlace
    seq: int
    time: datetime
    """Time at which it was said or stored."""
    role: str
    name: str
    text: str
    """The whole message; of a memory or document the part that was found."""
    ref: str
    """For a message, the reference under which it was imported; for a memory, its id; for a derived one its seq."""
    score: float
    """Relevance, from 0 to 1; in one place alone, the score of that place's own search."""
    tags: Sequence[str]
    source: str
    """Source into which the document was loaded; empty for other results."""
    document: str
    part: int
    """Number of this part of a long text, from 1."""
    parts: int
    near: float | None
    """Similarity in meaning to the query, as a cosine from -1 to 1; null if it was not compared."""
    passage: str
    """Passage of a long text that shows best why it was found."""
    kind: str
    """Of a derived memory: `insight`, `fact` or `plan`."""
    sources: Sequence[int]
    """Seqs of the records on which a derived memory rests."""
    outdated: bool
    """True if it rests on a fact that has ended, or is one."""
    until: datetime | None
    """Time at which a fact ended or ends, exclusive; null: it is not known."""


class HitPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of results."""

    total: int
    page: int
    """Number of the page, from 1."""
    pages: int
    by_meaning: bool
    """True if vectors influenced the order; false: words alone did."""
    archive_down: bool
    """True if the archive should have taken part and did not answer."""
    reranked: bool
    """True if a reranker put the best results in order."""
    reranker_down: bool
    """True if a reranker should have done so and gave no usable answer."""
    results: Sequence[HitShape]
    unread: Sequence[str] = ()
    """Errors of agents that a search in many could not read. A tenant is told nothing of logs."""


class InsertText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text for archival memory."""

    text: str
    tags: list[str] = []


class InsertTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts for archival memory, which are inserted together or not at all."""

    texts: Annotated[list[str], msgspec.Meta(max_length=1000)]
    tags: list[str] = []
    """Tags of each text."""


class UpdateText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another text for a memory."""

    text: str
    tags: list[str] | None = None
    """Tags; null: they stay."""


class StoredText(msgspec.Struct, frozen=True, kw_only=True):
    """A text in archival memory."""

    memory: str
    """Id of the memory that holds it: a new one, or the one that held exactly this text before."""


class StoredTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts in archival memory, in the order of the request."""

    memories: Sequence[str]
