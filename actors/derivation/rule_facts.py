"""Derive facts from messages by rules, without a model. Pure: the same messages give the same facts.

The subject of a clause is the speaker ("I"), the one who is spoken to ("you"), a name, or the relative of one. What an
assistant without a name says is no source: it repeats what it was told, or speaks of itself.
"""

import re
from collections.abc import Sequence

from everlog.actors.derivation.clauses import Clause, clauses_of
from everlog.actors.derivation.conclusions import Conclusions, Evidence, Material
from everlog.actors.derivation.fact_ledger import ClaimedFact, FactLedger
from everlog.actors.derivation.fact_rules import NAME, RuleMatch, matches, objects_of, without_article
from everlog.actors.derivation.fact_times import DatedText, dated
from everlog.actors.derivation.fact_words import ANIMALS, BASE_FORMS, NO_NAMES, RELATIONS, same_word

RULES = "rules-1"
"""Name of the rules in every event. Raise its number if they conclude otherwise."""

_KIN = f"(?:{RELATIONS}|{ANIMALS})"
_ADJECTIVES = r"(?:(?:older|elder|younger|little|big|new|old|late|eldest|oldest|youngest|twin|dear) )?"
_PERSON = rf"{NAME}"
_OWNER = rf"(?P<owner>[Mm]y|[Yy]our|{_PERSON}'s)"
_RELATIVE = re.compile(rf"^{_OWNER} {_ADJECTIVES}(?P<kin>{_KIN})(?:,? (?P<name>{_PERSON}))?(?P<s>'s)?,? (?P<rest>.+)$")
_RELATIVE_NAMED = re.compile(
    rf"^{_OWNER} {_ADJECTIVES}(?P<kin>{_KIN})(?:'s name is| is (?:called|named)| is) (?P<name>{_PERSON})$"
)
_FAVOURITE = re.compile(
    rf"^{_OWNER} favou?rite (?P<what>[a-z]+(?: [a-z]+)?)(?: of all time| ever)? (?:is|are) (?P<o>.+)$"
)
_NAME_IS = re.compile(rf"^{_OWNER} (?:(?:full|real|first) )?name is (?P<o>{_PERSON})$")
_CALL_ME = re.compile(rf"^(?:(?:you can|everyone can|people|friends|my friends) )?call me (?P<o>{_PERSON})$")
_IS_RELATIVE = re.compile(
    rf"^(?P<name>{_PERSON}) (?:is|are) (?P<owner>my|your|{_PERSON}'s) {_ADJECTIVES}(?P<kin>{_KIN})$"
)
_SAME_NAME = re.compile(
    rf"^(?P<alias>{_PERSON}) is (?:short for|also known as|the same (?:person )?as) (?P<o>{_PERSON})$"
)
_THAT_IS = re.compile(rf"(?:^|(?<= ))(?P<alias>{_PERSON}), that is,? (?P<o>{_PERSON})(?=,|$)")
_BORN_ON = re.compile(r"^(?:am|is|are|was|were) born$")
_SUBJECT = re.compile(rf"^(?:(?P<i>I)|(?P<you>[Yy]ou)|(?P<name>{_PERSON}?)(?P<s>'s)?) (?P<rest>[a-z].*)$")


class RuleFacts:
    """Deriver of facts by rules."""

    name = RULES

    async def derive(self, material: Material) -> Conclusions:
        """Return the facts that the messages state, and what they end."""
        ledger = FactLedger(material, self.name)
        speakers = _Speakers(material.evidence)
        for place, message in enumerate(material.evidence):
            if message.role == "user" or (message.role == "assistant" and message.name):
                _MessageReader(ledger, message, speakers.of(message), speakers.other(place)).read()
        return Conclusions(events=ledger.events)


class _Speakers:
    """Names of those who speak in the messages of one derivation."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self._evidence = evidence
        self._all = list(dict.fromkeys(map(self.of, evidence)))

    @staticmethod
    def of(message: Evidence) -> str:
        """Return the name of a message's speaker, or the role."""
        return message.name or message.role

    def other(self, place: int) -> str:
        """Return the one whom the message at a place speaks to: who spoke last before, or the only other one."""
        own = self.of(self._evidence[place])
        for message in reversed(self._evidence[max(0, place - 10) : place]):
            if self.of(message) != own:
                return self.of(message)
        others = [name for name in self._all if name != own]
        default = "assistant" if self._evidence[place].role == "user" else "user"
        return others[0] if len(others) == 1 else "" if others else default


