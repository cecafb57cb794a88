"""Find where a request differs that is rendered again: the first differing part, and what is known of its old text.
Pure.

The bytes that were sent are not in the log. The log has their sha256, a fingerprint of each part, and the records that
they were made of. So the first differing part is known. Its old text is known only if some other text has the recorded
fingerprint; that text is shown as the recorded one. Otherwise today's text is shown against the nearest known text: the
same part of the last call whose sha256 matches, or the text of the record. Used by `verify.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import sha256

import msgspec

from everlog.actors.formats.request_fingerprints import RequestParts, fingerprint, fingerprints
from everlog.actors.prompt.context import Context, ContextMessage
from everlog.actors.replay.replay_report import RequestDiff

LINES_MAX = 12
"""Maximum lines of a difference that are shown."""
SHOWN_CHARS = 110
"""Maximum characters of one line that are shown."""
BEFORE_CHARS = 30
"""Characters of a long line that are shown before its first difference."""


class RebuiltRequest(msgspec.Struct, frozen=True):
    """Request as it is rendered today."""

    seq: int
    """Seq of the record that the call left."""
    context: Context
    parts: RequestParts
    singles: Mapping[int, bytes]
    """Text that each record is shown as, by its seq."""
    schemas: Mapping[str, str]


def difference(
    then: Mapping[str, str], now: RebuiltRequest, matched: RebuiltRequest | None, seen: Mapping[int, str]
) -> RequestDiff:
    """Return the first differing part, found by the recorded fingerprints `then`.

    `matched`: the last call whose request is the same. `seen`: fingerprints of single messages in earlier requests.
    """
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
    """Return the names of both in the order of the body. A name that is gone stays where it was."""
    found = list(today)
    for place, name in enumerate(then):
        if name not in found:
            before = then[place - 1] if place else None
            found.insert(found.index(before) + 1 if before in found else 0, name)
    return found


def _order_diff(then: Sequence[str], today: Sequence[str]) -> RequestDiff:
    """Describe requests with the same parts that differ as a whole:
    in the order of the parts, or in what joins them.
    """
    for old, new in zip(then, today, strict=True):
        if old != new:
            lines = [f"- {', '.join(then)}", f"+ {', '.join(today)}"]
            return RequestDiff(part=f"the order of its parts, at {old!r}", against="the recorded order", lines=lines)
    return RequestDiff(part="the text between its parts, which are all the same")


def _part_label(name: str, now: RebuiltRequest) -> str:
    """Return the name of a part for people."""
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
    """Return the one function or message in which `functions` or `messages` differ, if it is known;
    otherwise `name`.
    """
    if name == "functions":
        for function in now.context.config.functions:
            if sha256(now.schemas[function.sha256].encode()).hexdigest() != function.sha256:
                return f"function {function.name}"
    if name == "messages":
        same = matched.singles if matched else {}
        trimmed = {message.seq for message in now.context.messages if message.shown_chars is not None}
        for seq, part in now.singles.items():
            if seq in seen and fingerprint(part) != seen[seq] and same.get(seq) != part and seq not in trimmed:
                return str(seq)
    return name


def _text(name: str, made: RebuiltRequest) -> str | None:
    """Return the text of a part; None if the request has no such part."""
    if name.startswith("function "):
        named = {function.name: function.sha256 for function in made.context.config.functions}
        return made.schemas.get(named.get(name.removeprefix("function "), ""))
    part = made.parts.get(name, made.singles.get(int(name)) if name.isdecimal() else None)
    return None if part is None else part.decode(errors="replace")


def _describe_part(
    name: str, then: str | None, now: RebuiltRequest, matched: RebuiltRequest | None
) -> tuple[str, str | None]:
    """Return a description of the text that today's text is compared with, and that text; None if no text is known."""
    today = _text(name, now)
    if then is None or today is None:
        return "", None
    old = _text(name, matched) if matched is not None else None
    if matched is not None and old is not None and old != today:
        # A fingerprint equal to the recorded one proves that the matched call's text is the recorded text.
        said = fingerprint(old.encode()) == then
        what = "the recorded text, found" if said else "the same part of the last matching call,"
        return f"{what} at seq {matched.seq}", old
    recorded = _recorded(name, now.context)
    return ("the text in the log", recorded) if recorded and recorded != today else ("", None)


def _recorded(name: str, context: Context) -> str | None:
    """Return the text of the record that a part was made of."""
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
        return ["  It was in the recorded request, and is not in today's."]
    known = name in then or name not in now.parts
    note = "Its recorded text is not known. Today's text:" if known else "It was not in the recorded request. Today:"
    return [f"  {note}", *diff_lines("", today)]


def diff_lines(known: str, now: str) -> list[str]:
    """Return the differences of two texts line by line, each line truncated around the first difference."""
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
    """Return the number of characters with which both texts begin."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _truncate_line(line: str, common: int) -> str:
    start = max(0, common - BEFORE_CHARS) if len(line) > SHOWN_CHARS else 0
    end = start + SHOWN_CHARS
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
