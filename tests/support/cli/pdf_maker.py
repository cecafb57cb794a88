"""PDF files for tests, assembled object by object, with a cross-reference that is right: so pypdf reads what they hold.

Used by tests of hostile documents. Libraries that write PDFs refuse to write such files.
"""

import zlib
from collections.abc import Mapping

TEXT = b"BT /F1 12 Tf 72 700 Td (The tide turns.) Tj ET"
"""Content of a page that shows one sentence."""
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
RESOURCES = b"<</Font<</F1 5 0 R>>>>"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources %b>>"
CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"


def stream(content: bytes, entries: bytes = b"") -> bytes:
    """Return a stream object with its content compressed."""
    return raw_stream(zlib.compress(content, 9), b"/Filter/FlateDecode" + entries)


def raw_stream(data: bytes, entries: bytes = b"") -> bytes:
    """Return a stream object with exactly this data."""
    return b"<</Length %d%b>>stream\n%b\nendstream" % (len(data), entries, data)


def spaces(count: int, content: bytes = TEXT) -> bytes:
    """Return `count` spaces and then `content`, compressed, without ever holding all of them."""
    packer, part = zlib.compressobj(9), b" " * 1_000_000
    packed = [packer.compress(part[: min(len(part), count - at)]) for at in range(0, count, len(part))]
    return b"".join([*packed, packer.compress(content), packer.flush()])


def pdf_of(objects: Mapping[int, bytes], *, trailer: bytes = b"") -> bytes:
    """Return a PDF of numbered objects, with a cross-reference table; 1 is the catalog."""
    content, places = _body(objects)
    size, at = max(objects) + 1, len(content)
    content += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        content += b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 00000 f \n"
    content += b"trailer\n<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, at)
    return bytes(content)


def one_page(objects: Mapping[int, bytes] | None = None, *, content: bytes = TEXT, resources: bytes = RESOURCES
             ) -> bytes:  # fmt: skip
    """Return a PDF of one page; `objects` are added, or replace 1 catalog, 2 pages, 3 page, 4 content, 5 font."""
    return pdf_of({**_whole(content, resources), **(objects or {})})


def with_object_streams(objects: Mapping[int, bytes], packed: Mapping[int, tuple[int, int]]) -> bytes:
    """Return a PDF of one page whose objects `packed` lie in object streams: number to (stream, index in it)."""
    content, places = _body({n: o for n, o in {**_whole(), **objects}.items() if n not in packed})
    own = max([*places, *packed]) + 1
    places[own] = len(content)
    rows = b""
    for number in range(own + 1):
        kind, at, index = (2, *packed[number]) if number in packed else (number in places, places.get(number, 0), 0)
        rows += kind.to_bytes(1) + at.to_bytes(4) + index.to_bytes(2)
    table = stream(rows, b"/Type/XRef/W[1 4 2]/Size %d/Root 1 0 R" % (own + 1))
    content += b"%d 0 obj\n%b\nendobj\nstartxref\n%d\n%%%%EOF\n" % (own, table, places[own])
    return bytes(content)


def _whole(content: bytes = TEXT, resources: bytes = RESOURCES) -> dict[int, bytes]:
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    return {1: CATALOG, 2: pages, 3: PAGE % resources, 4: stream(content), 5: FONT}


def _body(objects: Mapping[int, bytes]) -> tuple[bytearray, dict[int, int]]:
    """Return the bytes of the objects, and the place of each."""
    content, places = bytearray(b"%PDF-1.7\n"), {}
    for number, found in objects.items():
        places[number] = len(content)
        content += b"%d 0 obj\n%b\nendobj\n" % (number, found)
    return content, places