class _MessageReader:
    """Reader of the claims of one message."""

    def __init__(self, ledger: FactLedger, message: Evidence, speaker: str, other: str) -> None:
        self._ledger, self._message, self._speaker, self._other = ledger, message, speaker, other
        self._named = ""
        """Name that the speaker gave in this message."""

    def read(self) -> None:
        """Add what the message claims to the ledger."""
        before = ""
        for clause in clauses_of(self._message.text):
            said = dated(clause.text, self._message.at, self._ledger.zone)
            if clause.continues and not _CALL_ME.match(said.text):
                if before:
                    self._predicate(before, said.text, said, denied=clause.denied)
                continue
            before = self._clause(clause, said)

    def _clause(self, clause: Clause, said: DatedText) -> str:
        """Read one clause. Return its subject; empty if it has none that is known by name."""
        if not clause.denied:
            if match := _THAT_IS.search(said.text):
                # Only a longer form of the name: "Paris, that is France" names two.
                if set(match["alias"].split()) < set(match["o"].split()):
                    self._ledger.name(match["alias"], match["o"], [self._message.seq])
                return ""
            if self._special(said):
                return ""
        relative = _RELATIVE.match(said.text)
        if relative is not None:
            name = relative["name"] or ""
            rest = f"is {relative['rest']}" if relative["s"] else relative["rest"]
            owner = self._owner(relative["owner"])
            if not owner or name in NO_NAMES or name.split(" ")[0] in NO_NAMES:
                name = ""
            if owner and name:
                self._relate(owner, same_word(relative["kin"]), name, said)
            subject = name or self._relative(owner, same_word(relative["kin"]))
            if subject:
                self._predicate(subject, rest, said, denied=clause.denied)
            return subject
        match = _SUBJECT.match(said.text)
        if match is None:
            return ""
        subject = self._speaker if match["i"] else self._other if match["you"] else match["name"]
        if match["name"] and (match["name"].split(" ")[0] in NO_NAMES or match["name"] in NO_NAMES):
            return ""
        if match["name"] and match["rest"].split(" ")[0] in BASE_FORMS:
            return ""  # "The Smiths have": not one entity
        rest = f"is {match['rest']}" if match["s"] else match["rest"]
        if subject:
            self._predicate(subject, rest, said, denied=clause.denied)
        return subject

    def _special(self, said: DatedText) -> bool:
        """Read a clause that is about names, relatives and favourites. Return True if it is one."""
        text = said.text
        if match := _CALL_ME.match(text):
            self._call(match["o"])
        elif match := _NAME_IS.match(text):
            owner = self._owner(match["owner"])
            if owner:
                self._name(owner, match["o"], said)
        elif match := _FAVOURITE.match(text):
            owner = self._owner(match["owner"])
            for found in objects_of(match["o"], several=False) if owner else []:
                what, found = match["what"], without_article(found)
                told = f"The favourite {what} of {_shown(owner)} is {found}."
                self._claim(owner, [f"favourite_{same_word(what)}"], found, told, said)
        elif (match := _RELATIVE_NAMED.match(text)) or (match := _IS_RELATIVE.match(text)):
            owner = self._owner(match["owner"])
            if owner and match["name"].split(" ")[0] not in NO_NAMES:
                self._relate(owner, same_word(match["kin"]), match["name"], said)
        elif match := _SAME_NAME.match(text):
            if match["alias"] not in NO_NAMES and match["o"].split(" ")[0] not in NO_NAMES:
                self._ledger.name(match["alias"], match["o"], [self._message.seq])
        else:
            return False
        return True

    def _owner(self, said: str) -> str:
        if said.lower() == "my":
            return self._speaker
        if said.lower() == "your":
            return self._other
        name = said.removesuffix("'s")
        return "" if name in NO_NAMES or name.split(" ")[0] in NO_NAMES else name

    def _relative(self, owner: str, kin: str) -> str:
        """Return the name of the relative of a person if exactly one is known; else the relation."""
        if not owner:
            return ""
        known = {self._ledger.canonical(fact.object) for fact in self._ledger.holding(owner, f"has_{kin}")}
        return next(iter(known)) if len(known) == 1 else f"{owner}'s {kin.replace('_', ' ')}" if not known else ""

    def _relate(self, owner: str, kin: str, name: str, said: DatedText) -> None:
        told = f"{_shown(owner, first=True)} has a {kin.replace('_', ' ')} named {name}."
        self._claim(owner, [f"has_{kin}"], name, told, said)

    def _name(self, owner: str, name: str, said: DatedText) -> None:
        self._claim(owner, ["name"], name, f"The name of {_shown(owner)} is {name}.", said)
        if owner == self._speaker:
            self._named = name
            if not self._message.name:
                self._ledger.name(owner, name, [self._message.seq])

    def _call(self, alias: str) -> None:
        """Note another name of the speaker, of whom a name is known."""
        known = self._named or self._message.name
        if known and alias.split(" ", maxsplit=1)[0] not in NO_NAMES:
            self._ledger.name(alias, known, [self._message.seq])

    def _predicate(self, subject: str, rest: str, said: DatedText, *, denied: bool) -> None:
        """Read what a clause says about a subject. `rest`: the clause without subject and dates."""
        if _BORN_ON.match(rest) and said.time is not None and not denied:
            day = said.told
            self._claim(subject, ["born_on"], day, f"{_shown(subject, first=True)} was born on {day}.", said)
        for match in matches(rest, denied=denied):
            self._matched(subject, match, said)

    def _matched(self, subject: str, match: RuleMatch, said: DatedText) -> None:
        rule = match.rule
        if rule.dated and said.time is None:
            return
        if rule.ended:
            self._claim(
                subject, match.predicates, match.objects[0] if match.objects else "", said.text, said, ended=True
            )
            return
        for found in match.objects:
            told = rule.told.format(
                s=_shown(subject, first=rule.told.startswith("{s}")), o=found, r=match.relation, a=_article(found)
            )
            self._claim(subject, match.predicates, without_article(found), told, said, past=rule.past)

    def _claim(
        self, subject: str, predicates: Sequence[str], found: str, told: str, said: DatedText, *, ended: bool = False,
        past: bool = False,
    ) -> None:  # fmt: skip
        self._ledger.claim(
            ClaimedFact(
                subject=subject, predicates=predicates, object=found, sentence=told, sources=[self._message.seq],
                said_at=self._message.at, time=said.time, ended=ended, past=past,
            )
        )  # fmt: skip


def _shown(subject: str, *, first: bool = False) -> str:
    """Return a subject as a sentence names it. `first`: at its beginning."""
    if subject in {"user", "assistant"} or subject.startswith(("user's ", "assistant's ")):
        return f"{'The' if first else 'the'} {subject}"
    return subject


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" else "a"
