"""A PDF that is made to exhaust its reader is refused in words, or read without harm.

Each of these files has a right cross-reference, so that pypdf follows it to the end.
"""

import resource
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from everlog.actors.memory.document_load import Document, UnreadableDocument
from everlog.events import BadInput
from everlog.interfaces.documents import pdf_text
from everlog.interfaces.documents.extract_text import read
from everlog.interfaces.documents.find_files import DocumentFile
from tests.support.cli.pdf_maker import CATALOG, PAGE, RESOURCES, TEXT, one_page, raw_stream, spaces, stream
from tests.support.cli.pdf_maker import with_object_streams as packed

GROWTH_KB_MAX = 300_000
"""Most memory that reading one file may add to this process, in kB: a bomb of 400 MB, unpacked, is more."""


def read_bytes(tmp_path: Path, content: bytes) -> Document | UnreadableDocument:
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    return read(DocumentFile("a.pdf", path, str(path), len(content)))


def test_these_files_are_read_where_nothing_is_wrong(tmp_path: Path) -> None:
    """Both kinds of cross-reference that the tests make are right: a page without a trick is read."""
    for content in (one_page(), packed({7: object_stream(CATALOG)}, {1: (7, 0)})):
        assert isinstance(document := read_bytes(tmp_path, content), Document)
        assert document.text == "The tide turns."


def object_stream(packed_object: bytes, entries: bytes = b"/N 1/First 4") -> bytes:
    return stream(b"1 0 " + packed_object, b"/Type/ObjStm" + entries)


def pages(kids: bytes, number: int = 1) -> bytes:
    return b"<</Type/Pages/Parent 2 0 R/Kids[%b]/Count %d>>" % (kids, number)


def doubled(first: int, last: int, node: Callable[[int], bytes]) -> dict[int, bytes]:
    return {number: node(number + 1) for number in range(first, last)}


BOMB_BYTES = 400_000_000
FORM = b"/Type/XObject/Subtype/Form/Resources"
DOUBLING_PAGES = {2: pages(b"10 0 R"), **doubled(10, 40, lambda n: pages(b"%d 0 R %d 0 R" % (n, n))), 40: PAGE % b""}
DEEP_PAGES = {2: pages(b"10 0 R"), **doubled(10, 5000, lambda n: pages(b"%d 0 R" % n)), 5000: PAGE % b""}
BITMAP_RANGE = b"begincmap 1 beginbfrange <00000000> <ffffffff> <0041> endbfrange endcmap"

REFUSED = {
    "a page tree that contains itself": lambda: one_page({2: pages(b"2 0 R")}),
    "a page, and the page tree again": lambda: one_page({2: pages(b"3 0 R 2 0 R", 2)}),
    "two page trees that contain each other": lambda: one_page({2: pages(b"6 0 R"), 6: pages(b"2 0 R")}),
    "a page tree of 5,000 levels": lambda: one_page(DEEP_PAGES),
    "a page tree of 2^30 pages": lambda: one_page(DOUBLING_PAGES),
    "a million times the same page": lambda: one_page({2: pages(b"3 0 R " * 1_000_000, 1_000_000)}),
    "a page that is a reference to itself": lambda: one_page({3: b"3 0 R"}),
    "a content of 400 MB": lambda: one_page({4: raw_stream(spaces(BOMB_BYTES), b"/Filter/FlateDecode")}),
    "a content under a thousand filters": lambda: one_page(
        {4: raw_stream(b"", b"/Filter[" + b"/FlateDecode" * 1000 + b"]")}
    ),
    "5,000 contents of 1 MB each": lambda: one_page(
        {4: b"[" + b"6 0 R " * 5000 + b"]", 6: raw_stream(spaces(1_000_000), b"/Filter/FlateDecode")}
    ),
    "a content of 100,000 open arrays": lambda: one_page(content=b"[" * 100_000 + TEXT),
    "an object stream in itself": lambda: packed({}, {1: (7, 0), 7: (7, 1)}),
    "object streams in each other": lambda: packed({}, {1: (7, 0), 7: (8, 0), 8: (7, 0)}),
    "an object stream of 2^31 objects": lambda: packed(
        {7: object_stream(CATALOG, b"/N 2147483648/First 4")}, {1: (7, 0)}
    ),
    "an object stream of 400 MB": lambda: packed(
        {7: raw_stream(spaces(BOMB_BYTES), b"/Filter/FlateDecode/Type/ObjStm/N 1/First 4")}, {1: (7, 0)}
    ),
    "a font with four billion characters": lambda: one_page(
        {5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>", 6: stream(BITMAP_RANGE)}
    ),
    "a length that is its own object": lambda: one_page({4: b"<</Length 4 0 R>>stream\n" + TEXT + b"\nendstream"}),
}
READ = {
    "a count of a billion pages": lambda: one_page({2: pages(b"3 0 R", 1_000_000_000)}),
    "a form that shows itself": lambda: one_page(
        {6: stream(b"/X Do " + TEXT, FORM + b"<</XObject<</X 6 0 R>>/Font<</F1 5 0 R>>>>")},
        content=b"/X Do " + TEXT,
        resources=b"<</Font<</F1 5 0 R>>/XObject<</X 6 0 R>>>>",
    ),
    "an object stream that extends itself": lambda: packed(
        {7: object_stream(CATALOG, b"/N 1/First 4/Extends 7 0 R")}, {1: (7, 0)}
    ),
    "an object of 50,000 levels that no page needs": lambda: one_page(
        {2: b"<</Type/Pages/Kids[3 0 R]/Count 1/X 6 0 R>>", 6: b"<</A" * 50_000 + b" 1" + b">>" * 50_000}
    ),
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_a_pdf_that_would_exhaust_its_reader_is_refused(tmp_path: Path, content: Callable[[], bytes]) -> None:
    """Cycles, depths and bombs are refused with a reason, and their content is never in memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = read_bytes(tmp_path, content())
    assert isinstance(found, UnreadableDocument)
    assert found.reason.startswith("it is not a valid PDF (")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + GROWTH_KB_MAX


@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_a_trick_without_harm_is_read(tmp_path: Path, content: Callable[[], bytes]) -> None:
    assert isinstance(found := read_bytes(tmp_path, content()), Document)
    assert found.text.startswith("The tide turns.")


def test_a_pdf_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    """Pypdf limits each page, but ten thousand pages may each show the most expensive content: a limit of time ends
    it.
    """
    many = {2: pages(b"3 0 R " * 10_000, 10_000), 3: PAGE % RESOURCES}
    path = tmp_path / "a.pdf"
    path.write_bytes(one_page(many))
    with pytest.raises(BadInput, match=r"longer to read than 300 seconds \(30 pages were read\); split it"):
        pdf_text.read(path, count(0, 10_000_000).__next__)  # a clock that advances by ten seconds at each page
