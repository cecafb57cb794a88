"""Read the body of an answer as it arrives: a stream of events or one JSON text, whichever the server sends. Pure.

Deltas and texts leave this file without the key, even if the endpoint repeats the key over several chunks. Used by
`openai_client.py` and `probe_http.py`.
"""

import codecs
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from everlog.actors.models.classify_failure import KEPT, broken_off
from everlog.actors.models.failure_classes import cure_of
from everlog.actors.models.stream_assembly import DONE, CompletionChunk, StreamAssembler, chunk_of
from everlog.actors.ports.agent_constants import REPLY_BYTES_MAX
from everlog.actors.ports.effects import DeltaCallback, ReplyDelta
from everlog.events import BadReply

_WHOLE = (b"{", b"[", b"<", b'"')
"""Beginnings of a body that is no stream, whatever its header says."""
_STREAM = (b":", b"d", b"e", b"i", b"r")
"""Beginnings of a stream: a comment, `data`, `event`, `id` or `retry`."""

ERROR = b"error"
"""Name of an event that says that the rest of the reply will not come."""

KEY_SHOWN = "[key]"
"""Replacement for a key."""

SECRET_CHARS_MIN = 16
"""Minimum characters of a key that is removed. Real keys are longer; a local server's "none" or "test" is a normal
word.
"""


def redact_key(text: str, key: str) -> str:
    """Return `text` without the key, which the endpoint may have repeated."""
    return text.replace(key, KEY_SHOWN) if len(key) >= SECRET_CHARS_MIN else text


