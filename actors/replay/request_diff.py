"""Where a request that is made again differs from what was sent: the first part of it, and what is known of that. Pure.

The bytes of then are not in the log. What is: their sha256, a mark of each part, and the records they were made of. So
which part differs first is known; what it said then is known where some other text has the mark of then, and is shown
as such. Else today's words are shown against the nearest that is known: the same part of the last call whose sha256 is
the same, or the words of the record.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha256

import msgspec

from everlog.actors.formats.request_fingerprints import RequestParts, fingerprint, fingerprints
from everlog.actors.prompt.context import Context, ContextMessage
from everlog.actors.replay.replay_report import RequestDiff

LINES_MAX = 12
"""Of a difference that is shown."""
SHOWN_CHARS = 110
"""Of one line."""
BEFORE_CHARS = 30
"""Of a long line, before what differs."""


class RebuiltRequest(msgspec.Struct, frozen=True):
    """A request as it is made today."""

    seq: int
    """Of its record."""
    context: Context
    parts: RequestParts
    singles: Mapping[int, bytes]
    """What each record is shown as, by its seq."""
    schemas: Mapping[str, str]


def difference(
    then: Mapping[str, str], now: RebuiltRequest, matched: RebuiltRequest | None, seen: Mapping[int, str]
) -> RequestDiff:
    """The first part that differs, from the marks of `then`. `seen`: marks of single messages in earlier requests."""
    today = fingerprints(now.parts)
    changed = [name for name in _merged_names(list(then), list(today)) if then.get(name) != today.get(name)]
    if not changed:
        return _order_diff(list(then), list(today))
    names = [_describe_item(name, now, matched, seen) for name in changed]
    words, name = [_part_label(name, now) for name in names], names[0]
    against, known = _describe_part(name, then.get(changed[0]), now, matched)
    lines = diff_lines(known, _text(name, now) or "") if known is not None else _said(name, then, now)
    return RequestDiff(part=words[0], also=words[1:], against=against, lines=lines)


def _merged_names(then: Sequence[str], today: Sequence[str]) -> list[str]:
    """The names of both in the order of the body, those that are gone where they stood."""
    found = list(today)
    for place, name in enumerate(then):
        if name not in found:
            before = then[place - 1] if place else None
            found.insert(found.index(before) + 1 if before in found else 0, name)
    return found


def _order_diff(then: Sequence[str], today: Sequence[str]) -> RequestDiff:
    """All parts are the same, and the whole is not: their order, or what joins them, is another."""
    for old, new in zip(then, today, strict=True):
        if old != new:
            lines = [f"- {', '.join(then)}", f"+ {', '.join(today)}"]
            return RequestDiff(part=f"the order of its parts, at {old!r}", against="the order of then", lines=lines)
    return RequestDiff(part="what joins its parts, which are all the same")


def _part_label(name: str, now: RebuiltRequest) -> str:
    """A part, as people call it."""
    if name.startswith("block "):
        return f"the memory block {name.removeprefix('block ')!r}"
    if name.startswith("function "):
        return f"the schema of the function {name.removeprefix('function ')!r}"
    if (seq := name.rstrip("+")).isdecimal():
        kind = next((m.event.kind for m in now.context.messages if m.seq == int(seq)), "gone today")
        return f"the message of record {seq} ({kind})"
    plain = {"prompt": "system prompt", "header": "memory header", "messages": "older messages"}
    return f"the {plain.get(name, name)}"


def _describe_item(name: str, now: RebuiltRequest, matched: RebuiltRequest | None, seen: Mapping[int, str]) -> str:
    """One function, or one message, where it is known to be that one."""
    if name == "functions":
        for function in now.context.config.functions:
            if sha256(now.schemas[function.sha256].encode()).hexdigest() != function.sha256:
                return f"function {function.name}"
    if name == "messages":
        same = matched.singles if matched else {}
        for seq, part in now.singles.items():
            if (
                seq in seen
                and fingerprint(part) != seen[seq]
                and same.get(seq) != part
                and seq not in now.context.trims
            ):
                return str(seq)
    return name


def _text(name: str, made: RebuiltRequest) -> str | None:
    """A part of a request in words; None where it has no such part."""
    if name.startswith("function "):
        named = {function.name: function.sha256 for function in made.context.config.functions}
        return made.schemas.get(named.get(name.removeprefix("function "), ""))
    part = made.parts.get(name, made.singles.get(int(name)) if name.isdecimal() else None)
    return None if part is None else part.decode(errors="replace")


def _describe_part(
    name: str, then: str | None, now: RebuiltRequest, matched: RebuiltRequest | None
) -> tuple[str, str | None]:
    """What today's words are held against, in words, and itself; None where nothing is known."""
    today = _text(name, now)
    if then is None or today is None:
        return "", None
    old = _text(name, matched) if matched is not None else None
    if matched is not None and old is not None and old != today:
        said = fingerprint(old.encode()) == then
        what = "what it said then, as it did" if said else "the same part of the last call that is equal,"
        return f"{what} at seq {matched.seq}", old
    recorded = _recorded(name, now.context)
    return ("the words in the log", recorded) if recorded and recorded != today else ("", None)


def _recorded(name: str, context: Context) -> str | None:
    """The words of the record that a part was made of."""
    if name == "prompt":
        return context.config.text
    if name == "summary":
        return context.summary.event.text if context.summary else None
    if name.startswith("block "):
        return next((b.value for b in context.blocks if f"block {b.label}" == name), None)
    found: ContextMessage | None = next((m for m in context.messages if str(m.seq) == name.rstrip("+")), None)
    return found.event.text if found else None


def _said(name: str, then: Mapping[str, str], now: RebuiltRequest) -> list[str]:
    today = _text(name, now)
    if today is None:
        return ["  It was in the request of then, and is not in today's."]
    known = name in then or name not in now.parts
    told = "What it said then is not known. Today it says:" if known else "It was not in the request of then. Today:"
    return [f"  {told}", *diff_lines("", today)]


def diff_lines(known: str, now: str) -> list[str]:
    """What differs between two texts, line by line, each line cut to where it differs."""
    ours, theirs = ([line for line in text.splitlines() if line] for text in (known, now))
    found: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            found.extend(_replaced(ours[a:b], theirs[c:d]))
    rest = len(found) - LINES_MAX
    return found if rest <= 0 else [*found[:LINES_MAX], f"  ... and {rest:,} lines more"]


def _replaced(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    for place in range(max(len(ours), len(theirs))):
        old = ours[place] if place < len(ours) else None
        new = theirs[place] if place < len(theirs) else None
        common = _common(old or "", new or "")
        if old is not None:
            yield f"- {_truncate_line(old, common)}"
        if new is not None:
            yield f"+ {_truncate_line(new, common)}"


def _common(one: str, other: str) -> int:
    """Characters that both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _truncate_line(line: str, common: int) -> str:
    start = max(0, common - BEFORE_CHARS) if len(line) > SHOWN_CHARS else 0
    end = start + SHOWN_CHARS
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
