"""Randomly damaged replies of models, and a check of a reading that does not use the reader: all letters of the reply
must be in the reading, and every text of the reading must be quoted in the reply.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import msgspec

from everlog.actors.formats import parse_reply
from everlog.events import ModelReply

Calls = Sequence[tuple[str, dict[str, Any]]]


class Truth(msgspec.Struct, frozen=True):
    """A model's intended reply, and its text."""

    preferred_format: str
    dialect: str
    text: str
    thought: str
    calls: Calls


THOUGHTS = ["They sail.", 'A "quoted" word, {braces} and C:\\path.', "Übermorgen 🌊; eh?", "Line one.\nLine two."]
MESSAGES = [
    "Hi!",
    'She said "yes", then: {no}.',
    "two\nlines, [a] 'b'",
    "snake_case_name",
    "Grüße 👋",
    "50% at 10:30",
    "use <s>x</s>",
    "The </think> tag.",
    'Say "```hello``` to me',
]
DIALECTS = {
    "text": ("compact", "indented", "list", "inside", "flat"),
    "schema": ("compact", "indented", "inside", "flat"),
    "native": ("arguments", "hermes", "mistral", "llama", "inside"),
}


def truth(chance: random.Random, way: str | None = None) -> Truth:
    """Return a random intended reply, in one of the formats and dialects."""
    way = way or chance.choice(list(DIALECTS))
    dialect = chance.choice(DIALECTS[way])
    calls: list[tuple[str, dict[str, Any]]] = [("send_message", {"message": chance.choice(MESSAGES)})]
    if chance.random() < 0.5 or dialect == "list":
        more = {"name": "human", "content": chance.choice(MESSAGES), "page": 12, "request_heartbeat": True}
        calls = [("core_memory_append", more), *(calls if dialect in ("list", "hermes") else [])]
    if dialect == "flat":
        calls = [("timer_cancel", {"id": "t1", "type": "daily", "content": chance.choice(MESSAGES)})]
    thought = "" if way == "native" or dialect in ("inside", "flat") else chance.choice(THOUGHTS)
    return Truth(way, dialect, _written(way, dialect, thought, calls, chance), thought, calls)


def _written(way: str, dialect: str, thought: str, calls: Calls, chance: random.Random) -> str:
    ascii_only = chance.random() < 0.5
    if dialect == "arguments":
        return json.dumps(calls[0][1], ensure_ascii=ascii_only)
    if dialect == "inside":
        return json.dumps(_inside(*calls[0], chance), ensure_ascii=ascii_only)
    if dialect == "flat":
        return json.dumps({"function": calls[0][0], **calls[0][1]}, ensure_ascii=ascii_only)
    if way == "native":
        objects = [json.dumps({"name": n, "arguments": a}, ensure_ascii=ascii_only) for n, a in calls]
        marked = {"mistral": f"[TOOL_CALLS][{objects[0]}]", "llama": f"<|python_tag|>{objects[0]}"}
        return marked.get(dialect) or "\n".join(f"<tool_call>\n{one}\n</tool_call>" for one in objects)
    said: list[dict[str, Any]] = []
    for number, (name, params) in enumerate(calls):
        own = "" if number else thought
        if way == "text":
            said.append({"function": name, "params": {"inner_thoughts": own, **params}})
        else:
            said.append({"inner_thoughts": own, "function": name, "params": params})
    indent = 2 if dialect == "indented" else None
    return json.dumps(said if dialect == "list" else said[0], ensure_ascii=ascii_only, indent=indent)


