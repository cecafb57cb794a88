"""Server-sent events, read from bytes as they come, in parts of any size. Pure."""

import codecs
from collections.abc import Iterator

ERROR = b"error"
"""The name of an event that says that the rest will not come."""


class Events:
    """The events of one stream: each is its name (often empty) and its data."""

    __slots__ = ("_begun", "_data", "_name", "_rest")

    def __init__(self) -> None:
        self._begun = False
        self._rest = b""
        """The beginning of a line whose end has not come."""
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The events that end in this part. Comments, which servers send to keep a connection open, are none."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            yield from self._line(line)

    def end(self) -> Iterator[tuple[bytes, bytes]]:
        """What is left when nothing more comes: some servers leave out the last end of line."""
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
        elif field == ERROR:  # as llama.cpp had it
            self._name = ERROR
            self._data.append(value)
