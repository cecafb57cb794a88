"""The ranking of recall memory in plain Python, for small logs and without caches: the reference for the searches."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from tests.laws.words_reference import query_words, words

HOUR_US = 3_600_000_000


class Message(NamedTuple):
    """One message; `life` distinguishes incarnations of an agent."""

    seq: int
    time: int
    role: str
    name: str
    text: str
    life: int


def sentences(text: str) -> tuple[str, str]:
    """Return all statements, and all questions."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    rest = text
    while rest:
        end = next((i for i, c in enumerate(rest) if c in ".!?[]"), len(rest))
        stop = next((i for i in range(end, len(rest)) if rest[i] not in ".!?]"), len(rest))
        parts[rest[:stop].rstrip().endswith("?")].append(rest[:stop])
        rest = rest[max(stop, 1) :] if stop or rest[0] != "[" else rest[1:]
    return " ".join(parts[False]), " ".join(parts[True])


def linked(messages: Sequence[Message], at: int) -> bool:
    """Return True if the message continues the one before."""
    if not at:
        return False
    one, before = messages[at], messages[at - 1]
    return one.life == before.life and one.time - before.time < HOUR_US


def document(messages: Sequence[Message], at: int) -> tuple[dict[str, float], set[str], set[str]]:
    """Return each stem's weight, the stems that make a result, and those of the speaker's name."""
    one = messages[at]
    day = datetime.fromtimestamp(one.time / 1_000_000, UTC)
    stated, asked = map(words, sentences(one.text))
    own = {*stated, *asked}
    told = [*((w, 1.0) for w in stated), *((w, 0.5) for w in asked), *((w, 1.0) for w in words(one.name))]
    told += [(w, 1.0) for w in words(f"{day:%B} {day.day} {day.year}")]
    if linked(messages, at):
        stated, asked = map(words, sentences(messages[at - 1].text))
        told += [*((w, 0.25) for w in stated), *((w, 1.0) for w in asked)]
        own |= set(asked)
    weights: dict[str, float] = {}
    for word, weight in told:
        weights[word] = weights.get(word, 0.0) + weight
    return weights, own, set(words(one.name))


def ranked(
    messages: Sequence[Message],
    query: str,
    *,
    roles: Sequence[str] = (),
    meanings: Mapping[int, float] | None = None,
) -> list[tuple[int, float]]:
    """Return seqs and scores of the messages of the last incarnation, best first. The query has no quotes."""
    life = messages[-1].life if messages else 0
    places = [at for at, one in enumerate(messages) if one.life == life]
    docs = {at: document(messages, at) for at in places}
    stems = query_words(query)
    names = {stem for _, _, speaker in docs.values() for stem in speaker} & stems
    length = {at: sum(weights.values()) for at, (weights, _, _) in docs.items()}
    average = max(sum(length.values()) / max(len(length), 1), 1)
    score = dict.fromkeys(places, 0.0)
    for stem in sorted(stems):
        having = [at for at in places if stem in docs[at][0]]
        rare = math.log(1 + (len(places) - len(having) + 0.5) / (len(having) + 0.5))
        for at in having:
            n = docs[at][0][stem]
            score[at] += rare * n * 1.9 / (n + 0.9 * (0.6 + 0.4 * length[at] / average))
    best = max(score.values(), default=0) or 1
    by = {at: bool(names & docs[at][2]) for at in places}
    told = {at: bool((stems - names) & set(docs[at][0])) for at in places}
    near = {at: meanings[messages[at].seq] for at in places if meanings and messages[at].seq in meanings}
    low, high = min(near.values(), default=0), max(near.values(), default=0)
    base = {}
    for at in places:
        meant = (near[at] - low) / (high - low) if at in near and high > low else 0.0
        base[at] = (score[at] / best + meant) / 2 if meanings else score[at] / best
        base[at] += 0.5 * by[at]
    beside = {
        at: [other for other, end in ((at - 1, at), (at + 1, at + 1)) if other in base and linked(messages, end)]
        for at in places
    }
    verbatim = {at: bool(query.strip()) and query.strip().lower() in messages[at].text.lower() for at in places}
    if any(score.values()):
        verbatim = {at: there and stems <= set(words(messages[at].text)) for at, there in verbatim.items()}
    final = {
        at: round(base[at] + 0.3 * max([base[other] for other in beside[at]], default=0.0) + 2 * verbatim[at], 6)
        for at in places
    }
    fits = [at for at in places if not roles or messages[at].role in roles]
    order = sorted(fits, key=lambda at: (-final[at], at))
    nearest = sorted((at for at in fits if at in near), key=lambda at: (-near[at], at))[:20]
    found = []
    for place, at in enumerate(order):
        spoken = by[at] and place < 20 and any(told[other] for other in [at, *beside[at]])
        named = names == stems and bool(stems & (docs[at][1] | docs[at][2]))
        if verbatim[at] or docs[at][1] & (stems - names) or at in nearest or spoken or named:
            found.append((messages[at].seq, final[at]))
    return found
