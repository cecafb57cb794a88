"""Load web pages as documents, within the hosts that the user allows: each page as a file of its type.

Used by `everlog load`. The checks of hosts, addresses and redirects are those of the function `http_request`.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urldefrag, urlsplit

from everlog.actors.functions.http_function import WebAccess
from everlog.actors.memory.document_load import DOCUMENT_BYTES_MAX, Document, UnreadableDocument
from everlog.events import BadInput, FunctionError
from everlog.interfaces.documents.extract_text import check_readers_installed, read
from everlog.interfaces.documents.file_kinds import KINDS
from everlog.interfaces.documents.find_files import DocumentFile

Web = Callable[[Sequence[str]], WebAccess]
"""Makes the access to the allowed hosts."""

_ENDINGS = {kind.media_type: ending for ending, kind in reversed(KINDS.items())}
"""Ending of a file by its media type."""


def is_address(path: str) -> bool:
    """Return True for the address of a web page."""
    return path.startswith(("https://", "http://"))


def pages(
    addresses: Sequence[str], hosts: Sequence[str], web: Web = WebAccess
) -> Iterator[Document | UnreadableDocument]:
    """Yield the document at each address, or why it cannot be read. A document is named by its address.

    Raise BadInput for an invalid host, and UsageError if the reader of a page's type is not installed.
    """
    access = web(hosts)
    for address in dict.fromkeys(urldefrag(address).url for address in addresses):
        try:
            yield _page(access, address)
        except (BadInput, FunctionError, OSError, ValueError) as error:
            yield UnreadableDocument(address, str(error).rstrip("."))


def _page(access: WebAccess, address: str) -> Document | UnreadableDocument:
    answer = asyncio.run(access.page(address, DOCUMENT_BYTES_MAX + 1))
    if answer.status != 200:
        raise BadInput(f"the server answered with status {answer.status}")
    ending = _ending(answer.headers.get("content-type", ""), address)
    with tempfile.TemporaryDirectory(prefix="everlog-") as folder:
        path = Path(folder) / f"page{ending}"
        path.write_bytes(answer.body)
        file = DocumentFile(address, path, address, len(answer.body))
        check_readers_installed([file])
        return read(file)


def _ending(content_type: str, address: str) -> str:
    """Return the ending for a page: that of its media type, else that of its address. Raise BadInput for another."""
    media_type = content_type.partition(";")[0].strip().lower()
    written = PurePosixPath(unquote(urlsplit(address).path)).suffix.lower()
    # A server calls any file of text "text/plain": then the address says more.
    if media_type in ("", "text/plain", "application/octet-stream") and written in KINDS:
        return written
    if media_type in _ENDINGS:
        return _ENDINGS[media_type]
    raise BadInput(f"its type, {media_type or 'which the server does not say'}, is not supported")
