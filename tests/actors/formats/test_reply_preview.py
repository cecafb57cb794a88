"""Previews of a streamed reply: always a beginning of the text that is read in the end."""

import json
import random
from collections.abc import Iterator, Sequence
from time import process_time
from typing import Any

import pytest

from everlog.actors.formats import call_arguments as given
from everlog.actors.formats.repair_steps import is_lossy
from everlog.actors.formats.reply_preview import ReplyPreview
from everlog.actors.ports.effects import ReplyDelta

WORDS = ["Ahoy", "\U0001f600", "é", '"', "\\", "\n", "\t", " ", "{", "}", "[", ":", "\\u00e9", "\x7f", "日本", "/", ","]
"""Text parts: characters that must be escaped, that may be escaped, and that look like JSON."""


def texts(chance: random.Random) -> str:
    return "".join(chance.choice(WORDS) for _ in range(chance.randrange(12)))


def values(chance: random.Random, depth: int = 0) -> Any:
    """Return random JSON, which may hold the reader's keys at places where they have no meaning."""
    kind = chance.randrange(6 if depth < 3 else 4)
    if kind == 4:
        return [values(chance, depth + 1) for _ in range(chance.randrange(3))]
    if kind == 5:
        keys = ["message", "params", "function", "inner_thoughts", texts(chance)]
        return {chance.choice(keys): values(chance, depth + 1) for _ in range(chance.randrange(3))}
    return [texts(chance), chance.random() * 1e9 - 5e8, chance.choice([True, False, None]), chance.randrange(99)][kind]


def split(text: str, chance: random.Random) -> Iterator[str]:
    """Yield the text in random parts of a few characters."""
    at = 0
    while at < len(text):
        size = chance.choice((1, 1, 2, 3, 7, 40))
        yield text[at : at + size]
        at += size


def written(value: Any, chance: random.Random) -> str:
    """Return the value as JSON in one of several valid spellings."""
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5, indent=chance.choice((None, None, 2)))
    return text.replace("/", "\\/") if chance.random() < 0.2 else text


def heard(reply: ReplyPreview, pieces: Sequence[ReplyDelta]) -> tuple[str, str, list[str]]:
    """Return the previewed thought and message, and the kinds of all previews in order."""
    found = [one for piece in pieces for one in reply.read(piece)]
    said = {kind: "".join(text for k, text in found if k == kind) for kind in ("thought", "message")}
    return said["thought"], said["message"], [kind for kind, _ in found]


