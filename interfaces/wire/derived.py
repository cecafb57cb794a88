"""What an agent remembers, concluded, believes and plans, as it goes over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from everlog.events import DerivationKind

MemoryKindName = Literal["message", "archival", "insight", "fact", "plan"]
MemorySeq = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
MemorySeqs = Annotated[list[MemorySeq], msgspec.Meta(max_length=100)]
PrecisionName = Literal["unknown", "moment", "day", "month", "year"]


class MemoryQuery(msgspec.Struct, frozen=True):
    """Which memories to list."""

    kind: list[MemoryKindName] = []
    """Kinds of memories; none: insights, facts and plans."""
    about: str = ""
    """Only memories of an entity, by one of its names, or by a word."""
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    """Number of memories that are left out at the beginning."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    as_of: str | None = None
    """Seq, or time with a zone. Left out: now."""


class MemorySearchQuery(msgspec.Struct, frozen=True):
    """How to rank all memories of an agent."""

    query: str = ""
    """Words; empty: all memories are equally relevant."""
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    mode: Literal["default", "combined", "paper", "embedding"] = "default"
    """How relevance, recency and importance make the order; docs/reference/python_api.md explains the modes."""
    kind: list[MemoryKindName] = []
    """Kinds of memories; none: all."""
    about: str = ""
    now: datetime | None = None
    """Time up to which recency counts; left out: that of the agent's last record at the moment."""
    accesses: bool = False
    """True: recency counts from the last search that found the memory."""
    ended: bool = False
    """True: facts that have ended are results, too."""
    leave_out_parts: bool = False
    """True: the mode `combined` leaves out what an insight among the results rests on."""
    as_of: str | None = None
    """Seq, or time with a zone. Left out: now."""


class FactQuery(msgspec.Struct, frozen=True):
    """Which facts to list."""

    about: str = ""
    at: str | None = None
    """Time with a zone: the facts that held then, as far as the agent knows at `as_of`."""
    all: bool = False
    """True: facts that have ended, too."""
    as_of: str | None = None
    """Seq, or time with a zone: what the agent believed then. Left out: now."""


class PlanQuery(msgspec.Struct, frozen=True):
    """Which items of plans to list."""

    all: bool = False
    """True: items that are done, cancelled, failed or replaced, too."""
    as_of: str | None = None


class MemoryShape(msgspec.Struct, frozen=True, kw_only=True):
    """One memory of an agent: something said, stored or derived."""

    seq: int
    kind: MemoryKindName
    time: datetime
    """Time at which it was said or noted."""
    role: str
    name: str
    """Name of the speaker, or subject of a fact; empty if there is none."""
    text: str
    importance: int
    """From 1 to 10."""
    sources: Sequence[int]
    """Seqs of the records that it rests on."""
    depth: int
    outdated: bool
    """True if it rests on a fact that has ended, or is one."""
    deriver: str
    part: int
    """Number of the item of a plan, from 0; 0 for other memories."""


class MemoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some memories in the order of their times."""

    agent: str
    total: int
    memories: Sequence[MemoryShape]


class RankedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory with its score, and the terms of that score."""

    memory: MemoryShape
    score: float
    relevance: float
    recency: float
    importance: float


class RankedShape(msgspec.Struct, frozen=True, kw_only=True):
    """Memories that answer a query, best first."""

    agent: str
    mode: str
    now: datetime
    """Time up to which recency counts."""
    by_meaning: bool
    constant: Sequence[str]
    """Terms that were the same for all candidates: of the mode `paper` only."""
    results: Sequence[RankedMemory]


class MemoryTreeShape(msgspec.Struct, frozen=True, kw_only=True):
    """A memory and what it rests on, down to messages, a source after what rests on it."""

    agent: str
    memory: int
    nodes: Sequence[Mapping[str, Any]]
    """`seq`, `kind`, `time`, `name`, `text`, `sources`, `resting`, `outdated`, `withdrawn` and `deriver` of each."""


class DerivedRowsShape(msgspec.Struct, frozen=True, kw_only=True):
    """Facts, or items of plans, at a moment: rows as `everlog facts --json` and `everlog plans --json` print them."""

    agent: str
    as_of: int
    rows: Sequence[Mapping[str, Any]]


class DeriveBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to derive from what was said since the last derivation."""

    kinds: Annotated[tuple[DerivationKind, ...], msgspec.Meta(min_length=1, max_length=4)] = ("facts", "reflection")
    """Kinds of derivations, in their order; the default is what `everlog reflect` does."""
    generation: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    """Another one than 1 stands beside it until it is chosen."""
    model: str = ""
    """Name of the model that derives; empty: rules."""
    batches_max: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """Most commits of each kind; 0: until everything is read."""
    use: bool = False
    """True: use this generation from then on."""


class DerivationShape(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one derivation."""

    derivation: DerivationKind
    generation: int
    deriver: str
    read: int
    """Memories that were read."""
    noted: int
    refused: Sequence[str]
    """Reasons for which proposals were refused."""
    to_seq: int


class DerivationsShape(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of derivations, in the order of the request."""

    agent: str
    derivations: Sequence[DerivationShape]


class WithdrawBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Derived memories that no longer count, or count again. Nothing is deleted."""

    seqs: Annotated[list[MemorySeq], msgspec.Meta(min_length=1, max_length=1000)]
    reason: str = ""
    withdrawn: bool = True
    """False: they count again."""


class GenerationBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Generation of derived memories to use."""

    generation: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class FactBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact to note."""

    subject: str
    predicate: str
    """Lower case with underscores, such as `lives_in`."""
    object: str
    sources: MemorySeqs
    """Seqs of the records that it rests on."""
    sentence: str = ""
    """Empty: made of the three."""
    valid_from: datetime | None = None
    """Time from which it holds, with a zone; null: unknown."""
    from_precision: PrecisionName = "moment"


class EndFactBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The end of a fact."""

    reason: str = ""
    sources: MemorySeqs = []
    """Seqs of the records that the end rests on; none: the fact alone."""
    valid_to: datetime | None = None
    """Time at which it ended, with a zone; null: unknown."""
    to_precision: PrecisionName = "moment"


class NameBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another name of an entity."""

    alias: str
    entity: str
    """Name that the entity is called by."""
    sources: MemorySeqs


class PlanItemBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item of a plan."""

    text: str
    start: datetime
    """With a zone."""
    minutes: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    place: str = ""
    until: str = ""
    """Condition in words that ends the item early."""


class PlanBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan to make; its items become timers of the agent."""

    title: str
    items: Annotated[list[PlanItemBody], msgspec.Meta(min_length=1, max_length=50)]
    level: Literal["day", "hours", "minutes"] = "day"
    sources: MemorySeqs = []
    """Seqs of the memories that it rests on; none: the newest message of a user."""


class PlanChangeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Change of an item of a plan."""

    item: Annotated[int, msgspec.Meta(ge=0, le=50)]
    """Number of the item, from 0."""
    change: Literal["continued", "postponed", "cancelled", "done", "failed"]
    reason: str
    start: datetime | None = None
    """New start of a postponed item, with a zone."""
    sources: MemorySeqs = []


class NotedSeq(msgspec.Struct, frozen=True, kw_only=True):
    """Seq by which a derived memory is named."""

    seq: int
