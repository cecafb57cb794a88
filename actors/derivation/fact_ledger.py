"""Turn claims into events of facts: new ones are noted, repeated ones are not, changed ones end the fact before. Pure.

Only a fact with the same subject and the same single-valued predicate is ended by a new one: a search for
contradictions elsewhere ends facts that still hold. Used by the rules and by the facts of models.
"""

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from everlog.actors.derivation.conclusions import Material, own
from everlog.actors.derivation.fact_times import FactTime, moment_time, time_of
from everlog.events import DerivedEvent, EntityNamed, FactEnded, FactNoted, Precision

SINGLE_VALUED = frozenset({
    "lives_in", "works_at", "works_as", "is_married_to", "is_engaged_to", "is_dating", "name", "age", "born_in",
    "born_on", "is_from", "has_wife", "has_husband", "has_mother", "has_father", "has_partner", "has_girlfriend",
    "has_boyfriend", "has_boss", "has_best_friend",
})  # fmt: skip
"""Predicates of which a subject has one object at a time, besides those that begin with `favourite_`."""
NAMES_FOLLOWED_MAX = 8
"""Most merges that are followed from a name, as in the projection `entity_names`."""
REASON_CHARS_MAX = 100


class ClaimedFact(msgspec.Struct, frozen=True, kw_only=True):
    """Claim that a fact holds, or that facts hold no longer."""

    subject: str
    predicates: Sequence[str]
    """The predicate; of an end all predicates that it may concern."""
    object: str = ""
    """Empty for an end of whatever the object is."""
    sentence: str = ""
    """Sentence of the fact, or reason of its end."""
    sources: Sequence[int]
    said_at: int
    """Microseconds UTC."""
    time: FactTime | None = None
    """Time of the beginning, or of the end; None: not said."""
    ended: bool = False
    """True if the facts hold no longer."""
    past: bool = False
    """True if a fact is noted together with its end: it held once."""


class KnownFact(msgspec.Struct, kw_only=True):
    """A fact that is known to a derivation."""

    reference: int
    """Seq, or the reference to an event of the same conclusions."""
    subject: str
    predicate: str
    object: str
    said_at: int
    begin: FactTime | None
    holds: bool
    """False if it has ended."""


