"""Conclude insights by rules, without a model: who spoke of what how often, what belongs together, and what changed.

The rules are extractive and say so: an insight of theirs counts and dates what was said, and adds no thought. Pure.
Used by `actors/deriving`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from everlog.actors.derivation.conclusions import Conclusions, Evidence, Material
from everlog.actors.derivation.insight_checks import (
    INSIGHT_CHARS_MAX,
    INSIGHT_SOURCES_MAX,
    QUESTION_CHARS_MAX,
    check_insight,
    depth_of,
    plain,
)
from everlog.events import BadInput, InsightNoted
from everlog.events.times import moment
from everlog.projections.time_zones import zone_of
from everlog.store.base.function_words import ENGLISH, FUNCTION_WORDS
from everlog.store.base.stemming import query_stems

RULES = "rules-1"
"""Name and version of the rules. A change of what they conclude needs another version."""
INSIGHTS_MAX = 15
"""Most insights of one reflection."""
TOPIC_MESSAGES_MIN = 3
"""Messages of one speaker in which a word occurs before it is a topic."""
TOPIC_SOURCES_MAX = 20
"""Messages that an insight about a topic names. Of more it says "more than", so that its sources bear it out."""
TOPICS_MAX = 5
"""Most topics of one reflection."""
OBJECTS_MIN = 3
"""Facts of one subject and predicate before they are told together."""
_TOPIC = re.compile(r"[^\W\d_][\w'-]{3,}")
_COUNTED = re.compile(
    r"^(?P<who>.+) mentioned (?P<topic>\S+) (?P<more>more than )?(?P<count>\d+) times "
    r"(?:on|between) (?P<first>[^,]+?)(?: and (?P<last>[^,]+))?\.$"
)
_CAPTION = re.compile(r"\[[^\]]*\]")
"""Words in brackets, which tell what was shown and not what was said."""
_VAGUE_TEXT = """
    about absolutely again agree also always amazing appreciate around awesome beautiful because been being believe
    better came check come coming could definitely doing done enjoy enjoyed even ever every everyone everything
    exactly excited exciting fantastic feel feeling feels felt find forget forward getting give glad goes going gone
    gonna good great guess happy have having hear heard hello help helpful helps here hope image images important
    incredible inspiring just keep kind know last later learn like little long look looking lots love loved lovely
    made make making many maybe mean might more most much must myself need never next nice nothing okay only other
    people perfect photo photos picture pictures place please pretty quite really right said same says seem seen share
    shared shares sharing should since some someone something soon sorry sound sounds special still stuff such super
    support sure take taking talk tell than thank thanks that their them then there these they thing things think this
    those though thought time times today together told tomorrow tonight took totally tried true truly trying until
    used using very view wait want wanted wants week well went were what when where which while will with without
    wonderful wondering word work would yeah year years yesterday your
"""
_VAGUE = frozenset(_VAGUE_TEXT.split())
"""Words that are no topic."""


class InsightRules:
    """The rules as a deriver of insights."""

    @property
    def name(self) -> str:
        """Name and version of the rules."""
        return RULES

    async def derive(self, material: Material) -> Conclusions:
        """Return insights from messages, facts and earlier insights, at most INSIGHTS_MAX. It asks no model."""
        known = {plain(one.text) for one in material.evidence if one.role == "derived"}
        said = [one.text for one in material.evidence if one.role != "derived"]
        proposed = [*_changes(material), *_groups(material), *_topics(material)]
        events: list[InsightNoted] = []
        refused: list[str] = []
        for one in proposed[:INSIGHTS_MAX]:
            try:
                text = check_insight(one.text, one.question, known, said, ())
            except BadInput as error:
                if not str(error).startswith("The insight is known"):
                    refused.append(str(error))
                continue
            known.add(plain(text))
            events.append(
                InsightNoted(
                    text=text, question=one.question[:QUESTION_CHARS_MAX], sources=sorted(one.sources),
                    depth=depth_of(one.sources, material.evidence), importance=one.importance, deriver=RULES,
                    generation=material.generation,
                )
            )  # fmt: skip
        return Conclusions(events, refused)


class _Proposed(NamedTuple):
    text: str
    question: str
    sources: set[int]
    importance: int


def _changes(material: Material) -> Iterable[_Proposed]:
    """Propose an insight for each fact that ended and has a successor: what changed, from what, to what, and when.

    It rests on the end and on the new fact. It does not rest on the old one, which would make it outdated at birth.
    """
    by_seq = {row["seq"]: row for row in material.facts}
    for row in sorted(material.facts, key=lambda row: row["seq"]):
        new = by_seq.get(row["successor"])
        if new is None or not row["ended_seq"] or row["object"] == new["object"]:
            continue
        who = _called(row["subject"], material.names)
        said = str(row["predicate"]).replace("_", " ")
        when = _in_words(row["valid_to"], row["to_precision"], material.zone)
        if row["predicate"] in ("lives_in", "located_in", "moved_to"):
            text = f"{who} moved from {row['object']} to {new['object']}{when}."
        else:
            text = f"{who} {said} {new['object']}, and {row['object']} {'until' + when[3:] if when else 'before'}."
        yield _Proposed(text, f"What changed for {who}?", {row["ended_seq"], new["seq"]}, 6)


def _groups(material: Material) -> Iterable[_Proposed]:
    """Propose an insight for each subject and predicate with several objects that are believed."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in sorted(material.facts, key=lambda row: row["seq"]):
        if row["believed"] and not row["single"]:
            groups[_called(row["subject"], material.names), row["predicate"]].append(row)
    for (who, predicate), rows in groups.items():
        objects = list(dict.fromkeys(str(row["object"]) for row in rows))
        if len(objects) < OBJECTS_MIN:
            continue
        said = predicate.replace("_", " ")
        while objects and len(text := f"{who} {said} {_listed(objects)}.") > INSIGHT_CHARS_MAX:
            objects.pop()
        if len(objects) < OBJECTS_MIN:
            continue
        sources = {row["seq"] for row in rows if row["object"] in objects}
        yield _Proposed(text, f"What does {who} {said}?", set(sorted(sources)[-INSIGHT_SOURCES_MAX:]), 5)


