"""Make chats between a user and an assistant without a name who answers at length: scripted and seeded, with questions.

Used by `talk_kinds`. A user tells facts in short messages, over months and in many sessions, among long answers about
the same topics. The same language and seed give the same conversation on every machine.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from bench.talk.long_reply import Subject, long_reply, subject
from bench.talk.planted_facts import Planted, Statement, hops, planted
from bench.talk.talk_shapes import Conversation, TalkMessage, TalkQuestion
from bench.talk.vocabulary import TalkTopic, Vocabulary, contracted, filled, vocabulary
from everlog.events.times import since_epoch

CHATS = 4
"""Conversations of a language."""
TOPICS = 5
"""Topics of a conversation."""
START = datetime(2024, 1, 8, 8, tzinfo=UTC)
PARTS = (0.5, 0.75, 0.9, 1.0)
"""Part of what a topic offers that is told, one for each conversation: from 150 to 600 messages."""
QUOTED = 0.35
"""Part of the replies to a statement that repeat it word for word."""


class _Exchange(msgspec.Struct, frozen=True):
    """A message of the user that is to be said: its place in the course of the talk, and what it tells."""

    at: float
    """0 (inclusive) to 1 (exclusive)."""
    topic: TalkTopic
    told: Statement | None


class _Writer:
    """Writer of one conversation: messages in order, and where each statement was made."""

    def __init__(self, rng: random.Random, words: Vocabulary, plan: Sequence[tuple[TalkTopic, Planted]]) -> None:
        self.messages: list[TalkMessage] = []
        self.refs: dict[int, str] = {}
        """Ref of the evidence, by identity of the statement."""
        self.days: dict[int, datetime] = {}
        """Time of the message, by identity of the statement."""
        self._rng = rng
        self._words = words
        self._things: dict[str, list[str]] = defaultdict(list)
        """Things of which the user speaks, by theme."""
        self._events: dict[str, list[str]] = defaultdict(list)
        """Events that the user has told, by theme."""
        self._theme = ""
        for topic, one in plan:
            self._things[topic.theme] += {told.thing: 0 for told in one.statements if told.thing}

    def exchange(self, one: _Exchange, at: datetime) -> datetime:
        """Write a message of the user and the reply; return the time after it."""
        rng, told, theme = self._rng, one.told, one.topic.theme
        about = subject(rng, one.topic, self._things[theme])
        said = self._say("user", self._user_text(one, about), at)
        after = at + timedelta(seconds=rng.randint(5, 40))
        takes_up = self._takes_up(told, about.things)
        reply = long_reply(rng, self._words, about, takes_up, told.reply if told else "")
        replied = self._say("assistant", reply, after)
        if told:
            self.refs[id(told)] = replied if told.reply else said
            self.days[id(told)] = at
            self._events[theme] += [told.event] if told.event else []
        self._theme = theme
        return after + timedelta(seconds=rng.randint(30, 400))

    def _say(self, role: str, text: str, at: datetime) -> str:
        ref = f"m{len(self.messages) + 1}"
        self.messages.append(TalkMessage(role, "", contracted(self._words, text), since_epoch(at), ref))
        return ref

    def _takes_up(self, told: Statement | None, things: Sequence[str]) -> Sequence[str]:
        """Return the first sentences of a reply: they repeat what the user said, or speak of a thing."""
        rng, words = self._rng, self._words
        if told and not told.reply and rng.random() < QUOTED:
            return [filled(rng.choice(words.quotes), text=told.text)]
        thing = told.thing if told and rng.random() < 0.5 else ""
        if not thing and things and rng.random() < 0.3:
            thing = rng.choice(things)
        return [filled(rng.choice(words.echoes), v=thing)] if thing else []

    def _user_text(self, one: _Exchange, about: Subject) -> str:
        """Return the user's message: the statement alone, or with a request, or a message that tells nothing."""
        rng, words = self._rng, self._words
        request = filled(rng.choice(words.requests), **about.slots())
        if rng.random() < 0.3:
            more = filled(rng.choice(words.requests), **subject(rng, one.topic, ()).slots())
            request = words.joint.join([request, more])
        parts = [rng.choice(words.asides)] if rng.random() < 0.35 else []
        if one.told is None:
            return words.joint.join([*parts, *self._empty(one.topic.theme, about, request)])
        form = rng.random()
        if one.told.reply or form < 0.2:
            parts.append(one.told.text)
        else:
            parts += [one.told.text, request] if form < 0.6 else [request, one.told.text]
        return words.joint.join(parts)

    def _empty(self, theme: str, about: Subject, request: str) -> Sequence[str]:
        """Return the sentences of a message that tells nothing new."""
        rng, words, events = self._rng, self._words, self._events[theme]
        form = rng.random()
        if events and form < 0.3:
            return [filled(rng.choice(words.recalls), event=rng.choice(events)), request]
        if about.things and form < 0.75:
            return [filled(rng.choice(words.mentions), v=rng.choice(about.things)), request][: rng.randint(1, 2)]
        if self._theme == theme and form < 0.85:
            return [filled(rng.choice(words.follow_ups), **about.slots())]
        return [request]