def shuffled(items: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    keys = list(items)
    chance.shuffle(keys)
    return {key: items[key] for key in keys}


def arguments(chance: random.Random) -> dict[str, Any]:
    more = {f"more_{number}": values(chance) for number in range(chance.randrange(3))}
    return shuffled({"message": texts(chance), **more}, chance)


@pytest.mark.parametrize("seed", range(10))
def test_the_message_of_a_call_is_previewed_whole_for_any_split(seed: int) -> None:
    """All previews together equal the `message` argument; calls of other functions have no preview."""
    chance = random.Random(seed)
    given, name = arguments(chance), chance.choice(["send_message", "send_message", "archival_memory_insert"])
    text = written(given, chance)
    pieces = [ReplyDelta(call=0, name=name), *(ReplyDelta(call=0, arguments=part) for part in split(text, chance))]
    _, message, kinds = heard(ReplyPreview("native"), pieces)
    assert message == (given["message"] if name == "send_message" else "")
    assert kinds.count("end") == (name == "send_message")


@pytest.mark.parametrize("seed", range(10))
def test_a_reply_of_one_object_is_previewed_whole_for_any_split(seed: int) -> None:
    """The preview of thought and message is complete in both the `schema` and the `text` format, with the fields in any
    order.
    """
    chance = random.Random(seed)
    name = chance.choice(["send_message", "send_message", "core_memory_append"])
    thought, given = texts(chance), arguments(chance)
    inside = chance.random() < 0.5
    params = shuffled({"inner_thoughts": thought, **given}, chance) if inside else given
    outer = {"function": name, "params": params}
    text = written(shuffled(outer if inside else {"inner_thoughts": thought, **outer}, chance), chance)
    if chance.random() < 0.3:
        text = f"```json\n{text}\n```"
    pieces = [ReplyDelta(text=part) for part in split(text, chance)]
    told, message, _ = heard(ReplyPreview("text" if inside else "schema"), pieces)
    assert told == thought
    assert message == (given["message"] if name == "send_message" else "")


def damaged(text: str, chance: random.Random) -> str:
    """Return the text with a random part removed, inserted or repeated, or with its end cut off."""
    at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    more = chance.choice(['"', "\\", "\\_", "{", "}", "\n", "\\ud83d", ',"message":"x"', "'", ""])
    return chance.choice([text[:at], text[:at] + more + text[at:], text[:at] + text[to:], text[:to] + text[at:]])


@pytest.mark.parametrize("seed", range(10))
def test_the_preview_of_a_damaged_call_agrees_with_its_reading(seed: int) -> None:
    """If the arguments can be read without a guess, the previews since the last restart are the beginning of the value.
    Lossy arguments are not compared: the model is asked again.
    """
    chance = random.Random(seed)
    checked = 0
    for _ in range(300):
        text = damaged(written(arguments(chance), chance), chance)
        pieces = [
            ReplyDelta(call=0, name="send_message"),
            *(ReplyDelta(call=0, arguments=part) for part in split(text, chance)),
        ]
        reply = ReplyPreview("native")
        found = [one for piece in pieces for one in reply.read(piece)]
        begun = max((n + 1 for n, (kind, _) in enumerate(found) if kind == "restart"), default=0)
        message = "".join(part for kind, part in found[begun:] if kind == "message")
        try:
            read = given.arguments(text)
        except (ValueError, TypeError):
            continue
        if is_lossy(read.repairs):
            continue
        final = read.value.get("message")
        if isinstance(final, str):
            checked += 1
            assert final.startswith(message), text
        else:
            assert not message, text
    assert checked > 20


def test_a_repeated_key_restarts_the_preview() -> None:
    """A second `message` key restarts the preview, and its value is shown only at the end, because a third key could
    follow.
    """
    parts = ['{"message": "Yes", ', '"message": "No", "message": "Perhaps"}']
    pieces = [ReplyDelta(call=0, name="send_message"), *(ReplyDelta(call=0, arguments=part) for part in parts)]
    _, message, kinds = heard(ReplyPreview("native"), pieces)
    assert (message, kinds) == ("Yes", ["message", "end", "restart"])


@pytest.mark.parametrize("seed", range(10))
def test_raw_line_breaks_are_previewed(seed: int) -> None:
    """Raw line breaks, which small models often leave unescaped, are previewed as line breaks."""
    chance = random.Random(seed)
    wanted = "".join(chance.choice(["\n", "\t", "\\", '"', "Ahoy", "\x01"]) for _ in range(20)) + "."
    text = (
        json.dumps({"message": wanted}, indent=2).replace("\\n", "\n").replace("\\t", "\t").replace("\\u0001", "\x01")
    )
    pieces = [
        ReplyDelta(call=0, name="send_message"),
        *(ReplyDelta(call=0, arguments=part) for part in split(text, chance)),
    ]
    assert heard(ReplyPreview("native"), pieces)[1] == wanted


def test_a_preview_stops_where_a_call_may_begin() -> None:
    """The preview of a thought stops where a call or a delimiter may begin."""
    for text in ("I greet <tool_call>{}", "I greet [TOOL_CALLS]", "I greet ```"):
        assert heard(ReplyPreview("native"), [ReplyDelta(text=part) for part in text])[0] == "I greet"


def test_several_calls_are_several_messages() -> None:
    """Each message is previewed with an end after it; calls of other functions in between have no preview."""
    calls = [("send_message", "One"), ("conversation_search", "no"), ("send_message", "Two")]
    pieces = [ReplyDelta(text="Hm.")]
    for number, (name, text) in enumerate(calls):
        pieces += [ReplyDelta(call=number, name=name), ReplyDelta(call=number, arguments=json.dumps({"message": text}))]
    assert heard(ReplyPreview("native"), pieces) == ("Hm.", "OneTwo", ["thought", "message", "end", "message", "end"])


@pytest.mark.long
@pytest.mark.models
def test_reading_a_stream_takes_linear_time() -> None:
    """A message ten times as long, read one character at a time, takes about ten times as long; so does deep
    nesting.
    """

    def seconds(text: str) -> float:
        reply, begun = ReplyPreview("native"), process_time()
        list(reply.read(ReplyDelta(call=0, name="send_message")))
        for character in text:
            list(reply.read(ReplyDelta(call=0, arguments=character)))
        return process_time() - begun

    for make in (lambda n: json.dumps({"message": "\n" * n}), lambda n: '{"x":' * n, lambda n: '{"x":' + "1" * n):
        short, long = min(seconds(make(2000)) for _ in range(3)), seconds(make(20_000))
        assert long < 30 * short