class _Topic(NamedTuple):
    """A word that one speaker used, and the messages in which it occurs, oldest first."""

    who: str
    word: str
    messages: list[Evidence]


def _topics(material: Material) -> Iterable[_Proposed]:
    """Propose an insight for each word that a speaker keeps coming back to.

    An earlier insight about the same speaker and word is counted on, and becomes a source.
    """
    earlier: dict[tuple[str, str], tuple[Evidence, re.Match[str]]] = {}
    for one in material.evidence:
        if one.role == "derived" and (told := _COUNTED.match(one.text)):
            earlier[told["who"], told["topic"]] = one, told
    found = _words_by_speaker([one for one in material.evidence if one.role in ("user", "assistant")])
    for topic in found[:TOPICS_MAX]:
        cited = topic.messages[:1] + topic.messages[1:][-(TOPIC_SOURCES_MAX - 1) :]
        first, last = _day(cited[0].at, material.zone), _day(cited[-1].at, material.zone)
        count, more, sources = len(cited), len(cited) < len(topic.messages), {one.seq for one in cited}
        if (topic.who, topic.word) in earlier:
            before, told = earlier[topic.who, topic.word]
            first, count, more = told["first"], count + int(told["count"]), more or bool(told["more"])
            sources.add(before.seq)
        days = f"on {first}" if first == last else f"between {first} and {last}"
        text = f"{topic.who} mentioned {topic.word} {'more than ' if more else ''}{count} times {days}."
        yield _Proposed(text, f"What does {topic.who} keep coming back to?", sources, min(10, 3 + count // 2))


def _words_by_speaker(said: Sequence[Evidence]) -> list[_Topic]:
    """Return the topics of each speaker, the most frequent first. A word is counted once in a message, by its stem."""
    places: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    spelled: dict[tuple[str, str], str] = {}
    names = {part.lower() for one in said for part in one.name.split()}
    for one in said:
        who = one.name or ("The user" if one.role == "user" else "The assistant")
        for stem, word in _stems(one.text, names).items():
            places[who, stem].append(one)
            spelled.setdefault((who, stem), word)
    own = {who: sum(1 for one in said if (one.name or _role(one)) == who) for who, _ in places}
    # A word that is in most messages of a speaker is a manner of speaking.
    topics = [
        _Topic(who, spelled[who, stem], messages)
        for (who, stem), messages in places.items()
        if len(messages) >= TOPIC_MESSAGES_MIN and (own[who] < 10 or len(messages) * 2 <= own[who])
    ]
    return sorted(topics, key=lambda topic: (-len(topic.messages), topic.messages[0].seq, topic.word))


def _role(one: Evidence) -> str:
    return "The user" if one.role == "user" else "The assistant"


def _stems(text: str, names: set[str]) -> dict[str, str]:
    """Return the words of a text that may be topics, by their stems."""
    found: dict[str, str] = {}
    for match in _TOPIC.finditer(_CAPTION.sub(" ", text)):
        word = match[0].removesuffix("'s")
        low = word.lower()
        if "'" in low or low in _VAGUE or low in names or low in FUNCTION_WORDS[ENGLISH]:
            continue
        found.setdefault(_stem(low), low)
    return found


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return next(iter(query_stems(word)), word)


def _called(name: str, names: Mapping[str, str]) -> str:
    return names.get(name, name)


def _listed(objects: Sequence[str]) -> str:
    return objects[0] if len(objects) == 1 else f"{', '.join(objects[:-1])} and {objects[-1]}"


def _day(at: int, zone: str) -> str:
    """Return the day of a time in words, such as 7 May 2024."""
    day = moment(at).astimezone(zone_of(zone))
    return f"{day.day} {day:%B %Y}"


def _in_words(at: int | None, precision: str, zone: str) -> str:
    """Return the time of a change in words, with a blank and `in` or `on` before it; empty if it is not known."""
    if at is None or precision == "unknown":
        return ""
    when = moment(at).astimezone(zone_of(zone))
    match precision:
        case "year":
            return f" in {when.year}"
        case "month":
            return f" in {when:%B} {when.year}"
        case _:
            return f" on {when.day} {when:%B %Y}"
