"""Plan what a scripted user tells in the course of a conversation, and the questions about it.

Used by `assistant_talk`. A plan is a list of `Planted`, each with statements in their order; a statement's place in the
conversation is known only later, so a question's evidence is the statements themselves.
"""

import random
from collections.abc import Iterator, Sequence

import msgspec

from bench.talk.vocabulary import TalkTopic, Vocabulary, filled

THINGS, EVENTS, ADVICE = 2, 3, 2
"""Maximum number of things {x} of one kind of fact, of events and of pieces of advice, in one topic. More would make
the questions easy on average: each of these has words that only its evidence has.
"""
LIST_MIN, LIST_MAX = 3, 8
"""Number of pieces of a list, both inclusive."""


class Statement(msgspec.Struct, frozen=True):
    """Something that is said once, as evidence of a question."""

    text: str
    thing: str = ""
    """The thing that it is about, of which other messages speak too; empty for none."""
    event: str = ""
    """The event without its date; empty for none."""
    when: str = ""
    """Rule of the relative date in the text, as in `Vocabulary.whens`; empty for none."""
    reply: str = ""
    """The sentence of the assistant that is the evidence, if the user's own is not."""


class Planted(msgspec.Struct, frozen=True):
    """Statements, in the order in which they must be said, and the question that they answer."""

    category: str
    question: str
    statements: Sequence[Statement]
    answer: str = ""


def planted(rng: random.Random, words: Vocabulary, topic: TalkTopic, part: float) -> Iterator[Planted]:
    """Yield a random `part` (0 to 1) of what can be said about a topic."""
    for one in _all_of(rng, words, topic):
        if rng.random() < part:
            yield one


def _all_of(rng: random.Random, words: Vocabulary, topic: TalkTopic) -> Iterator[Planted]:
    yield from _facts(rng, words, topic)
    yield from _changes(rng, words, topic)
    for like in topic.likes:
        yield Planted("preference", rng.choice(like.asks), [Statement(rng.choice(like.says))])
    yield from _lists(rng, topic)
    yield from _events(rng, words, topic)
    steps = [Statement(text) for text in topic.steps]
    yield Planted("order", filled(rng.choice(words.order_asks), theme=topic.theme), steps)
    for problem, solution in rng.sample(topic.advice, ADVICE):
        reply = filled(rng.choice(words.assistant_says), problem=problem, solution=solution)
        told = Statement(filled(rng.choice(words.assistant_requests), problem=problem), problem, reply=reply)
        yield Planted("advice", filled(rng.choice(words.assistant_asks), problem=problem), [told], solution)
    for said, asked in topic.pairs:
        yield Planted("paraphrase", asked, [Statement(said)])


def _facts(rng: random.Random, words: Vocabulary, topic: TalkTopic) -> Iterator[Planted]:
    for frame in topic.facts:
        things = rng.sample(frame.x, min(THINGS, len(frame.x)))
        for x, v in zip(things, rng.sample(frame.v, len(things)), strict=True):
            told = Statement(filled(rng.choice(frame.says), x=x, v=v), x if frame.proper else words.article + x)
            yield Planted("single", filled(rng.choice(frame.asks), x=x), [told], v)


def _changes(rng: random.Random, words: Vocabulary, topic: TalkTopic) -> Iterator[Planted]:
    """Yield changed facts. Both versions are evidence: only both together show which is the newer one."""
    for frame in topic.changes:
        v, w = rng.sample(frame.values, 2)
        told = [
            Statement(filled(rng.choice(frame.first), v=v), frame.what),
            Statement(filled(rng.choice(frame.then), w=w), frame.what),
        ]
        asks = [*frame.asks, filled(rng.choice(words.change_asks), what=frame.what)]
        yield Planted("changed", rng.choice(asks), told, w)


def _lists(rng: random.Random, topic: TalkTopic) -> Iterator[Planted]:
    for frame in topic.lists:
        items = rng.sample(frame.items, rng.randint(LIST_MIN, min(LIST_MAX, len(frame.items))))
        told = [Statement(filled(rng.choice(frame.says), v=item), item) for item in items]
        yield Planted("list", rng.choice(frame.asks), told, ", ".join(items))


def _events(rng: random.Random, words: Vocabulary, topic: TalkTopic) -> Iterator[Planted]:
    for event, infinitive, past in rng.sample(topic.events, EVENTS):
        when = rng.choice(list(words.whens))
        said = filled(rng.choice(words.event_says), event=event, when=when)
        asked = filled(rng.choice(words.event_asks), event=infinitive, event_past=past)
        yield Planted("temporal", asked, [Statement(said, event=event, when=words.whens[when])])


def hops(rng: random.Random, words: Vocabulary, topics: Sequence[TalkTopic], count: int) -> Iterator[Planted]:
    """Yield `count` facts about people: a message names a person, and a later one says what is true of that person."""
    people = rng.sample(words.people, count)
    for name, relation in zip(people, rng.sample(words.relations, count), strict=True):
        frame = rng.choice(words.hops)
        noun = rng.choice(rng.choice(topics).nouns)
        v = rng.choice(frame.values)
        who = Statement(filled(rng.choice(words.introductions), name=name, relation=relation, n=noun), name)
        told = Statement(filled(rng.choice(frame.says), name=name, v=v), name)
        yield Planted("multi-hop", filled(rng.choice(frame.asks), relation=relation), [who, told], v)
