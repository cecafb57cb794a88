"""Material of a derivation, its conclusions, and the checks that a conclusion passes before it becomes an event. Pure.

A deriver reads `Material` and returns `Conclusions`. Events of the same commit have no seq yet: a deriver refers to the
n-th of its own events (from 0) by the negative number `own(n)`, and `placed` puts the seqs in. `actors/deriving`
commits what `checked` accepts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.events import (
    ArchivalInserted,
    ArchivalUpdated,
    BadInput,
    DerivationKind,
    DerivedEvent,
    FactEnded,
    FactNoted,
    InsightNoted,
    MessageSent,
    PlanChanged,
    PlanMade,
    Record,
    UserMessage,
    is_erased,
)

SOURCE_KINDS = frozenset(
    kind.kind
    for kind in (
        UserMessage, MessageSent, ArchivalInserted, ArchivalUpdated, InsightNoted, FactNoted, FactEnded, PlanMade,
        PlanChanged,
    )
)  # fmt: skip
"""Kinds of records on which a derived memory may rest. A prompt, a thought of the model and the result of a search are
no sources: else what was found would be concluded again.
"""
SOURCES_MAX = 100
"""Most sources of one derived memory."""


class Evidence(msgspec.Struct, frozen=True):
    """One memory that a derivation reads: something said, stored or derived."""

    seq: int
    at: int
    """Time at which it was said or noted, microseconds UTC."""
    role: str
    """`user`, `assistant`, `archival` or `derived`."""
    name: str
    """Name of the speaker; empty if it is not known."""
    text: str
    depth: int = 0
    importance: int = 0
    """From 1 to 10; 0 if it was not rated."""


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one derivation may read."""

    agent_id: str
    generation: int
    zone: str = "UTC"
    """IANA name of the agent's time zone."""
    now: int
    """Time of the derivation, microseconds UTC."""
    evidence: Sequence[Evidence] = ()
    """Memories to conclude from, by seq."""
    facts: Sequence[Mapping[str, Any]] = ()
    """Rows of the projection `facts`."""
    names: Mapping[str, str] = {}
    """Other names of entities, each with the name that the entity is called by."""


class Conclusions(msgspec.Struct, frozen=True):
    """Results of one derivation."""

    events: Sequence[DerivedEvent] = ()
    refused: Sequence[str] = ()
    """Reasons for which proposals were refused, one for each."""
    replies: Sequence[str] = ()
    """Event ids of the model's answers that the events rest on, newest last; empty for rules."""


class Deriver(Protocol):
    """Concludes memories of one kind."""

    @property
    def name(self) -> str:
        """Name and version of the rules, or name of the model. It is recorded in every event."""
        ...

    async def derive(self, material: Material) -> Conclusions:
        """Return conclusions from the material. Raise ModelError if a model cannot be asked."""
        ...


class DerivationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a derivation, over all of its commits."""

    derivation: DerivationKind
    generation: int
    deriver: str = ""
    read: int = 0
    """Number of memories that were read."""
    noted: int = 0
    refused: Sequence[str] = ()
    to_seq: int = 0
    """Last seq that was read; 0 if there was nothing to read."""


def own(number: int) -> int:
    """Return the reference to the event of that number, from 0, of the same conclusions."""
    return -1 - number


def placed(events: Sequence[DerivedEvent], first_seq: int) -> list[DerivedEvent]:
    """Return the events with references to each other as seqs. `first_seq`: seq of the first of them."""

    def seq_of(reference: int) -> int:
        return first_seq - 1 - reference if reference < 0 else reference

    return [_with_seqs(event, seq_of) for event in events]


def _with_seqs(event: DerivedEvent, seq_of: Any) -> DerivedEvent:
    fields = {name: seq_of(getattr(event, name)) for name in _REFERENCES if getattr(event, name, 0)}
    return msgspec.structs.replace(event, sources=sorted({seq_of(seq) for seq in event.sources}), **fields)


_REFERENCES = ("fact", "successor", "plan", "parent", "replaced_by")
"""Fields of derived events that hold a seq."""


def source_kinds(records: Iterable[Record]) -> dict[int, str]:
    """Return the kind of each record by its seq, or `erased`."""
    return {record.seq: "erased" if is_erased(record.payload) else record.type for record in records}


def check_sources(sources: Sequence[int], own_seq: int, kinds: Mapping[int, str]) -> None:
    """Raise BadInput if a derived record at `own_seq` cannot rest on these seqs.

    `kinds`: kind of each record that is before it, by seq, or `erased`; of records of the same commit, too.
    """
    if not sources:
        raise BadInput("A derived memory names the records that it rests on; this one names none. Nothing was kept.")
    if len(sources) > SOURCES_MAX:
        raise BadInput(
            f"A derived memory rests on at most {SOURCES_MAX} records, and this one names {len(sources)}. Nothing was "
            "kept. Name those that matter most."
        )
    for seq in sources:
        if seq >= own_seq:
            raise BadInput(
                f"A derived memory rests on earlier records: seq {seq} is not before its own seq {own_seq}. Nothing "
                "was kept."
            )
        kind = kinds.get(seq)
        if kind is None:
            raise BadInput(f"There is no record with seq {seq}, which was named as a source. Nothing was kept.")
        if kind == "erased":
            raise BadInput(f"The record with seq {seq} was erased and can be no source. Nothing was kept.")
        if kind not in SOURCE_KINDS:
            raise BadInput(
                f"The record with seq {seq} is a {kind}, which is no memory: sources are messages, stored texts and "
                "what was derived from them. Nothing was kept."
            )


def checked(
    events: Sequence[DerivedEvent], first_seq: int, kinds: Mapping[int, str]
) -> tuple[list[DerivedEvent], list[str]]:
    """Return the events that may be kept, with their seqs put in, and the reasons for which others were refused.

    An event that refers to a refused one is refused, too. `kinds` as in `check_sources`.
    """
    kept: list[DerivedEvent] = []
    reasons: list[str] = []
    moved: dict[int, int] = {}  # reference of an event -> its seq
    known = dict(kinds)
    for number, event in enumerate(events):
        seq = first_seq + len(kept)
        try:
            one = _with_seqs(event, lambda reference: reference if reference >= 0 else moved[reference])
            check_sources(one.sources, seq, known)
        except KeyError:
            reasons.append("It rests on a conclusion that was refused.")
        except BadInput as error:
            reasons.append(str(error))
        else:
            moved[own(number)] = seq
            known[seq] = event.kind
            kept.append(one)
    return kept, reasons
