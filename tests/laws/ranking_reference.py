"""The ranking of recall memory in plain Python, for small logs and without caches: the reference for the searches."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from everlog.projections.search import ranking
from everlog.projections.search.query_dates import query_spans
from everlog.projections.search.query_shape import is_to_assistant, times_asked_for
from everlog.store.embedding.chunks import passages
from tests.laws.words_reference import query_words, words

HOUR_US = 3_600_000_000
Weigh = Callable[[int], float]


class Message(NamedTuple):
    """One message; `life` distinguishes incarnations of an agent."""

    seq: int
    time: int
    role: str
    name: str
    text: str
    life: int


def sentences(text: str) -> tuple[list[str], list[str]]:
    """Return the words of all statements, and of all questions."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    rest = text
    while rest:
        end = next((i for i, c in enumerate(rest) if c in ".!?[]"), len(rest))
        stop = next((i for i in range(end, len(rest)) if rest[i] not in ".!?]"), len(rest))
        parts[rest[:stop].rstrip().endswith("?")].append(rest[:stop])
        rest = rest[max(stop, 1) :] if stop or rest[0] != "[" else rest[1:]
    return words(" ".join(parts[False])), words(" ".join(parts[True]))


def rarity(count: int, having: int) -> float:
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def bm25(rare: float, times: float, length: float, average: float) -> float:
    return rare * times * 1.9 / (times + 0.9 * (0.6 + 0.4 * length / max(average, 1)))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class Talk:
    """Messages of the last incarnation, and a query."""

    def __init__(self, messages: Sequence[Message], query: str, meanings: Mapping[int, float] | None) -> None:
        self.said = [one for one in messages if one.life == messages[-1].life]
        self.all = range(len(self.said))
        self.query = query
        self.near = None if meanings is None else [meanings[one.seq] for one in self.said]
        self.units = [[sentences(part) for part in passages(one.text)] for one in self.said]
        self.stated = [[word for stated, _ in units for word in stated] for units in self.units]
        self.asked = [[word for _, asked in units for word in asked] for units in self.units]
        self.chars = [len(one.text) for one in self.said]
        self.linked = [at > 0 and self.said[at].time - self.said[at - 1].time < HOUR_US for at in self.all]
        self.lends = [min(1, 300 / max(chars, 1)) for chars in self.chars]
        self.replies = [self.linked[at] and self.chars[at] < 300 for at in self.all]
        self.sessions = [sum(not on for on in self.linked[: at + 1]) - 1 for at in self.all]
        stems = query_words(query)
        spoken = {word for one in self.said for word in words(one.name)}
        self.names = stems & spoken
        self.stems = stems
        self.topics = sorted((stems - spoken) or stems)
        self.unit_count = sum(map(len, self.units))
        self.rare = {
            word: rarity(
                self.unit_count, sum(word in stated + asked for units in self.units for stated, asked in units)
            )
            for word in self.topics
        }
        self.topics = [word for word in self.topics if any(word in self.words(at) for at in self.all)]
        self.total = sum(self.rare[word] for word in self.topics) or 1
        self.named = [bool(self.names & set(words(one.name))) for one in self.said]
        self.nameless = [one.role == "assistant" and not one.name for one in self.said]

    def words(self, at: int) -> list[str]:
        return self.stated[at] + self.asked[at]

    def before(self, at: int, value: Weigh) -> float:
        return value(at - 1) if self.linked[at] else 0.0

    def after(self, at: int, value: Weigh) -> float:
        return value(at + 1) if at + 1 < len(self.said) and self.linked[at + 1] else 0.0

    def lent(self, at: int, stated: Sequence[str], asked: Sequence[str], word: str | None = None) -> float:
        """Return the weight of a word, or of all, that a message lends to a reply."""
        stated, asked = ([one for one in some if word in (None, one)] for some in (stated, asked))
        return (0.25 * len(stated) + len(asked)) * self.lends[at]

    def units_score(self, at: int, *, joined: bool) -> float:
        """Return BM25 of the best unit of a message, with what is lent to it or without."""
        best = 0.0
        for number, (stated, asked) in enumerate(self.units[at]):
            total = 0.0
            for word in self.topics:
                times = stated.count(word) + 0.5 * asked.count(word)
                if joined and number == 0 and self.replies[at]:
                    times += self.lent(at - 1, self.stated[at - 1], self.asked[at - 1], word)
                length = self.length(at, number, joined=joined)
                total += bm25(self.rare[word], times, length, self.average[joined])
            best = max(best, total)
        return best / self.total

    def length(self, at: int, number: int, *, joined: bool) -> float:
        stated, asked = self.units[at][number]
        lent = 0.0
        if joined and number == 0 and self.replies[at]:
            lent = self.lent(at - 1, self.stated[at - 1], self.asked[at - 1])
        return len(stated) + len(asked) + lent

    @cached_property
    def average(self) -> dict[bool, float]:
        return {
            joined: mean([self.length(at, n, joined=joined) for at in self.all for n in range(len(self.units[at]))])
            for joined in (False, True)
        }

    def covered(self, at: int, *, near: bool) -> float:
        found = set(self.words(at))
        if near and self.linked[at]:
            found |= set(self.words(at - 1))
        if near and at + 1 < len(self.said) and self.linked[at + 1]:
            found |= set(self.words(at + 1))
        return sum(self.rare[word] for word in self.topics if word in found) / self.total

    def asked_score(self, at: int) -> float:
        average = mean([len(self.words(other)) for other in self.all])
        found = [
            bm25(self.rare[word], self.asked[at].count(word), len(self.words(at)), average) for word in self.topics
        ]
        return sum(found) / self.total * self.lends[at]

    def session_score(self, session: int) -> float:
        told: dict[int, list[str]] = {number: [] for number in self.sessions}
        for at in self.all:
            told[self.sessions[at]] += self.words(at)
        average = mean([len(words) for words in told.values()])
        found = 0.0
        for word in self.topics:
            having = sum(word in words for words in told.values())
            rare = rarity(len(told), having)
            found += bm25(rare, told[session].count(word), len(told[session]), average)
        return found

    def relative(self, value: Weigh) -> list[float]:
        values = [value(at) for at in self.all]
        best = max(values)
        return [one / best if best > 0 else 0.0 for one in values]

    def asking(self, at: int) -> float:
        return len(self.asked[at]) / max(len(self.words(at)), 1)

    def date(self, at: int) -> float:
        best = 0.0
        for span in query_spans(self.query, self.said[-1].time):
            time = self.said[at].time
            rise = (time - (span.begin - span.slack_before)) / span.slack_before
            fall = (span.end - 1 + span.slack_after - time) / span.slack_after
            best = max(best, min(rise, fall, 1))
        return best

    @cached_property
    def outstanding(self) -> list[float]:
        near = self.near or []
        low, average, high = min(near), mean(near), max(near)
        return [max(one - average, 0) / (high - average) if high > low else 0.0 for one in near]

    @cached_property
    def meaning(self) -> list[float]:
        near = self.near or []
        low, high = min(near), max(near)
        return [(one - low) / (high - low) if high > low else 0.0 for one in near]