class FactLedger:
    """Facts and names that are known, and the events of those that become known."""

    def __init__(self, material: Material, deriver: str) -> None:
        self._deriver, self._generation = deriver, material.generation
        self.zone: tzinfo = ZoneInfo(material.zone)
        self.events: list[DerivedEvent] = []
        self.repeated = 0
        """Number of claims that were known already."""
        self._names = dict(material.names)
        self._facts: dict[tuple[str, str], list[KnownFact]] = {}
        for row in material.facts:
            self._keep(self._known(row))

    def _known(self, row: Mapping[str, Any]) -> KnownFact:
        begin = row["valid_from"]
        return KnownFact(
            reference=row["seq"], subject=row["subject"], predicate=row["predicate"], object=row["object"],
            said_at=row["said_at"], holds=row["believed"] and row["valid_to"] is None,
            begin=None if begin is None else time_of(begin, row["from_precision"], self.zone),
        )  # fmt: skip

    def _keep(self, fact: KnownFact) -> None:
        self._facts.setdefault((self.canonical(fact.subject), fact.predicate), []).append(fact)

    def canonical(self, name: str) -> str:
        """Return the name that an entity is called by."""
        for _ in range(NAMES_FOLLOWED_MAX):
            if self._names.get(name, name) == name:
                break
            name = self._names[name]
        return name

    def holding(self, subject: str, predicate: str) -> list[KnownFact]:
        """Return the facts of a subject and predicate that have not ended."""
        return [fact for fact in self._facts.get((self.canonical(subject), predicate), ()) if fact.holds]

    def name(self, alias: str, entity: str, sources: Sequence[int]) -> None:
        """Note that `alias` is another name of `entity`, unless that is known."""
        if self.canonical(alias) == self.canonical(entity):
            self.repeated += 1
            return
        self._names[alias] = entity
        self._add(EntityNamed(alias=alias, entity=entity, sources=list(sources)))
        known, self._facts = [fact for facts in self._facts.values() for fact in facts], {}
        for fact in known:
            self._keep(fact)

    def claim(self, claim: ClaimedFact) -> None:
        """Add the events of a claim."""
        if claim.ended:
            self._end_all(claim)
        elif claim.past:
            self._note_past(claim)
        else:
            self._note(claim)

    def end(self, reference: int, claim: ClaimedFact) -> bool:
        """End one fact, whatever it says. Return False if it has ended or is not known."""
        for facts in self._facts.values():
            for fact in facts:
                if fact.reference == reference and fact.holds:
                    self._end(fact, claim, claim.time or moment_time(claim.said_at))
                    return True
        return False

    def all_holding(self) -> list[KnownFact]:
        """Return all facts that have not ended, oldest first."""
        facts = (fact for facts in self._facts.values() for fact in facts if fact.holds)
        return sorted(facts, key=lambda fact: fact.reference)

    def _note(self, claim: ClaimedFact) -> None:
        predicate = claim.predicates[0]
        others = self.holding(claim.subject, predicate) if is_single(predicate) else []
        if self._repeats(claim):
            self.repeated += 1
            return
        begin = claim.time
        newer = [fact for fact in others if begin is not None and begin.end <= (_begin(fact))]
        if newer:
            # It held before the fact that holds now, which therefore ended it and still holds.
            first = min(newer, key=_begin)
            self._add_fact(claim, begin, until=first.begin or moment_time(first.said_at))
            return
        # With another fact before it, the time of the message is the first at which it is known to hold.
        begin = begin or (moment_time(claim.said_at) if others else None)
        noted = self._add_fact(claim, begin)
        for fact in others:
            self._end(fact, claim, begin, successor=noted)

    def _note_past(self, claim: ClaimedFact) -> None:
        """Note a fact that held once: end it if it is known, else note it together with its end."""
        known = self._same(claim)
        for fact in [one for one in known if one.holds]:
            self._end(fact, claim, claim.time or moment_time(claim.said_at))
        if not known:
            self._add_fact(claim, None)
            self._end(self.holding(claim.subject, claim.predicates[0])[-1], claim, None)
        elif not any(fact.holds for fact in known):
            self.repeated += 1

    def _end_all(self, claim: ClaimedFact) -> None:
        wanted = self.canonical(claim.object).casefold()
        for predicate in claim.predicates:
            for fact in self.holding(claim.subject, predicate):
                if not wanted or self.canonical(fact.object).casefold() == wanted:
                    self._end(fact, claim, claim.time or moment_time(claim.said_at))

    def _same(self, claim: ClaimedFact) -> list[KnownFact]:
        """Return the known facts with the same subject, predicate and object, ended ones too."""
        wanted = self.canonical(claim.object).casefold()
        known = self._facts.get((self.canonical(claim.subject), claim.predicates[0]), ())
        return [fact for fact in known if self.canonical(fact.object).casefold() == wanted]

    def _repeats(self, claim: ClaimedFact) -> bool:
        same = self._same(claim)
        return any(fact.holds or (claim.time is not None and fact.begin == claim.time) for fact in same)

    def _add_fact(self, claim: ClaimedFact, begin: FactTime | None, until: FactTime | None = None) -> int:
        """Note a fact and return the reference to it. `until`: it ended by then."""
        predicate, reference = claim.predicates[0], own(len(self.events))
        from_precision, to_precision = _precision(begin), _precision(until)
        self._add(
            FactNoted(
                text=claim.sentence, subject=claim.subject, predicate=predicate, object=claim.object,
                single=is_single(predicate), sources=list(claim.sources),
                valid_from=begin.begin if begin else None, from_precision=from_precision,
                valid_to=until.begin if until else None, to_precision=to_precision,
            )
        )  # fmt: skip
        self._keep(
            KnownFact(
                reference=reference, subject=claim.subject, predicate=predicate, object=claim.object,
                said_at=claim.said_at, begin=begin, holds=until is None,
            )
        )  # fmt: skip
        return reference

    def _end(self, fact: KnownFact, claim: ClaimedFact, end: FactTime | None, successor: int = 0) -> None:
        fact.holds = False
        at = None if end is None else end.begin if fact.begin is None else max(end.begin, fact.begin.begin)
        self._add(
            FactEnded(
                text="" if successor else claim.sentence[:REASON_CHARS_MAX], fact=fact.reference, successor=successor,
                sources=list(claim.sources), valid_to=at, to_precision=_precision(end),
            )
        )  # fmt: skip

    def _add(self, event: DerivedEvent) -> None:
        self.events.append(msgspec.structs.replace(event, deriver=self._deriver, generation=self._generation))


def is_single(predicate: str) -> bool:
    """Return True if a subject has one object of this predicate at a time."""
    return predicate in SINGLE_VALUED or predicate.startswith("favourite_")


def _begin(fact: KnownFact) -> int:
    """Return the time from which a fact is known to hold, microseconds UTC: its beginning, or when it was said."""
    return fact.said_at if fact.begin is None else fact.begin.begin


def _precision(time: FactTime | None) -> Precision:
    return "unknown" if time is None else time.precision