def _inside(name: str, arguments: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return a call as an object in an object, which share some field names."""
    inner: dict[str, Any] = {}
    outer: dict[str, Any] = {}
    for side in (inner, outer):
        side.update({"id": chance.choice(("id", "name"))} if chance.random() < 0.5 else {})
        side.update({"type": "function"} if chance.random() < 0.5 else {})
    if chance.random() < 0.5:
        outer["name"] = name
    return {**outer, "function": {**inner, "name": name, "arguments": arguments}}


def body(one: Truth, text: str, finish: str = "stop") -> str:
    """Return the server's response that contains the text."""
    if one.preferred_format == "text":
        choice: dict[str, Any] = {"text": text}
    elif one.dialect == "arguments":
        called = {"id": "a", "type": "function", "function": {"name": one.calls[0][0], "arguments": text}}
        choice = {"message": {"role": "assistant", "content": None, "tool_calls": [called]}}
    else:
        choice = {"message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    return json.dumps({"choices": [{**choice, "finish_reason": finish}], "usage": usage}, ensure_ascii=False)


def read(one: Truth, text: str, finish: str = "stop") -> ModelReply:
    return parse_reply.reply(body(one, text, finish), 8192, one.preferred_format)


def arguments_of(reply: ModelReply) -> list[dict[str, Any]] | None:
    """Return the arguments of the calls as they would be run; None if one cannot be read."""
    try:
        return [parse_reply.arguments(call.arguments) for call in reply.calls]
    except (ValueError, TypeError):
        return None


def is_whole(one: Truth, reply: ModelReply, *, thought: bool = True) -> bool:
    """Return True if the reading is the intended reply."""
    names = [call.name for call in reply.calls] == [name for name, _ in one.calls]
    same = arguments_of(reply) == [arguments for _, arguments in one.calls]
    return names and same and (not thought or one.thought in reply.text)


# Damage that can be undone: the reading must be the intended reply, and be marked as lossless.


def fence(text: str, _: random.Random) -> str:
    return f"```json\n{text}\n```"


def words(text: str, _: random.Random) -> str:
    return f"Sure, here it is:\n{text}\nDone."


def unclosed(text: str, chance: random.Random) -> str:
    """Remove some of the closing braces at the end, after a text or a word."""
    bare = text.rstrip("} \n")
    closers = text[len(bare) :]
    gone = chance.randint(1, max(1, closers.count("}")))
    while gone and closers:
        gone -= closers[-1] == "}"
        closers = closers[:-1]
    return bare + closers if bare[-1:] != "]" and not bare[-1:].isdigit() else text


def comma(text: str, _: random.Random) -> str:
    """Insert a comma before a closing brace."""
    places = [place for place in outside_strings(text) if text[place] in "}]"]
    return f"{text[: places[0]]},{text[places[0] :]}" if places else text


def breaks(text: str, _: random.Random) -> str:
    return re.sub(r"(?<!\\)\\n", "\n", text)


def underscores(text: str, _: random.Random) -> str:
    return re.sub(r"snake_case_name", r"snake\\_case\\_name", text)


def think(text: str, _: random.Random) -> str:
    return f"<think>I could {{ say }} no.</think>\n{text}"


def braces(text: str, _: random.Random) -> str:
    return text + "}"


UNDONE: Sequence[Callable[[str, random.Random], str]] = (unclosed, comma, breaks, underscores, fence, words)
"""Damages that can be combined, in the order in which they are applied."""


def undoable(one: Truth, chance: random.Random) -> str:
    """Return the text after one or several damages that can be undone."""
    if one.dialect == "inside" and one.preferred_format == "native":
        return one.text
    if one.dialect in ("hermes", "mistral", "llama"):
        return chance.choice((breaks, underscores))(one.text, chance)
    done = [change for change in UNDONE if chance.random() < 0.35]
    if one.dialect == "list":
        done = [change for change in done if change in (breaks, underscores)]
    if words in done:
        done = [change for change in done if change not in (fence, unclosed)]
    text = one.text
    for change in done:
        text = change(text, chance)
    if one.preferred_format != "native" and chance.random() < 0.2:
        text = think(text, chance)
    if not done and one.dialect != "list" and chance.random() < 0.2:
        text = braces(text, chance)
    return text


# Damage that cannot be undone: the reading must be marked as lossy, or depend only on the remaining text.


def outside_strings(text: str) -> list[int]:
    """Return the positions of the characters of JSON outside strings."""
    inside = {place for match in re.finditer(r'"(?:[^"\\]|\\.)*"', text) for place in range(*match.span())}
    return [place for place in range(len(text)) if place not in inside]


def unstructured(text: str, chance: random.Random) -> str:
    """Remove one structural character: a brace, a bracket, a colon, a comma or a quote."""
    quotes = [match.span() for match in re.finditer(r'"(?:[^"\\]|\\.)*"', text)]
    places = [place for place in outside_strings(text) if text[place] in "{}[]:,"]
    places += [place for begin, end in quotes for place in (begin, end - 1)]
    place = chance.choice(places) if places else 0
    return text[:place] + text[place + 1 :]


def cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text))]


def beheaded(text: str, chance: random.Random) -> str:
    return text[chance.randrange(len(text)) :]


def swapped(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text) - 1)
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def gone(text: str, chance: random.Random) -> str:
    begin = chance.randrange(len(text))
    return text[:begin] + text[begin + chance.randint(1, 12) :]


def put(text: str, chance: random.Random) -> str:
    piece = chance.choice(['"', "'", "{", "}", "[", "]", ",", ":", "\\", "\n", "True", "```", "\\u12", "<think>", "0"])
    place = chance.randrange(len(text))
    return text[:place] + piece + text[place:]


def doubled(text: str, chance: random.Random) -> str:
    begin = chance.randrange(len(text))
    return text + text[begin:] if chance.random() < 0.5 else text[:begin] + text[begin : begin + 20] + text[begin:]