def features(talk: Talk) -> list[dict[str, float]]:
    """Return the features of each message."""
    document = [talk.units_score(at, joined=True) for at in talk.all]
    alone = [talk.units_score(at, joined=False) for at in talk.all]
    relative, session = (
        talk.relative(document.__getitem__),
        talk.relative(lambda at: talk.session_score(talk.sessions[at])),
    )
    nameless = [talk.chars[at] for at in talk.all if talk.nameless[at]]
    lengthy = bool(nameless) and mean(nameless) >= 300
    base = [0.5 * (a + b) for a, b in zip(relative, talk.meaning, strict=True)] if talk.near else relative
    times = set(times_asked_for(talk.query))
    found = []
    for at in talk.all:
        by, stated, spoken = talk.named[at], 1 - talk.asking(at), set(talk.words(at))
        two_before = talk.before(at, lambda before: talk.before(before, alone.__getitem__))
        two_after = talk.after(at, lambda after: talk.after(after, alone.__getitem__))
        user = float(lengthy and not talk.nameless[at])
        one = {
            "document": document[at], "relative": relative[at], "covered": talk.covered(at, near=False),
            "covered_near": talk.covered(at, near=True), "asked_before": talk.before(at, talk.asked_score),
            "two_away": max(two_before, two_after), "session": session[at], "named": float(by),
            "named_states": by * stated, "named_document": by * document[at],
            "named_other": float(bool(talk.said[at].name and talk.names and not by)), "user_lengthy": user,
            "user_document": user * document[at],
            "asked_assistant": float(talk.nameless[at] and is_to_assistant(talk.query)), "asking": talk.asking(at),
            "tells_time": float(bool(spoken & times)), "date": talk.date(at),
            "neighbour": max(talk.before(at, base.__getitem__), talk.after(at, base.__getitem__)),
        }  # fmt: skip
        if talk.near:
            together = [other for other in talk.all if talk.sessions[other] == talk.sessions[at]]
            one |= {
                "meaning": talk.meaning[at], "outstanding": talk.outstanding[at],
                "meaning_after": talk.after(at, talk.outstanding.__getitem__),
                "meaning_session": max(talk.outstanding[other] for other in together),
            }  # fmt: skip
        found.append(one)
    return found


def ranked(
    messages: Sequence[Message], query: str, *, roles: Sequence[str] = (), meanings: Mapping[int, float] | None = None
) -> list[tuple[int, float]]:
    """Return seqs and scores of the messages of the last incarnation, best first. The query has no quotes."""
    if not messages:
        return []
    talk = Talk(messages, query, meanings)
    measured = features(talk)
    by = ranking.weights(by_meaning=talk.near is not None)
    topical = {
        at for at in talk.all if set(talk.topics) & {*talk.words(at), *(talk.asked[at - 1] if talk.replies[at] else ())}
    }
    text = query.strip().lower()
    verbatim = {at for at in talk.all if text and text in talk.said[at].text.lower()}
    complete = {at for at in talk.all if talk.stems and talk.stems <= set(talk.words(at))}
    if topical or complete:
        verbatim &= complete
    fits = [at for at in talk.all if not roles or talk.said[at].role in roles]
    first = [
        round(sum(ranking.FIXED_WEIGHTS.get(name, 0) * value for name, value in measured[at].items()), 6)
        for at in talk.all
    ]
    candidates = set(sorted(fits, key=lambda at: (-first[at], at))[: ranking.CANDIDATES])
    scores = []
    for at in talk.all:
        score = sum(by[name] * value for name, value in measured[at].items())
        scores.append(round(score + 100 * (at in verbatim) - 100 * (at not in candidates), 6))
    results = topical | verbatim
    if not topical:
        results |= {at for at in talk.all if talk.named[at]}
    if talk.near:
        near = talk.near
        results |= set(sorted(fits, key=lambda at: (-near[at], at))[:100])
    results &= set(fits)
    others = [at for at in fits if measured[at]["session"] > 0 or talk.named[at]]
    results |= set(sorted(others, key=lambda at: (-scores[at], at))[:50])
    return [(talk.said[at].seq, scores[at]) for at in sorted(results, key=lambda at: (-scores[at], at))]