def assistant_talk(language: str, number: int) -> Conversation:
    """Return conversation `number` (from 0) of a language of LANGUAGES."""
    words = vocabulary(language)
    rng = random.Random(f"{language} {number}")
    part = PARTS[number % len(PARTS)]
    topics = rng.sample(words.topics, TOPICS)
    plan = [(topic, one) for topic in topics for one in planted(rng, words, topic, part)]
    plan += [(rng.choice(topics), one) for one in hops(rng, words, topics, rng.randint(6, 10))]
    exchanges = sorted(_exchanges(rng, plan, topics), key=lambda one: one.at)
    writer = _Writer(rng, words, plan)
    at = START + timedelta(days=rng.randint(0, 60))
    for session in _sessions(rng, exchanges):
        for one in session:
            at = writer.exchange(one, at)
        at = (at + timedelta(days=rng.choice((1, 1, 2, 2, 3, 4, 6, 9)))).replace(
            hour=rng.randint(6, 21), minute=rng.randint(0, 59)
        )
    questions = [_question(one, writer, words) for _, one in plan]
    rng.shuffle(questions)
    return Conversation(f"assistant-{language}-{number}", writer.messages, questions)


def _exchanges(
    rng: random.Random, plan: Sequence[tuple[TalkTopic, Planted]], topics: Sequence[TalkTopic]
) -> Iterator[_Exchange]:
    """Yield an exchange for each statement, and as many that tell nothing. Statements of one plan keep their
    order.
    """
    total = 0
    for topic, one in plan:
        places = sorted(rng.random() for _ in one.statements)
        yield from (_Exchange(at, topic, told) for at, told in zip(places, one.statements, strict=True))
        total += len(places)
    yield from (_Exchange(rng.random(), rng.choice(topics), None) for _ in range(total))


def _sessions(rng: random.Random, exchanges: Sequence[_Exchange]) -> Iterator[Sequence[_Exchange]]:
    """Yield exchanges by session. In a session, those about one topic follow each other; each topic keeps its order."""
    first = 0
    while first < len(exchanges):
        some = exchanges[first : first + rng.randint(3, 10)]
        themes = list(dict.fromkeys(one.topic.theme for one in some))
        yield sorted(some, key=lambda one: themes.index(one.topic.theme))
        first += len(some)


def _question(one: Planted, writer: _Writer, words: Vocabulary) -> TalkQuestion:
    evidence = [writer.refs[id(told)] for told in one.statements]
    told = one.statements[0]
    answer = _date(told.when, writer.days[id(told)]) if told.when else one.answer
    refs = sorted(set(evidence), key=lambda ref: int(ref[1:]))
    return TalkQuestion(contracted(words, one.question), one.category, refs, answer)


def _date(rule: str, said: datetime) -> str:
    """Return the day that a relative date means, as YYYY-MM-DD."""
    kind, number = rule.split()
    back = int(number) if kind == "days" else (said.weekday() - int(number) - 1) % 7 + 1
    return (said - timedelta(days=back)).date().isoformat()