def unescaped(text: str, _: random.Random) -> str:
    """Remove the backslashes before quotes inside texts."""
    return text.replace('\\"', '"')


def wordless(text: str, _: random.Random) -> str:
    """Replace a monologue by a number."""
    return re.sub(r'("inner_thoughts":\s*)"(?:[^"\\]|\\.)*"', r"\g<1>7", text)


def requoted(text: str, chance: random.Random) -> str:
    return text.replace('\\"', '"') if chance.random() < 0.5 else text.replace('"', "'").replace("true", "True")


DAMAGE: Sequence[Callable[[str, random.Random], str]] = (
    unstructured, cut, beheaded, swapped, gone, put, doubled, requoted, wordless,
)  # fmt: skip


def damaged(text: str, chance: random.Random) -> str:
    """Return the text after one to three kinds of damage."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if len(text) > 2:
            text = chance.choice(DAMAGE)(text, chance)
    return text


# Conditions for a reading that is marked as lossless.

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ID = re.compile(r'"id"\s*:\s*"[^"]*"')
_LETTERS = re.compile(r"\w")
_WORDS = ("function", "params", "inner_thoughts", "name", "arguments", "args", "null", "None", "type", "id", "none")
_MARKS = {
    "think": ("<think>", "</think>"),
    "tags": ("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|python_tag|>"),
    "fence": ("```json",),
}
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': "\ue000"}


def _decoded(text: str) -> str:
    """Return the text with escapes decoded; escaped quotes become another character than quotes that end a text."""

    def plain(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else _PLAIN.get(code, code)

    return _ESCAPE.sub(plain, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def lie(one: Truth, text: str, reply: ModelReply) -> str | None:
    """Return why a reading of damaged text cannot be lossless; None if it can. Independent of the reader."""
    arguments = arguments_of(reply)
    if reply.lossy or arguments is None or not reply.calls:
        return None
    if "stop" in reply.repair:
        text = text.removeprefix("<|im_start|>assistant\n")
        text = re.split(r"<\|im_(?:start|end)\|>", text)[0]
    if one.dialect == "arguments" and ("words" in reply.repair or "fence" in reply.repair):
        text = text[text.find("{") :] if "closed" in reply.repair else text[text.find("{") : text.rfind("}") + 1]
    for repair_step, marks in _MARKS.items():
        for mark in marks if repair_step in reply.repair else ():
            text = text.replace(mark, " ", 1 if repair_step == "think" else -1)
    decoded = _decoded(_decoded(text)) if "nested" in reply.repair else _decoded(text)
    for said in _strings(arguments):
        if "nested" not in reply.repair and f'"{said}"'.replace('"', "\ue000")[1:-1] not in decoded:
            return f"{said!r} is not in what was written"
        if "nested" not in reply.repair and '"' + said.replace('"', "\ue000") + '"' not in decoded:
            return f"{said!r} does not stand between quotes in what was written"
    return _unconserved(one, decoded, reply, arguments)


def _unconserved(one: Truth, decoded: str, reply: ModelReply, arguments: Sequence[Any]) -> str | None:
    found = Counter(_LETTERS.findall(reply.text + _plain(arguments)))
    if one.dialect != "arguments":
        found.update(_LETTERS.findall("".join(call.name for call in reply.calls)))
    written = Counter(_LETTERS.findall(decoded))
    if found - written:
        return f"letters that nobody wrote: {dict(found - written)}"
    rest = written - found
    names: list[str] = []
    if one.dialect == "inside":
        names = [one.calls[0][0]]
        bare = Counter(_LETTERS.findall(_ID.sub('"id"', decoded)))  # a server may invent any id for a call
        if bare & found != found or not _explained(bare - found, decoded, (*_WORDS, *names)):
            bare = written
        rest = bare - found
    return None if _explained(rest, decoded, (*_WORDS, *names)) else f"letters that are lost: {dict(rest)}"


def _explained(rest: Counter[str], decoded: str, words: Sequence[str]) -> bool:
    """Return True if the rest of the letters consists of the format's own words."""
    counts = [min(decoded.count(word), 4) for word in words]
    if not rest:
        return True
    there = [(Counter(word), count) for word, count in zip(words, counts, strict=True) if count]
    for times in product(*(range(count, -1, -1) for _, count in there)):
        total: Counter[str] = Counter()
        for (letters, _), number in zip(there, times, strict=True):
            for letter, many in letters.items():
                total[letter] += many * number
        if {k: v for k, v in total.items() if v} == dict(rest):
            return True
    return False


def _plain(value: Any) -> str:
    """Return the content of a value as text, without quotes or escapes."""
    if isinstance(value, dict):
        return " ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return value if isinstance(value, str) else json.dumps(value)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str):
        yield value
