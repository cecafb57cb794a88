"""Rules that read a fact from a clause: narrow patterns of English, each with its predicate. Pure.

A rule sees a clause without its subject and its dates. Better no fact than a wrong one: an object is a name where a
name is expected, and a clause with more than the pattern matches no rule. Used by `rule_facts.py`.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from everlog.actors.derivation.fact_words import (
    ANIMALS,
    DIETS,
    NO_NAMES,
    NOTHING,
    OCCUPATIONS,
    OWNED,
    RELATIONS,
    same_word,
)

OBJECT_CHARS_MAX = 80
OBJECT_WORDS_MAX = 7
_WORD = r"[A-ZÀ-ÖØ-Þ0-9][\w'&-]*(?:\.\w+)*"
_SMALL = "of|the|and|de|der|von|van|la|le|del|upon|am|an|&"
NAME = rf"(?:(?:St|Dr|Mr|Mrs|Ms|Prof)\. )?[A-ZÀ-ÖØ-Þ][\w'&-]*(?:(?: (?:{_SMALL}))* {_WORD}){{0,4}}"
"""A name: words with a capital, small words between them."""
_PLACE = rf"(?P<o>(?:the )?{NAME})"
_NAMED = rf"(?P<o>{NAME})"
_NOUNS = r"(?P<o>[^,.;:!?]{2,80})"
_SOME = r"(?:an?|the|one|two|three|four|five|six|\d{1,2})"
_THING = rf"{_SOME} (?:[a-z]+ ){{0,2}}(?:{OWNED})"
_AM = r"(?:am|is|are)"
_BE = rf"(?:{_AM}|was|were)"
_HAVE = r"(?:have|has|had)"
_JOB = r"(?P<j>(?:[a-z-]+ ){0,2}[a-z-]+)"


class FactRule(NamedTuple):
    """Pattern of what follows the subject, and the fact that it states."""

    pattern: str
    predicates: Sequence[str]
    """Predicate; of an end those that it may concern. `{r}` stands for the group `r`, a relation or an animal."""
    told: str
    """Sentence of the fact, of subject `{s}` and object `{o}`."""
    ended: bool = False
    past: bool = False
    dated: bool = False
    """True if it states a fact only with a date."""
    several: bool = False
    """True if the object is a list, of which each part is a fact."""


def _once(pattern: str, predicate: str, told: str) -> FactRule:
    return FactRule(rf"used to {pattern}", (predicate,), told, past=True)


_LIVING = rf"(?:lives?|{_AM} (?:living|based)|{_HAVE} (?:lived|been living))"
_WORKING = rf"(?:works?|{_AM} (?:employed|working)|{_HAVE} (?:worked|been working))"
_AS = "{s} works as {a} {o}."
_PARTED = ("is_dating", "is_engaged_to", "is_married_to", "has_girlfriend", "has_boyfriend", "has_partner")
_JOBS = ("works_at", "works_as")
_NO_MORE = r"(?:no longer|do not|does not|not) "

ENDS = (
    FactRule(rf"(?:no longer lives?|{_NO_MORE}live) in {_PLACE}", ("lives_in",), "", ended=True),
    FactRule(rf"(?:no longer works?|{_NO_MORE}work) (?:at|for) {_PLACE}", ("works_at",), "", ended=True),
    FactRule(rf"(?:no longer works?|{_NO_MORE}work) as an? {_NOUNS}", ("works_as",), "", ended=True),
    FactRule(rf"(?:no longer works?|{_NO_MORE}work)(?: there)?", _JOBS, "", ended=True),
    FactRule(
        rf"(?:no longer (?:likes?|enjoys?|loves?)|{_NO_MORE}(?:like|love|enjoy)) {_NOUNS}",
        ("likes", "loves"),
        "",
        ended=True,
    ),
    FactRule(rf"(?:no longer hates?|{_NO_MORE}hate) {_NOUNS}", ("hates",), "", ended=True),
    FactRule(
        rf"(?:no longer plays?|{_NO_MORE}play|stopped playing|gave up) (?:the )?{_NOUNS}", ("plays",), "", ended=True
    ),
    FactRule(rf"(?:no longer drives?|{_NO_MORE}drive) (?:an? |the |my )?{_NOUNS}", ("drives",), "", ended=True),
    FactRule(rf"{_AM} (?:no longer|not) an? {_NOUNS}", ("works_as", "is_a"), "", ended=True),
    FactRule(rf"{_AM} (?:no longer|not) (?P<o>{DIETS})", ("is_a",), "", ended=True),
    FactRule(rf"{_AM} (?:no longer|not) (?:married to|dating|engaged to) {_NAMED}", _PARTED, "", ended=True),
    FactRule(rf"{_AM} (?:no longer|not) married", ("is_married_to",), "", ended=True),
    FactRule(
        rf"(?:{_HAVE} )?(?:quit|left|lost|resigned from|gave up|(?:was|were|got) (?:fired|laid off) from) "
        r"(?:my|his|her|their|the) job(?: as an? [a-z ]+)?",
        _JOBS,
        "",
        ended=True,
    ),
    FactRule(
        rf"(?:{_HAVE} )?(?:been |got |was |were )(?:fired|laid off)|(?:{_HAVE} )?(?:retired|resigned)",
        _JOBS,
        "",
        ended=True,
    ),
    FactRule(
        rf"(?:{_HAVE} )?(?:quit|left|resigned from|stopped working (?:at|for)|"
        r"(?:was|were|got) (?:fired|laid off) (?:from|by)) "
        rf"(?:my job at |the job at )?{_PLACE}",
        ("works_at",),
        "",
        ended=True,
    ),
    FactRule(rf"(?:{_HAVE} )?(?:moved out of|moved away from) {_PLACE}", ("lives_in",), "", ended=True),
    FactRule(rf"(?:{_HAVE} )?(?:broke|broken|split) up with {_NAMED}", _PARTED, "", ended=True),
    FactRule(
        rf"(?:{_HAVE} )?(?:separated from|divorced|(?:got|{_BE}) divorced from) {_NAMED}", _PARTED, "", ended=True
    ),
    FactRule(rf"(?:{_HAVE} )?(?:got|gotten|{_BE}) divorced", ("is_married_to",), "", ended=True),
    FactRule(rf"(?:{_HAVE} )?sold (?:my|his|her|the|their) {_NOUNS}", ("owns", "drives", "has"), "", ended=True),
    _once(rf"live in {_PLACE}", "lives_in", "{s} lived in {o}."),
    _once(rf"work (?:at|for) {_PLACE}", "works_at", "{s} worked at {o}."),
    _once(rf"work as an? {_NOUNS}", "works_as", "{s} worked as {a} {o}."),
    _once(rf"(?:like|enjoy) {_NOUNS}", "likes", "{s} liked {o}."),
    _once(rf"love {_NOUNS}", "loves", "{s} loved {o}."),
    _once(rf"hate {_NOUNS}", "hates", "{s} hated {o}."),
    _once(rf"play (?:the )?{_NOUNS}", "plays", "{s} played {o}."),
    _once(rf"be an? (?P<o>(?:[a-z]+ )?(?:{OCCUPATIONS}))", "works_as", "{s} worked as {a} {o}."),
)
"""Rules for what has ended. They are tried first, and alone for a clause that denies something."""

STATES = (
    FactRule(rf"{_LIVING} in {_PLACE}", ("lives_in",), "{s} lives in {o}."),
    FactRule(
        rf"(?:{_HAVE} )?(?:moved|relocated) (?:from {NAME} )?(?:back )?to {_PLACE}", ("lives_in",), "{s} lives in {o}."
    ),
    FactRule(rf"{_AM} moving (?:back )?to {_PLACE}", ("lives_in",), "{s} lives in {o}.", dated=True),
    FactRule(
        rf"{_WORKING} (?:at|for|with) (?P<o>(?:the |an? )?{NAME}|(?:the|an?) [a-z -]{{3,30}})",
        ("works_at",),
        "{s} works at {o}.",
    ),
    FactRule(
        rf"(?:{_HAVE} )?(?:start(?:s|ed)? (?:working |work |an? (?:new )?job )?|got an? (?:new )?job )"
        rf"(?:at|for|with) {_PLACE}",
        ("works_at",),
        "{s} works at {o}.",
    ),
    FactRule(rf"{_WORKING} (?:at|for) {_PLACE} as an? {_JOB}", ("works_at",), "{s} works at {o}."),
    FactRule(rf"{_WORKING} (?:at|for) (?:the )?{NAME} as an? (?P<o>(?:[a-z-]+ ){{0,2}}[a-z-]+)", ("works_as",), _AS),
    FactRule(rf"{_WORKING} as an? (?P<o>(?:[a-z-]+ ){{0,2}}[a-z-]+) (?:at|for) (?:the )?{NAME}", ("works_as",), _AS),
    FactRule(rf"{_WORKING} as an? {_JOB} (?:at|for) {_PLACE}", ("works_at",), "{s} works at {o}."),
    FactRule(rf"{_WORKING} as an? (?P<o>(?:[a-z-]+ ){{0,3}}[a-z-]+)", ("works_as",), _AS),
    FactRule(rf"{_AM} an? (?P<o>(?:[a-z-]+ ){{0,2}}(?:{OCCUPATIONS}))(?: (?:at|for|in|by) .+)?", ("works_as",), _AS),
    FactRule(rf"{_AM} an? {_JOB} (?:at|for) {_PLACE}", ("works_at",), "{s} works at {o}."),
    FactRule(rf"(?:comes?|{_AM}) (?:originally )?from {_PLACE}", ("is_from",), "{s} is from {o}."),
    FactRule(rf"{_BE} born (?:and raised )?in {_PLACE}", ("born_in",), "{s} was born in {o}."),
    FactRule(rf"(?:loves?|adores?) {_NOUNS}", ("loves",), "{s} loves {o}.", several=True),
    FactRule(
        rf"(?:likes?|enjoys?|{_AM} (?:an? (?:big |huge |great )?fan of|fond of|fans? of)) {_NOUNS}",
        ("likes",),
        "{s} likes {o}.",
        several=True,
    ),
    FactRule(rf"(?:hates?|detests?|dislikes?) {_NOUNS}", ("hates",), "{s} hates {o}.", several=True),
    FactRule(
        rf"(?:{_AM}|{_HAVE} been|(?:{_HAVE} )?(?:got|gotten)) married to {_NAMED}",
        ("is_married_to",),
        "{s} is married to {o}.",
    ),
    FactRule(rf"(?:{_HAVE} )?married {_NAMED}", ("is_married_to",), "{s} is married to {o}."),
    FactRule(rf"(?:{_AM}|(?:{_HAVE} )?got) engaged to {_NAMED}", ("is_engaged_to",), "{s} is engaged to {o}."),
    FactRule(rf"{_AM} (?:dating|in a relationship with) {_NAMED}", ("is_dating",), "{s} is dating {o}."),
    FactRule(rf"(?:{_AM} called|goes by|go by) {_NAMED}", ("name",), "The name of {s} is {o}."),
    FactRule(
        rf"{_AM} (?P<o>\d{{1,3}})(?: years old| years of age)?|turned (?P<o2>\d{{1,3}})",
        ("age",),
        "{s} is {o} years old.",
    ),
    FactRule(
        r"speaks? (?P<o>[A-Z][a-z]+(?:(?:,| and|, and) [A-Z][a-z]+)*)(?: fluently)?",
        ("speaks",),
        "{s} speaks {o}.",
        several=True,
    ),
    FactRule(
        r"plays? (?:the )?(?P<o>[a-z]{4,}(?: [a-z]{4,})?(?: and (?:the )?[a-z]{4,})?)",
        ("plays",),
        "{s} plays {o}.",
        several=True,
    ),
    FactRule(
        rf"(?:study|studies|{_AM} studying) (?P<o>[A-Za-z]{{4,}}(?: [a-z]+){{0,2}})(?: (?:at|in) .+)?",
        ("studies",),
        "{s} studies {o}.",
    ),
    FactRule(rf"{_AM} allergic to {_NOUNS}", ("is_allergic_to",), "{s} is allergic to {o}.", several=True),
    FactRule(r"drives? (?P<o>(?:an? |the )?[\w -]{3,40})", ("drives",), "{s} drives {o}."),
    FactRule(rf"owns? (?P<o>{_SOME} [\w -]{{3,40}})", ("owns",), "{s} owns {o}."),
    FactRule(
        rf"(?:{_HAVE}|{_HAVE} got|got|adopted) (?:an?|one|the) (?:[a-z]+ ){{0,2}}"
        rf"(?P<r>{RELATIONS}|{ANIMALS}),? (?:named|called) {_NAMED}",
        ("has_{r}",),
        "{s} has a {r} named {o}.",
    ),
    FactRule(
        rf"(?:{_HAVE}|{_HAVE} got) (?P<o>{_THING}(?:,? and {_THING}){{0,3}})", ("has",), "{s} has {o}.", several=True
    ),
    FactRule(rf"{_AM} (?P<o>(?:an? )?(?:{DIETS}))", ("is_a",), "{s} is {o}."),
)
"""Rules for what holds."""


class RuleMatch(NamedTuple):
    """A rule that matches, with the objects that it names."""

    rule: FactRule
    predicates: Sequence[str]
    objects: Sequence[str]
    """Objects of one fact each; empty if the rule names none."""
    relation: str


def matches(rest: str, *, denied: bool) -> list[RuleMatch]:
    """Return what the rules read in a clause without its subject and dates. `denied`: try the ends only."""
    found: list[RuleMatch] = []
    rest = _ASIDES.sub("", rest)
    shorter = _MORE.sub("", rest)
    for rule in ENDS if denied else (*ENDS, *STATES):
        match = _compiled(rule.pattern).fullmatch(rest)
        if match is None and shorter != rest and NAME in rule.pattern:
            match = _compiled(rule.pattern).fullmatch(shorter)
        if match is None:
            continue
        groups = match.groupdict()
        said = groups.get("o") or groups.get("o2") or ""
        if not rule.ended and not said:
            continue
        objects = objects_of(said, several=rule.several) if said else []
        if said and not objects:
            continue
        relation = same_word(groups.get("r") or "")
        found.append(RuleMatch(rule, [one.format(r=relation) for one in rule.predicates], objects, relation))
        if rule.ended or rule.past:
            break
    return found


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern})(?: any ?more| any longer| again)?")


_ASIDES = re.compile(
    r"(?:,? (?:now|too|as well|these days|right now|at the moment|again|already|in fact|though|together|actually))+$"
)
_MORE = re.compile(
    r",? (?:with|because of|after|before|for|to be|by|on|during|near|next to|so that|"
    r"just|since|until|when|where|while) .*$|, [A-Z].*$"
)
"""Words that may follow a name that ends a statement."""
_TAIL = re.compile(
    r"\s+(?:too|so much|very much|a lot|a ton|as well|again|though|these days|right now|now|anymore|any more|today|"
    r"anyway|"
    r"more than (?:anything|ever).*|the most|most of all|lately|together|already|there|here|for sure|since|"
    r"because of .*|"
    r"as .*|with .*|from .*|after .*|before .*|during .*|even .*|but .*|like .*|than .*)$",
    re.IGNORECASE,
)
_LIST = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_PRONOUN = re.compile(NOTHING, re.IGNORECASE)
_LAX = re.compile(
    r"\b(?:I|you|we|he|she|they|it|me|us|him|them|my|our|your|his|her|their|this|these|those|that|myself|yourself|"
    r"who|whom|whose|which|when|where|while|if)\b"
    r"|^(?:the|so|such|more|most) (?=[a-z])|\b(?:to|in|of|on|at|for|and|or|the|an?|is|are|by|about)$"
)
"""Objects that mean something only where they were said, or whose end was cut off."""
_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=[a-z])")


def objects_of(said: str, *, several: bool) -> list[str]:
    """Return the objects that a text names; none if it names nothing by itself. `several`: it may be a list."""
    whole = said.strip(" .,'")
    while (cut := _TAIL.sub("", whole)) != whole:
        whole = cut
    parts = _LIST.split(whole) if several and len(_LIST.split(whole)) < 5 else [whole]
    if several and any(len(part.split()) > 3 for part in parts):
        parts = [whole]
    kept: list[str] = []
    for part in parts:
        part = part.strip(" .,'")
        if not part or _PRONOUN.match(part) or (several and _LAX.search(part)) or part in NO_NAMES:
            return []
        if len(part) > OBJECT_CHARS_MAX or len(part.split()) > OBJECT_WORDS_MAX:
            return []
        kept.append(part)
    return list(dict.fromkeys(kept))


def without_article(name: str) -> str:
    """Return an object without the article before a common noun."""
    return _ARTICLE.sub("", name)
