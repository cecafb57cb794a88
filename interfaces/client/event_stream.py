"""Read server-sent events from the bytes of an answer, however they are cut. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from everlog.events import EverlogError, Record


class ServerEvent(NamedTuple):
    """One event of a stream."""

    kind: str
    data: bytes
    """JSON text."""
    id: str = ""
    """Position after the event, of a stream that has such positions."""


class FeedPart(NamedTuple):
    """Part of a feed as a command follows it: records, or the reason why a log cannot be read now."""

    token: str = ""
    """Position after this part; empty: as before."""
    records: Sequence[Record] = ()
    error: EverlogError | None = None
    """Reason; the records follow when the log is mended."""


class EventDecoder:
    """Decoder of the events of one answer. What is not complete at its end is dropped: the server sends it again."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, part: bytes) -> Iterator[ServerEvent]:
        """Yield the events that this part of the answer completes."""
        begin = max(0, len(self._rest) - 1)
        self._rest += part
        while (end := self._rest.find(b"\n\n", begin)) >= 0:
            event = _event(bytes(self._rest[:end]))
            del self._rest[: end + 2]
            begin = 0
            if event is not None:
                yield event


def _event(text: bytes) -> ServerEvent | None:
    """Return the event of some lines; None for a comment, or a line that only says when to come back."""
    kind, data, position = b"message", None, b""
    for line in text.split(b"\n"):
        name, _, value = line.partition(b": ")
        if name == b"event":
            kind = value
        elif name == b"data":
            data = value if data is None else data + b"\n" + value
        elif name == b"id":
            position = value
    if data is None:
        return None
    return ServerEvent(kind.decode(errors="replace"), data, position.decode(errors="replace"))
