"""The parts of a request by name, and a short mark of each: by them a request that is made again and differs says
where it does.

The proof that two requests are equal is their sha256. A mark is a CRC-32 cut to six digits, which says where to look
and proves nothing: of sixteen million parts that differ one has the mark of the other. The parts come in the order of
the body: `prompt`, `header`, `block LABEL` for each block, `summary`, `messages` (the older ones, together), each of
the newest by its seq, `functions`, `options` (how words are chosen, where the agent is set up so). A request for a
summary has `instructions`, `transcript` and `options`. Pure.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from zlib import crc32

import msgspec

from everlog.actors.formats import render_request
from everlog.actors.prompt.context import Context

RECENT = 4
"""Chat messages, from the newest, that are marked one by one: what a step adds to the request before it."""

RequestParts = dict[str, bytes]

_json = msgspec.json.Encoder()


def of_request(
    context: Context, request: render_request.Request, newest: Collection[int] | None = None
) -> RequestParts:
    """The parts of a request for a reply. Nothing but separators is in no part.

    `newest`: the seqs that are marked one by one; None: those of the last messages.
    """
    found = {name: text.encode() for name, text in request.system}
    chat = request.chat[1:]
    if chat and context.summary is not None and chat[0][0] == context.summary.seq:
        found["summary"] = _json.encode(chat.pop(0)[1])
    if newest is not None:
        chat = [*(m for m in chat if m[0] not in newest), *(m for m in chat if m[0] in newest)]
    old = max(0, len(chat) - RECENT) if newest is None else sum(seq not in newest for seq, _ in chat)
    while 0 < old < len(chat) and chat[old - 1][0] == chat[old][0]:
        old -= 1
    if old:
        found["messages"] = _json.encode([message for _, message in chat[:old]])
    for seq, some in groupby(chat[old:], key=itemgetter(0)):
        found[_unused(str(seq), found)] = _json.encode([message for _, message in some])
    if request.functions:
        found["functions"] = request.functions
    if request.options:
        found["options"] = request.options
    return found


def repeated_seqs(request: render_request.Request) -> set[int]:
    """Seqs of records that are shown in more than one place."""
    runs = [seq for seq, _ in groupby(request.chat, key=itemgetter(0))]
    return {seq for seq, count in Counter(runs).items() if count > 1}


def singles(request: render_request.Request) -> dict[int, bytes]:
    """What each record is shown as, by its seq."""
    found: dict[int, bytes] = {}
    for seq, message in request.chat[1:]:
        found[seq] = found.get(seq, b"") + _json.encode(message)
    return found


def _unused(name: str, found: RequestParts) -> str:
    """A record that is shown in two places has a name for each."""
    while name in found:
        name += "+"
    return name


def of_summary_request(parts: Iterable[tuple[str, str]]) -> RequestParts:
    """The parts of a request for a summary."""
    return {name: text.encode() for name, text in parts}


def fingerprint(part: bytes) -> str:
    """Six hexadecimal digits."""
    return f"{crc32(part) & 0xFFFFFF:06x}"


def fingerprints(parts: Mapping[str, bytes]) -> dict[str, str]:
    """The mark of each part."""
    return {name: (_shared if name in _SHARED else fingerprint)(part) for name, part in parts.items()}


_SHARED = ("prompt", "functions")
"""Large, and the same for many agents and in all of their calls."""
_shared = lru_cache(maxsize=256)(fingerprint)


def encode_fingerprints(marks: Mapping[str, str]) -> str:
    """Marks as the log keeps them: one text, which is read in a third of the time that an object takes."""
    return ", ".join([f"{name} {digits}" for name, digits in marks.items()])


def decode_fingerprints(written: str) -> dict[str, str]:
    """Marks by part, from the log."""
    pairs = [pair.rsplit(" ", 1) for pair in written.split(", ")] if written else []
    return {pair[0]: pair[-1] for pair in pairs}
