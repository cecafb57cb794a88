"""Events of what was concluded from earlier records: importance, insights, facts, entities and plans.

Each names its sources, which are seqs of earlier records of the same stream, and its deriver: the rules or the model
that concluded it. So nothing derived is without a reason, and replay asks no model. Written by `actors/agent` and by
functions of the agent; read by the SQL of projections. Released shapes never change: see `upcast`.
"""

from typing import ClassVar, Literal

import msgspec

from everlog.events.base import Event
from everlog.events.model import Usage

DerivationKind = Literal["facts", "reflection", "plans", "blocks"]
"""Kinds of derivations: of facts from messages, of insights from memories, of plans from both, and of the values of
memory blocks from all of them.
"""
Precision = Literal["unknown", "moment", "day", "month", "year"]
"""Precision of a time at which a fact begins or ends: the time is the first microsecond of that day, month or year."""


class DerivedEvent(Event, frozen=True, kw_only=True):
    """Root of the events that were concluded from earlier records."""

    sources: list[int] = []
    """Seqs of the records that it rests on, ascending, each once; all are below its own seq."""
    deriver: str = ""
    """Name and version of the rules, or name of the model; `agent` for a function that the agent called, `person`."""
    generation: int = 0
    """Generation of the derivation, from 1; 0: noted by the agent or a person, and valid in every generation."""


class MemoriesDerived(DerivedEvent, frozen=True, kw_only=True):
    """A derivation read the records `from_seq` to `to_seq`, and its results follow in the same commit.

    It is the cursor: the next derivation of this kind and generation begins after `to_seq`.
    """

    kind: ClassVar[str] = "memories_derived"

    derivation: DerivationKind
    from_seq: int
    to_seq: int
    """Last record that was read, inclusive."""
    noted: int = 0
    """Number of results in the same commit."""
    refused: int = 0
    """Number of proposals that were refused: without a valid source, repeated, or not understood."""
    importance: int = 0
    """Of a reflection: sum of the importance of the messages since the last one."""


class DerivationReplied(DerivedEvent, frozen=True, kw_only=True):
    """A model answered a request of a derivation that showed the sources. Its answer may be unusable, and is kept all
    the same.
    """

    kind: ClassVar[str] = "derivation_replied"

    derivation: DerivationKind
    purpose: Literal["facts", "importance", "questions", "insights", "plan", "block"]
    fault: str = ""
    """Reason for which nothing was taken from the answer; empty if it was used."""
    model: str
    usage: Usage = Usage()
    latency_us: int = 0
    context_sha256: str
    """Digest of the bytes of the request, hexadecimal."""
    context_bytes: int = 0
    raw: str = ""
    """Body of the answer, verbatim."""


class GenerationChosen(Event, frozen=True, kw_only=True):
    """Derived memories of `generation` are the ones in use from now on, with those of generation 0."""

    kind: ClassVar[str] = "generation_chosen"

    generation: int
    """From 1."""


class Rating(msgspec.Struct, frozen=True, array_like=True):
    """Importance of one message."""

    seq: int
    importance: int
    """From 1 (mundane) to 10 (poignant)."""


class ImportanceRated(DerivedEvent, frozen=True, kw_only=True):
    """A model rated messages. What rules rate is no event but a projection, `importance`."""

    kind: ClassVar[str] = "importance_rated"

    ratings: list[Rating]


class InsightNoted(DerivedEvent, frozen=True, kw_only=True):
    """`text` was concluded from the sources, which may be insights themselves."""

    kind: ClassVar[str] = "insight_noted"

    question: str = ""
    """Question that the insight answers."""
    insight: Literal["reflection", "conversation", "planning"] = "reflection"
    """`conversation`: what a conversation was about; `planning`: a thought about what to do."""
    depth: int = 1
    """1 more than the largest depth of its sources; messages and facts have depth 0."""
    importance: int = 5
    """From 1 to 10."""


class FactNoted(DerivedEvent, frozen=True, kw_only=True):
    """A fact is believed: `text` is its sentence. Its number is the record's seq."""

    kind: ClassVar[str] = "fact_noted"

    subject: str
    """Name of an entity, as it was said."""
    predicate: str
    """Relation in lower case with underscores, such as `lives_in`."""
    object: str
    single: bool = False
    """True if a subject has one object of this predicate at a time, so that a new one ends the old one."""
    valid_from: int | None = None
    """Time from which it holds, microseconds UTC; None: unknown."""
    from_precision: Precision = "unknown"
    valid_to: int | None = None
    """Time until which it holds, microseconds UTC, exclusive; None: it has not ended as far as the sources say."""
    to_precision: Precision = "unknown"


class FactEnded(DerivedEvent, frozen=True, kw_only=True):
    """A fact no longer holds; `text` may say why. The fact's record stays as it is."""

    kind: ClassVar[str] = "fact_ended"

    fact: int
    """Seq of the `fact_noted`, below this record's own."""
    successor: int = 0
    """Seq of the fact that holds instead; 0: none."""
    valid_to: int | None = None
    """Time at which it ended, microseconds UTC, exclusive; None: unknown."""
    to_precision: Precision = "unknown"


class EntityNamed(DerivedEvent, frozen=True, kw_only=True):
    """The names `alias` and `entity` mean the same entity, which is called `entity`."""

    kind: ClassVar[str] = "entity_named"

    alias: str
    entity: str


class PlanItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One item of a plan."""

    text: str
    start: int
    """Microseconds UTC."""
    minutes: int
    """Duration, 1 or more."""
    place: str = ""
    until: str = ""
    """Condition in words that ends the item early."""


class PlanMade(DerivedEvent, frozen=True, kw_only=True):
    """A plan was made: `text` names it. Its number is the record's seq; its items are numbered from 0."""

    kind: ClassVar[str] = "plan_made"

    level: Literal["day", "hours", "minutes"] = "day"
    items: list[PlanItem]
    """In the order of their starts."""
    parent: int = 0
    """Seq of the plan whose item this plan divides; 0: none."""
    parent_item: int = 0
    importance: int = 5
    """From 1 to 10."""


class PlanChanged(DerivedEvent, frozen=True, kw_only=True):
    """An item of a plan was continued, postponed or ended; `text` says why."""

    kind: ClassVar[str] = "plan_changed"

    plan: int
    """Seq of the `plan_made`, below this record's own."""
    item: int
    change: Literal["continued", "postponed", "cancelled", "done", "failed", "replaced"]
    start: int | None = None
    """New start of a postponed item, microseconds UTC."""
    replaced_by: int = 0
    """Seq of the plan that replaces the item; 0: none."""


class MemoriesWithdrawn(Event, frozen=True, kw_only=True):
    """Derived records no longer count, or count again; `text` says why. Nothing is deleted: of each record the newest
    of these events holds. It undoes a wrong insight, fact, end of a fact, merge of names, or plan.
    """

    kind: ClassVar[str] = "memories_withdrawn"

    seqs: list[int]
    """Seqs of derived records, below this record's own, ascending."""
    withdrawn: bool = True
    """False: they count again."""