class ResponseReader:
    """Reader of one answer."""

    __slots__ = (
        "_chunks",
        "_clean",
        "_events",
        "_name",
        "_on_delta",
        "_parts",
        "_size",
        "_streamed",
        "_typed",
        "_url",
        "done",
    )

    def __init__(
        self, name: str, url: str, clean: Callable[[str], str], on_delta: DeltaCallback | None, content_type: str
    ) -> None:
        """`clean` removes the key from a text; `content_type` is the body's type by its header."""
        self._name, self._url, self._clean, self._on_delta = name, url, clean, on_delta
        self._typed = content_type.startswith("text/event-stream")
        self._events: SseDecoder | None = None
        self._streamed = StreamAssembler()
        self._parts: list[bytes] = []
        """Parts of the body; for a stream, those before its first chunk."""
        self._size = self._chunks = 0
        self.done = False
        """True if the stream said that nothing more comes."""

    def is_whole(self) -> bool:
        """Return True if the body is a stream whose reply is complete. Call this when nothing more comes."""
        if self._events is not None and not self.done:
            for name, data in self._events.end():
                self._take(name, data, last=True)
        return self.done or self._streamed.finish is not None

    @property
    def chunks(self) -> int:
        """Number of events that were parts of the reply. Comments do not count."""
        return self._chunks

    @property
    def streams(self) -> bool:
        """True if the body is a stream, as far as it was read."""
        return self._events is not None

    def feed(self, part: bytes) -> None:
        """Take one more part of the body. Raise ModelError for an event that says that the rest will not come."""
        self._size += len(part)
        # Without the limit a server that never ends would fill the memory of the gateway, and with it stop every agent.
        if self._size > REPLY_BYTES_MAX:
            raise self._garbage(f"did not come to an end in {REPLY_BYTES_MAX:,} bytes")
        if not self._parts and not self.streams:
            part = part.lstrip()
            first = part[:1]
            if first and first not in _WHOLE and (self._typed or first in _STREAM):
                self._events = SseDecoder()
        if self._events is None:
            if part:
                self._parts.append(part)
            return
        if not self._streamed.begun:
            self._parts.append(part)
        for name, data in self._events.feed(part):
            self._take(name, data)

    def end(self) -> str:
        """Return the completion. Raise ModelError if the body ended before the completion did."""
        if self._events is None:
            text = self.so_far()
            if self._typed and not text:
                raise self.truncated_error("ended before the reply began")
            if text.startswith('{"error"'):
                raise self._broken_off_error(text)
            if text.startswith("{") and _is_truncated(text):  # without a length the end of a connection is no mark
                raise self.truncated_error("ended in the middle of its JSON text")
            return text
        if self.is_whole():
            return self.so_far()
        if not self._streamed.begun:
            raise self._garbage("did not answer with a chat completion, but with a stream without one")
        raise self.truncated_error("ended before the reply did")

    def so_far(self) -> str:
        """Return the body so far, without the key; a stream is returned as one completion."""
        if self._streamed.begun:
            return self._clean(self._streamed.raw())
        return self._clean(b"".join(self._parts).decode("utf-8", "replace"))

    def truncated_error(self, how: str, kind: str = "cut") -> BadReply:
        """Return the error for an answer that does not reach its end."""
        cure = cure_of(kind, self._name)
        return BadReply(f"The answer of the model endpoint {self._url} {how}. {cure}{KEPT}", self.so_far(), kind=kind)

    def _take(self, name: bytes, data: bytes, *, last: bool = False) -> None:
        """Handle one event. `last`: the event may be truncated, and is then ignored."""
        if self.done or not data:
            return
        if data == DONE:
            self.done = True
            return
        if name == ERROR:
            raise self._broken_off_error(data.decode("utf-8", "replace"))
        try:
            chunk = chunk_of(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            if last:
                return
            raise self._garbage(
                f"sent an event that is no part of a chat completion ({error}): {data[:200]!r}"
            ) from error
        if chunk.is_error:
            raise self._broken_off_error(data.decode("utf-8", "replace"))
        self._say(chunk)

    def _say(self, chunk: CompletionChunk) -> None:
        self._chunks += 1
        for piece in self._streamed.take(chunk):
            if self._on_delta is not None:
                self._on_delta(piece)
        if self._parts:
            self._parts.clear()

    def _broken_off_error(self, error: str) -> Exception:
        return broken_off(self._clean(error), self.so_far(), name=self._name, url=self._url)

    def _garbage(self, what: str) -> BadReply:
        cure = cure_of("garbage", self._name)
        return BadReply(self._clean(f"The model endpoint {self._url} {what}. {cure}{KEPT}"), self.so_far())


def _is_truncated(text: str) -> bool:
    """Return True if a JSON text ends before its value does."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return "truncated" in str(error)
    return False


class SseDecoder:
    """Decoder of the server-sent events of one stream, from parts of any size.
    An event is its name (often empty) and data.
    """

    __slots__ = ("_begun", "_data", "_name", "_rest")

    def __init__(self) -> None:
        self._begun = False
        self._rest = b""
        """Beginning of a line whose end has not arrived."""
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the events that end in this part.
        Comments, which servers send to keep a connection open, are skipped.
        """
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            yield from self._line(line)

    def end(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what is left when nothing more comes: some servers omit the last end of line."""
        yield from self._line(self._rest)
        yield from self._line(b"")
        self._rest = b""

    def _line(self, line: bytes) -> Iterator[tuple[bytes, bytes]]:
        if line.endswith(b"\r"):
            line = line[:-1]
        if not self._begun:
            line, self._begun = line.removeprefix(codecs.BOM_UTF8), True
        if not line:
            if self._data:
                yield self._name, b"\n".join(self._data)
            self._name, self._data = b"", []
            return
        field, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        elif field == ERROR:  # older llama.cpp
            self._name = ERROR
            self._data.append(value)


class KeyRedactor:
    """Filter that passes deltas on without the key.
    The end of a delta that may begin the key waits for the next delta.
    """

    __slots__ = ("_held", "_key", "_on_delta")

    def __init__(self, on_delta: DeltaCallback, key: str) -> None:
        """Pass deltas to `on_delta`. An empty `key` turns the filter off."""
        self._on_delta, self._key = on_delta, key
        self._held = ReplyDelta()
        """Held back part, as a delta of its own."""

    def feed(self, piece: ReplyDelta) -> None:
        """Pass on the next delta."""
        if not self._key:
            self._on_delta(piece)
            return
        # Text held back belongs to the delta's own call: it must go out before another call begins.
        if piece.restart or piece.name or piece.call != self._held.call:
            self.end()
        text, text_left = self._parted(self._held.text + piece.text)
        arguments, arguments_left = self._parted(self._held.arguments + piece.arguments)
        self._held = ReplyDelta(text_left, piece.call, arguments=arguments_left)
        safe = replace(piece, text=text, name=piece.name.replace(self._key, KEY_SHOWN), arguments=arguments)
        if safe != ReplyDelta(call=piece.call):
            self._on_delta(safe)

    def end(self) -> None:
        """Pass on what was held back: nothing more comes, so it was not the key."""
        held, self._held = self._held, ReplyDelta()
        if held.text or held.arguments:
            self._on_delta(held)

    def _parted(self, text: str) -> tuple[str, str]:
        """Split a text into the part that can be passed on, and an end with which the key may begin."""
        clean = text.replace(self._key, KEY_SHOWN)
        for size in range(min(len(self._key) - 1, len(clean)), 0, -1):
            if clean.endswith(self._key[:size]):
                return clean[:-size], clean[-size:]
        return clean, ""
