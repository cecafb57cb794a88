"""Read the vocabularies of the scripted chats: one TOML file for each language, checked when it is read.

Used by `assistant_talk`, `long_reply` and `planted_facts`. A key that is missing or of another type is an error of the
file, and msgspec names it. Texts have slots such as {x}, which `filled` fills.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

LANGUAGES = ("en", "zh", "es")
FILES = {"en": "english.toml", "zh": "chinese.toml", "es": "spanish.toml"}

_SLOT = re.compile(r"\{(\w+)\}")


class FactFrame(msgspec.Struct, frozen=True):
    """A kind of fact about a thing {x} with a value {v}: how it is said, and how it is asked for."""

    says: Sequence[str]
    asks: Sequence[str]
    x: Sequence[str]
    v: Sequence[str]
    proper: bool = False
    """True if {x} is a name, which has no article."""


class ChangeFrame(msgspec.Struct, frozen=True):
    """A value {v} that later becomes {w}."""

    what: str
    first: Sequence[str]
    then: Sequence[str]
    asks: Sequence[str]
    values: Sequence[str]


class LikeFrame(msgspec.Struct, frozen=True):
    """A preference."""

    says: Sequence[str]
    asks: Sequence[str]


class ListFrame(msgspec.Struct, frozen=True):
    """Things {v} that are named one at a time, and asked for together."""

    says: Sequence[str]
    asks: Sequence[str]
    items: Sequence[str]


class HopFrame(msgspec.Struct, frozen=True):
    """A property {v} of a person {name}, who is asked for as a {relation}."""

    says: Sequence[str]
    asks: Sequence[str]
    values: Sequence[str]


class TalkTopic(msgspec.Struct, frozen=True):
    """Everything that can be said about one subject."""

    theme: str
    nouns: Sequence[str]
    actions: Sequence[str]
    facts: Sequence[FactFrame]
    changes: Sequence[ChangeFrame]
    likes: Sequence[LikeFrame]
    lists: Sequence[ListFrame]
    events: Sequence[tuple[str, str, str]]
    """Each as it is told, after "did I", and in the past."""
    steps: Sequence[str]
    """Stages of the subject, in their order."""
    advice: Sequence[tuple[str, str]]
    """A problem, and what the assistant recommends against it."""
    pairs: Sequence[tuple[str, str]]
    """A statement, and a question about it that has none of its words."""
    code: bool = False


class Vocabulary(msgspec.Struct, frozen=True):
    """Everything that can be said in one language."""

    people: Sequence[str]
    relations: Sequence[str]
    introductions: Sequence[str]
    asides: Sequence[str]
    requests: Sequence[str]
    follow_ups: Sequence[str]
    mentions: Sequence[str]
    """Messages that speak of a thing {v} and tell nothing about it."""
    recalls: Sequence[str]
    """Messages that speak of an event again, without its date."""
    echoes: Sequence[str]
    quotes: Sequence[str]
    """Sentences of a reply that repeat the user's own."""
    about: Sequence[str]
    """Sentences of a reply about a thing {v}."""
    openings: Sequence[str]
    closings: Sequence[str]
    headings: Sequence[str]
    tips: Sequence[str]
    tables: Sequence[str]
    table_cells: Sequence[str]
    assistant_says: Sequence[str]
    assistant_asks: Sequence[str]
    assistant_requests: Sequence[str]
    event_says: Sequence[str]
    event_asks: Sequence[str]
    order_asks: Sequence[str]
    change_asks: Sequence[str]
    whens: Mapping[str, str]
    """Each relative date, and its rule: "days N" before, or "weekday N" (0: Monday), the last one before."""
    hops: Sequence[HopFrame]
    topics: Sequence[TalkTopic]
    article: str = ""
    """Text before a thing that is no name."""
    contractions: Mapping[str, str] = {}
    """Texts that are replaced in every sentence, such as "de el" by "del"."""
    density: float = 1.0
    """Characters that this language needs, where English needs one."""
    joint: str = " "
    """Text between two sentences."""


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the vocabulary of one of LANGUAGES."""
    return msgspec.toml.decode((Path(__file__).parent / FILES[language]).read_bytes(), type=Vocabulary)


def contracted(words: Vocabulary, text: str) -> str:
    """Return a finished text with the contractions of its language."""
    for written, spoken in words.contractions.items():
        text = text.replace(written, spoken)
    return text


def filled(template: str, **slots: str) -> str:
    """Return a template with its slots filled and a capital letter first. Raise KeyError for an unknown slot."""
    text = _SLOT.sub(lambda match: slots[match[1]], template)
    return text[:1].upper() + text[1:]
