"""Hold the outcome of a call to a server, and render what the server answered as text for a model. Pure.

Blobs stay out of the context: of an image the model reads its type and size.
"""

from typing import Any

import msgspec

TEXT_CHARS_MAX = 100_000
"""Characters of an answer that are read; the model is shown the first of these only, as of every function."""


class Answer(msgspec.Struct, frozen=True):
    """Answer of a server to a call."""

    text: str
    ok: bool = True
    """False: the server says that the call failed."""


class LostReply(Exception):
    """The connection ended, or time was over, before the answer of a request came: it may have been carried out."""


class RefusedRequest(Exception):
    """The server, or everlog, refused a request. Nothing was done."""


class UnreadableReply(Exception):
    """The server answered something that is no answer to the request."""


def blob_text(kind: str, media: str | None, base64: str, where: str = "") -> str:
    """Return the words that stand for a blob. `where`: its address, if it has one."""
    size = max(0, len(base64) * 3 // 4 - base64[-2:].count("="))
    place = f" at {where}" if where else ""
    return f"[{kind}{place}: {media or 'of unknown type'}, {size:,} bytes, which are not shown]"


def answer_text(parts: list[str], structured: Any) -> str:
    """Return the text of an answer. The structured result is added if none of the parts says the same."""
    if structured is not None and not any(_says(part, structured) for part in parts):
        parts = [*parts, msgspec.json.encode(structured).decode()]
    return "\n".join(parts)[:TEXT_CHARS_MAX]


def _says(part: str, structured: Any) -> bool:
    """Return True if a text is the structured result: as JSON, or as the one text in it."""
    whole = [structured, *(structured.values() if isinstance(structured, dict) and len(structured) == 1 else ())]
    if part in whole:
        return True
    try:
        return msgspec.json.decode(part) in whole
    except (msgspec.DecodeError, RecursionError):
        return False
