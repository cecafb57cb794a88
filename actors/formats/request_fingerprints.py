"""Split a request into named parts, each with a short fingerprint: if a request that is rendered again differs, the
fingerprints show where.

Equal sha256 proves that two requests are equal. A fingerprint is a CRC-32 cut to six hexadecimal digits, which says
where to look and proves nothing: of sixteen million parts that differ, one has the same fingerprint. The parts come in
the order of the body: `prompt`, `header`, `block LABEL` for each block, `summary`, `messages` (the older ones,
together), each of the newest by its seq, `functions`, `options` (sampling settings and streaming, if set). A request
for a summary has `instructions`, `transcript` and `options`. Pure. Used by `model_step.py`, which records the
fingerprints, and by `replay/verify.py` and `request_diff.py`, which compare them: names, order and encoding must stay
those of older logs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any
from zlib import crc32

import msgspec

from everlog.actors.formats import render_request
from everlog.actors.prompt.context import Context

RECENT = 4
"""Number of newest chat messages with a fingerprint each: about as many as a step adds to the request before it."""

RequestParts = dict[str, bytes]

_json = msgspec.json.Encoder()


def of_request(
    context: Context, request: render_request.Request, newest: Collection[int] | None = None
) -> RequestParts:
    """Return the parts of a request for a reply. Every byte, apart from separators, is in some part.

    `newest`: the seqs with a part of their own; None: those of the last messages.
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
    """Return the seqs of records that are shown in more than one place."""
    runs = [seq for seq, _ in groupby(request.chat, key=itemgetter(0))]
    return {seq for seq, count in Counter(runs).items() if count > 1}


def singles(request: render_request.Request) -> dict[int, bytes]:
    """Return the bytes that show each record, by its seq."""
    found: dict[int, bytes] = {}
    for seq, message in request.chat[1:]:
        found[seq] = found.get(seq, b"") + _json.encode(message)
    return found


def _unused(name: str, found: RequestParts) -> str:
    """Return a part name that is not taken: a record that is shown in two places has two parts."""
    while name in found:
        name += "+"
    return name


def of_summary_request(parts: Iterable[tuple[str, str]]) -> RequestParts:
    """Return the parts of a request for a summary."""
    return {name: text.encode() for name, text in parts}


def fingerprint(part: bytes) -> str:
    """Return the fingerprint of a part: six hexadecimal digits."""
    return f"{crc32(part) & 0xFFFFFF:06x}"


def fingerprints(parts: Mapping[str, bytes]) -> dict[str, str]:
    """Return the fingerprint of each part."""
    return {name: (_shared if name in _SHARED else fingerprint)(part) for name, part in parts.items()}


_SHARED = ("prompt", "functions")
"""Parts that are large, and the same for many agents and in all of their calls: their fingerprints are cached."""
_shared = lru_cache(maxsize=256)(fingerprint)


def encode_fingerprints(marks: Mapping[str, str]) -> str:
    """Join fingerprints for the log into one text, which is decoded in a third of the time of an object."""
    return ", ".join([f"{name} {digits}" for name, digits in marks.items()])


def naming_fields(body: bytes, made_of: RequestParts) -> dict[str, Any]:
    """Return the fields by which a record names a request: hash, size and fingerprints."""
    return {
        "context_sha256": render_request.sha256(body),
        "context_bytes": len(body),
        "parts": encode_fingerprints(fingerprints(made_of)),
    }


def decode_fingerprints(written: str) -> dict[str, str]:
    """Parse fingerprints from the log, by part."""
    pairs = [pair.rsplit(" ", 1) for pair in written.split(", ")] if written else []
    return {pair[0]: pair[-1] for pair in pairs}
