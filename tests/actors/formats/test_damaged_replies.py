"""Randomly damaged replies raise no errors but everlog's own, and a reading that is marked as lossless is lossless."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from everlog.actors.formats import call_extraction, json_repair, parse_reply
from everlog.actors.formats import repair_steps as ladder
from everlog.actors.formats.json_repair import _JsonRepairer
from everlog.events import ModelError
from tests.support.models.damaged_replies import (
    arguments_of,
    body,
    cut,
    damaged,
    is_whole,
    lie,
    read,
    truth,
    undoable,
    unescaped,
    unstructured,
)
from tests.support.seeds import seeds

SEED = 20_261
FEW = 7_000
MANY = 1_000_000


def undone(chance: random.Random) -> str | None:
    """Reversible damage leaves a reading that is the intended one and is marked as lossless."""
    one = truth(chance)
    text = undoable(one, chance)
    reply = read(one, text)
    fine = not reply.lossy and is_whole(one, reply)
    return (
        None if fine else f"{one.preferred_format}, {one.dialect}: {text!r} was read as {reply.repair!r}, {reply.calls}"
    )


def structural(chance: random.Random) -> str | None:
    """With one structural character removed, a lossless reading equals the intended reply."""
    one = truth(chance)
    text = unstructured(one.text, chance)
    reply = read(one, text)
    if reply.lossy or not reply.calls or arguments_of(reply) is None or is_whole(one, reply):
        return None
    return f"{one.preferred_format}, {one.dialect}: {text!r} was read as {reply.repair!r}, {reply.calls}"


def quoted(chance: random.Random) -> str | None:
    """With unescaped quotes inside texts, a lossless reading equals the intended reply."""
    one = truth(chance)
    text = unescaped(one.text, chance)
    reply = read(one, text)
    if reply.lossy or not reply.calls or arguments_of(reply) is None or is_whole(one, reply):
        return None
    return f"{one.preferred_format}, {one.dialect}: {text!r} was read as {reply.repair!r}, {reply.calls}"


def short(chance: random.Random) -> str | None:
    """If the server reports a truncated reply, a lossless reading equals the complete intended reply."""
    one = truth(chance)
    text = cut(one.text, chance)
    reply = read(one, text, "length")
    if reply.lossy or not reply.calls or arguments_of(reply) is None or is_whole(one, reply):
        return None
    if one.dialect in ("hermes", "list"):  # a call that was complete before the cut
        return None
    return f"{one.preferred_format}, {one.dialect}: {text!r} was read as {reply.repair!r}, {reply.calls}"


def anything(chance: random.Random) -> str | None:
    """A lossless reading of a reply with any damage contains all of the reply's content and nothing else."""
    one = truth(chance)
    text = damaged(one.text, chance)
    reply = read(one, text)
    found = lie(one, text, reply)
    return (
        None
        if found is None
        else f"{one.preferred_format}, {one.dialect}: {text!r}: {found}; {reply.repair!r}, {reply.calls}"
    )


def answers(chance: random.Random) -> str | None:
    """A damaged server response is read, or refused with a ModelError."""
    one = truth(chance)
    raw = damaged(body(one, one.text), chance)
    try:
        reply = parse_reply.reply(raw, 8192, one.preferred_format)
        parse_reply.said(raw)
        parse_reply.words(raw, 8192)
    except ModelError:
        return None
    assert reply.raw == raw
    return None


PROPERTIES = (undone, structural, quoted, short, anything, anything, answers)


def faults(count: int, seed: int, some: tuple[Callable[[random.Random], str | None], ...] = PROPERTIES) -> list[str]:
    """Return the faults that `count` damaged replies reveal."""
    chance = random.Random(seed)
    found = (some[number % len(some)](chance) for number in range(count))
    return [fault for fault in found if fault is not None]


def test_lossless_readings_are_lossless() -> None:
    """Seven thousand replies in all calling formats and many templates give no fault."""
    assert faults(FEW, seeds(1, label="damaged replies")[0]) == []


@pytest.mark.long
@pytest.mark.models
def test_a_million_lossless_readings_are_lossless() -> None:
    """A million damaged replies give no fault."""
    assert faults(MANY, SEED + 1) == []


def test_the_damaged_replies_cover_all_cases() -> None:
    """Damaged replies of each calling format include lossless, lossy and unreadable ones, and need every repair step:
    no property holds merely because its case never occurs.
    """
    chance = random.Random(SEED)
    seen: Counter[tuple[str, bool, bool]] = Counter()
    repairs: Counter[str] = Counter()
    for _ in range(3000):
        one = truth(chance)
        reply = read(one, damaged(one.text, chance) if chance.random() < 0.6 else undoable(one, chance))
        seen[one.preferred_format, reply.lossy, bool(reply.repair)] += 1
        repairs.update(reply.repair.split(", "))
    for way in ("native", "schema", "text"):
        assert all(seen[way, lossy, repaired] > 20 for lossy, repaired in ((False, False), (False, True), (True, True)))
    expected = {*ladder.LOSSLESS, *ladder.LOSSY} - {"stop", "names", "content", "flat", "nested"}
    assert sorted(expected - set(repairs)) == []


def says_nothing_of(*names: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a patch under which the reader does not report these repair steps as lossy."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ladder, "LOSSY", {k: v for k, v in ladder.LOSSY.items() if k not in names})

    return patch


def loses_accents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the reader to strip non-ASCII text from repaired JSON, as MemGPT does."""
    run = _JsonRepairer.run

    def stripped(mender: _JsonRepairer) -> json_repair.RepairedJson:
        done = run(mender)
        text = json.dumps(done.value, ensure_ascii=False).encode("ascii", "ignore").decode()
        return msgspec.structs.replace(done, value=json.loads(text))

    monkeypatch.setattr(_JsonRepairer, "run", stripped)


def drops_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the reader to drop quotes inside a text without a notice, as MemGPT does."""
    says_nothing_of("inner")(monkeypatch)
    string = _JsonRepairer._string
    monkeypatch.setattr(_JsonRepairer, "_string", lambda mender, follows: string(mender, follows).replace('"', ""))


def takes_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the reader to keep only the first of several objects, as MemGPT does."""
    scanned = call_extraction._scanned

    def first(text: str) -> tuple[list[dict[str, object]], str, list[str]]:
        values, words, repairs = scanned(text)
        return values[:1], words, [repair_step for repair_step in repairs if repair_step != "several"]

    monkeypatch.setattr(call_extraction, "_scanned", first)


def leaks_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the reader to move a comma before a brace into the text, as MemGPT does."""
    run = _JsonRepairer.run

    def leaked(mender: _JsonRepairer) -> json_repair.RepairedJson:
        done = run(mender)
        if "comma" not in done.repairs:
            return done
        text = re.sub(r'"\}', ',"}', json.dumps(done.value), count=1)
        return msgspec.structs.replace(done, value=json.loads(text))

    monkeypatch.setattr(_JsonRepairer, "run", leaked)


LIARS = [
    *(pytest.param(says_nothing_of(name), id=name) for name in ("cut", "inner", "bare", "around", "quotes")),
    loses_accents, drops_quotes, takes_the_first, leaks_commas,
]  # fmt: skip


@pytest.mark.parametrize("liar", LIARS)
def test_a_reader_that_hides_losses_is_detected(
    liar: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that loses something and reports a lossless reading violates one of the properties above."""
    liar(monkeypatch)
    assert any(faults(300, SEED + number) for number in range(8))
