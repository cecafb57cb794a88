"""Limit the head of a request, its address and headers, while it arrives: the parser alone takes any size.

Used by `server`.
"""

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 32 * 1024
"""Size of the address and the headers of one request."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Protocol that answers 400 and closes the connection if the head of a request is too large."""

    _head_bytes = 0
    """Bytes that were received of a head that is not complete."""
    _in_head = True

    def data_received(self, data: bytes) -> None:
        """Parse what arrived."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX + len(data):  # all before this part belonged to the head
                self.send_400_response("The head of the request is too large.")
                return
        super().data_received(data)

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        super().on_url(url)
        self._check(len(self.url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        super().on_header(name, value)
        self._check(len(self.url) + sum(len(name) + len(value) for name, value in self.headers))

    def on_headers_complete(self) -> None:
        """Take the end of the head."""
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Take the end of the request: the next head begins."""
        self._in_head = True
        super().on_message_complete()

    def _check(self, size: int) -> None:
        if size > HEAD_BYTES_MAX:
            raise httptools.HttpParserError("the head is too large")
