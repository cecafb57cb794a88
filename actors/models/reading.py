"""The body of an answer, read as it comes: a stream of events or one JSON text, whichever the server sends. Pure."""

from collections.abc import Callable

import msgspec

from everlog.actors.models.failures import cure_of
from everlog.actors.models.refusals import KEPT, broken_off
from everlog.actors.models.sse import ERROR, Events
from everlog.actors.models.streamed import DONE, Chunk, Streamed, chunk_of
from everlog.actors.ports.constants import REPLY_BYTES_MAX
from everlog.actors.ports.effects import Hear
from everlog.events import BadReply

_WHOLE = (b"{", b"[", b"<", b'"')
"""How a body begins that is no stream, whatever its header says."""
_STREAM = (b":", b"d", b"e", b"i", b"r")
"""How one begins that is: with a comment, `data`, `event`, `id` or `retry`."""


class Reading:
    """What has come of one answer."""

    __slots__ = (
        "_chunks",
        "_clean",
        "_events",
        "_hear",
        "_name",
        "_parts",
        "_size",
        "_streamed",
        "_typed",
        "_url",
        "done",
    )

    def __init__(self, name: str, url: str, clean: Callable[[str], str], hear: Hear | None, content_type: str) -> None:
        """`clean` takes the key out of a text; `content_type` is what the server says of the body."""
        self._name, self._url, self._clean, self._hear = name, url, clean, hear
        self._typed = content_type.startswith("text/event-stream")
        self._events: Events | None = None
        self._streamed = Streamed()
        self._parts: list[bytes] = []
        """The body; of a stream, what came before its first chunk."""
        self._size = self._chunks = 0
        self.done = False
        """The stream says that nothing more comes."""

    def is_whole(self) -> bool:
        """Whether it is a stream whose reply has ended, now that nothing more comes."""
        if self._events is not None and not self.done:
            for name, data in self._events.end():
                self._take(name, data, last=True)
        return self.done or self._streamed.finish is not None

    @property
    def chunks(self) -> int:
        """How many events of the stream were parts of a reply. Comments are none."""
        return self._chunks

    @property
    def streams(self) -> bool:
        """Whether it is a stream, as far as has come."""
        return self._events is not None

    def feed(self, part: bytes) -> None:
        """One more part of the body. Raises ModelError for an event that says that the rest will not come."""
        self._size += len(part)
        if self._size > REPLY_BYTES_MAX:
            raise self._garbage(f"did not come to an end in {REPLY_BYTES_MAX:,} bytes")
        if not self._parts and not self.streams:
            part = part.lstrip()
            first = part[:1]
            if first and first not in _WHOLE and (self._typed or first in _STREAM):
                self._events = Events()
        if self._events is None:
            if part:
                self._parts.append(part)
            return
        if not self._streamed.begun:
            self._parts.append(part)
        for name, data in self._events.feed(part):
            self._take(name, data)

    def end(self) -> str:
        """The completion. Raises ModelError where the body ended before it did."""
        if self._events is None:
            text = self.so_far()
            if self._typed and not text:
                raise self.cut("ended before the reply began")
            if text.startswith('{"error"'):
                raise self._told(text)
            return text
        if self.is_whole():
            return self.so_far()
        if not self._streamed.begun:
            raise self._garbage("did not answer with a chat completion, but with a stream without one")
        raise self.cut("ended before the reply did")

    def so_far(self) -> str:
        """What has come, without the key: of a stream, put together."""
        if self._streamed.begun:
            return self._clean(self._streamed.raw())
        return self._clean(b"".join(self._parts).decode("utf-8", "replace"))

    def cut(self, how: str, kind: str = "cut") -> BadReply:
        """The error of an answer that does not come to its end."""
        cure = cure_of(kind, self._name)
        return BadReply(f"The answer of the model endpoint {self._url} {how}. {cure}{KEPT}", self.so_far(), kind=kind)

    def _take(self, name: bytes, data: bytes, *, last: bool = False) -> None:
        """One event. `last`: it may be the beginning of one that was cut."""
        if self.done or not data:
            return
        if data == DONE:
            self.done = True
            return
        if name == ERROR:
            raise self._told(data.decode("utf-8", "replace"))
        try:
            chunk = chunk_of(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            if last:
                return
            raise self._garbage(
                f"sent an event that is no part of a chat completion ({error}): {data[:200]!r}"
            ) from error
        if chunk.is_error:
            raise self._told(data.decode("utf-8", "replace"))
        self._say(chunk)

    def _say(self, chunk: Chunk) -> None:
        self._chunks += 1
        for piece in self._streamed.take(chunk):
            if self._hear is not None:
                self._hear(piece)
        if self._parts:
            self._parts.clear()

    def _told(self, error: str) -> Exception:
        return broken_off(self._clean(error), self.so_far(), name=self._name, url=self._url)

    def _garbage(self, what: str) -> BadReply:
        cure = cure_of("garbage", self._name)
        return BadReply(self._clean(f"The model endpoint {self._url} {what}. {cure}{KEPT}"), self.so_far())
