"""Files as documents: the text that is read from each kind of file, and the error for an unreadable file."""

import json
import os
import socket
import zipfile
from pathlib import Path

import docx
import pytest
from fpdf import FPDF
from hypothesis import given
from hypothesis import strategies as st

from everlog.actors.memory.document_load import DOCUMENT_BYTES_MAX, Document, UnreadableDocument
from everlog.events import BadInput
from everlog.interfaces.documents import extract_text as reading_files
from everlog.interfaces.documents import find, read
from everlog.interfaces.documents.extract_text import normal
from everlog.interfaces.documents.find_files import LINK_OUT
from tests.support.cli.command_line import Line


def read_one(path: Path) -> Document | UnreadableDocument:
    found = find([str(path)])
    (one,) = [*found.failed, *map(read, found.files)]
    return one


def text_of(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    document = read_one(path)
    assert isinstance(document, Document), document
    return document.text


def reason(path: Path, content: bytes | None = None) -> str:
    if content is not None:
        path.write_bytes(content)
    failed = read_one(path)
    assert isinstance(failed, UnreadableDocument)
    assert failed.name == path.name
    return failed.reason


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_is_read_in_every_encoding_that_says_what_it_is(encoding: str, tmp_path: Path) -> None:
    assert text_of(tmp_path / "a.txt", "Grüße,\r\n日本\r".encode(encoding)) == "Grüße,\n日本"


@given(st.text(max_size=60))
def test_a_text_in_its_normal_form_stays_as_it_is(text: str) -> None:
    """Normalizing a text twice changes nothing more; the result can be encoded, and has one kind of line end."""
    once = normal(text)
    assert normal(once) == once
    once.encode()
    assert not set(once) & set("\r\v\f\0\x85\u2028")


def test_a_page_is_read_as_it_is_seen(tmp_path: Path) -> None:
    """Scripts, styles and comments are left out; entities are decoded; blocks become lines, and cells of a row are
    separated.
    """
    page = """<!doctype html><html><head><title>The &amp; sea</title><style>p{}</style>
      <script>var x = "<p>no</p>"</script></head><body><h1>Tides</h1><!-- no --><p>The   tide
      turns<br>twice &mdash; a day.</p><table><tr><th>day</th><th>high</th></tr>
      <tr><td>1</td><td>04:12</td></tr></table><pre>keep   this
  so</pre><ul><li>one<li>two</ul></body>"""
    path = tmp_path / "a.html"
    seen = ["Tides", "", "The tide turns", "twice — a day.", "", "day | high", "1 | 04:12", "", "keep   this", "  so"]
    assert text_of(path, page).split("\n") == [*seen, "", "one", "two"]
    assert isinstance(document := read_one(path), Document)
    assert document.title == "The & sea"
    latin = '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1"><p>Grüße'
    assert text_of(path, latin.encode("latin-1")) == "Grüße"
    assert "which is unknown" in reason(path, b"<meta charset=klingon>x")
    assert text_of(path, "<p>open <b>and <script>never closed") == "open and"


def test_rows_and_values_become_lines(tmp_path: Path) -> None:
    """CSV with any separator, and JSON of any depth, become lines `column: value`; rows are separated, and empty values
    left out.
    """
    for separator in ",;\t|":
        table = 'day,high water,note\n1,"04:12",\n\n2,05:01,"a\nb"\n'.replace(",", separator)
        rows = "day: 1\nhigh water: 04:12\n\nday: 2\nhigh water: 05:01\nnote: a\nb"
        assert text_of(tmp_path / "a.csv", table) == rows
    assert text_of(tmp_path / "a.csv", "one,two") == "one, two"
    value = '[{"name":"Ann","likes":["tea","sea"],"boat":{"sails":2,"names":[{"a":1},{"a":2}]},"x":null},"plain",7]'
    lines = "name: Ann\nlikes: tea, sea\nboat.sails: 2\nboat.names 1.a: 1\nboat.names 2.a: 2\n\nplain\n\n7"
    assert text_of(tmp_path / "a.json", value) == lines
    assert text_of(tmp_path / "a.jsonl", '{"a":1}\n\n{"a":true}\n') == "a: 1\n\na: true"


def test_a_word_document_is_read_in_its_order(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("Before")
    table = document.add_table(rows=2, cols=2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "Tides"
    table.cell(1, 0).text, table.cell(1, 1).text = "high", "04:12"
    document.add_paragraph("After")
    document.save(str(tmp_path / "a.docx"))
    assert isinstance(read_document := read_one(tmp_path / "a.docx"), Document)
    assert read_document.text == "Before\n\nTides\nhigh | 04:12\n\nAfter"


def pdf(path: Path, words: str, **encryption: str) -> None:
    page = FPDF()
    page.add_page()
    page.set_font("helvetica", size=12)
    page.multi_cell(0, 5, words)
    if encryption:
        page.set_encryption(owner_password="owner", **encryption)
    page.output(str(path))


def test_a_pdf_that_needs_no_password_is_read(tmp_path: Path) -> None:
    """A PDF that is encrypted with an owner's password only is read without a password."""
    pdf(tmp_path / "a.pdf", "The tide turns.", user_password="")
    assert isinstance(document := read_one(tmp_path / "a.pdf"), Document)
    assert document.text == "The tide turns."


def test_a_pdf_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A PDF with a password, a PDF without text, half of a PDF and a file that is not a PDF have an error of their own
    each.
    """
    pdf(tmp_path / "locked.pdf", "The tide turns.", user_password="secret")
    assert "password-protected" in reason(tmp_path / "locked.pdf")
    pdf(tmp_path / "scan.pdf", " ")
    assert "there is no text on its 1 page," in reason(tmp_path / "scan.pdf")
    pdf(tmp_path / "whole.pdf", "The tide turns.")
    whole = (tmp_path / "whole.pdf").read_bytes()
    assert "it is not a valid PDF" in reason(tmp_path / "half.pdf", b"%PDF-1.4\n" + whole[len(whole) // 2 :][:40])
    assert "it is not a valid PDF" in reason(tmp_path / "none.pdf", b"hello")


@pytest.mark.parametrize("seed", range(16))
def test_a_damaged_file_is_read_or_named(seed: int, tmp_path: Path) -> None:
    """A PDF or Word file with any damaged byte gives a document or a reason, and no other error."""
    import random

    chance = random.Random(seed)
    path = tmp_path / ("a.pdf" if seed % 2 else "a.docx")
    if seed % 2:
        pdf(path, "The tide turns. " * 50)
    else:
        document = docx.Document()
        document.add_paragraph("The tide turns. " * 50)
        document.save(str(path))
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 5, 50))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content[: len(content) - chance.choice((0, 0, 500))])
    assert isinstance(read_one(path), Document | UnreadableDocument)


def test_a_word_document_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A Word file is refused with a reason if it is a PDF, has a password, unpacks into far more, or lacks its
    parts.
    """
    path = tmp_path / "a.docx"
    assert "it is not a valid Word document (BadZipFile" in reason(path, b"hello")
    assert "password-protected" in reason(path, bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 500)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("word/document.xml", b" " * (65 * 1024 * 1024))
    assert path.stat().st_size < 100_000
    assert "67,108,864" in reason(path)
    content = path.read_bytes().replace((65 * 1024 * 1024).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert "Bad CRC-32" in reason(path, content)
    with zipfile.ZipFile(path, "w") as empty:
        empty.writestr("hello.txt", "hello")
    assert "it is not a valid Word document" in reason(path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"", "it is empty"),
        ("a.txt", b" \n\t ", "it has no text"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0", "it is not text in UTF-8: invalid start byte at byte 0"),
        ("a.txt", b"ELF\0\0\0", "it is binary and not text: there is a zero at character 3"),
        ("a.md", "Grüße".encode("latin-1"), "it is not text in UTF-8: invalid start byte at byte 2"),
        ("a.txt", "Grüße".encode("utf-16-le"), "it is not text in UTF-8"),
        ("a.html", b"<script>1</script>", "it has no text"),
        ("a.json", b'{"a": 1,\n "b" 2}', "it is not valid JSON: Expecting ':' delimiter at line 2, character 6"),
        ("a.json", b"[" * 100_000, "it is not readable JSON"),
        ("a.json", b"{}", "it has no text"),
        ("a.jsonl", b'{"a": 1}\n{"a": }\n', "line 2 is not valid JSON: Expecting value at character 7"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "line 3 has 3 values, but the first line names 2 columns"),
        ("a.csv", b'a,b\n1,"2\n3', "it is not valid CSV: unexpected end of data"),
        ("a.exe", b"MZ", "its type is not supported; supported types: txt, "),
    ],
)
def test_a_file_that_cannot_be_read_says_why(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    assert said in reason(tmp_path / name, content)


def test_a_file_of_200_megabytes_is_named_without_being_read(tmp_path: Path, monkeypatch) -> None:
    """The size is checked before the content is read, and the error names the limit; a text exactly at the limit is
    read.
    """
    path = tmp_path / "large.txt"
    path.write_bytes(b"x" * DOCUMENT_BYTES_MAX)
    assert isinstance(read_one(path), Document)
    os.truncate(path, 200_000_000)
    monkeypatch.setattr(reading_files.importlib, "import_module", lambda _: pytest.fail("it was read"))
    assert "it has 200,000,000 bytes, and the limit for its type is 16,777,216" in reason(path)


def test_what_is_no_file_is_named(tmp_path: Path, monkeypatch) -> None:
    """A pipe, a socket, a name that is not UTF-8, a broken link and an unreadable file are reported, and the other
    files are read.
    """
    os.mkfifo(tmp_path / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)
        server.bind("socket.txt")
    (tmp_path / os.fsdecode(b"na\xefve.txt")).write_text("x")
    (tmp_path / "gone.txt").symlink_to("nowhere")
    (tmp_path / "good.txt").write_text("The tide turns.")
    found = find([str(tmp_path)])
    assert {one.name: one.reason.split(" (")[0] for one in found.failed} == {
        "pipe.txt": "it is a device, a pipe or a socket, not a file",
        "socket.txt": "it is a device, a pipe or a socket, not a file",
        "na\\udcefve.txt": "its name is not UTF-8; rename it",
        "gone.txt": "it cannot be read",
    }
    assert [file.name for file in found.files] == ["good.txt"]

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    assert read(found.files[0]) == UnreadableDocument("good.txt", "it cannot be read (Permission denied)")


def test_a_folder_is_gone_through_once(tmp_path: Path) -> None:
    """Files are sorted and hidden files left out; a link into its own folder is not followed again, a link to outside
    is named with what to do. The same links are followed if the user names them.
    """
    outside, root = tmp_path / "outside", tmp_path / "root"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "far.md").write_text("x")
    (outside / "deep" / "back").symlink_to(outside)
    (root / "b" / ".git").mkdir(parents=True)
    (root / "b" / ".git" / "config.txt").write_text("x")
    (root / "b" / "two.txt").write_text("x")
    (root / "a.TXT").write_text("x")
    (root / "picture.png").write_text("x")
    (root / ".hidden.txt").write_text("x")
    (root / "b" / "loop").symlink_to(root)
    (root / "b" / "self").symlink_to("self")
    (root / "c").symlink_to(outside)
    (root / "d.txt").symlink_to("/etc/passwd")
    (root / "again.txt").symlink_to(root / "b" / "two.txt")
    (root / "cafe\u0301.txt").write_text("x")
    found = find([str(root)])
    assert [file.name for file in found.files] == ["a.TXT", "again.txt", "caf\u00e9.txt"]
    assert found.skipped == ["picture.png"]
    assert [(one.name, one.reason == LINK_OUT) for one in found.failed] == [
        ("c", True),
        ("d.txt", True),
        ("b/self", False),
    ]
    named = find([str(root / "c"), str(root / "d.txt")])
    assert [file.name for file in named.files] == ["d.txt", "deep/far.md"]
    assert found.origins == [str(root)]


def test_a_folder_that_cannot_be_read_takes_nothing_away(tmp_path: Path, monkeypatch) -> None:
    """The folder is reported as failed. If it is the requested folder, it is not an origin, so none of its documents
    count as vanished.
    """
    (tmp_path / "a").mkdir()
    real = Path.iterdir

    def refused(path: Path):
        if path.name == "a":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    found = find([str(tmp_path)])
    assert found.failed == [UnreadableDocument("a", "the folder cannot be read (Permission denied)")]
    assert find([str(tmp_path / "a")]).origins == []
    with pytest.raises(BadInput, match="no such file or folder"):
        find([str(tmp_path), str(tmp_path / "b")])


def test_a_small_file_that_expands_to_too_much_text_is_refused(tmp_path: Path) -> None:
    """A file whose long names would be repeated before each value is refused with a reason, before memory runs out."""
    wide = tmp_path / "wide.csv"
    wide.write_text("a" * 20_000 + "\n" + "1\n" * 1_000)
    long = tmp_path / "long.json"
    long.write_text(json.dumps({"a" * 20_000: [{"b": 1}] * 1_000}))
    failed = [read(file) for file in find([str(tmp_path)]).files]
    assert [type(one) for one in failed] == [UnreadableDocument] * 2
    assert all("split it" in one.reason for one in failed)


def test_values_in_values_are_read_or_named_however_deep(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    for depth in range(300, 1000, 5):
        path.write_text('{"a":' * depth + "1" + "}" * depth)
        assert isinstance(read_one(path), Document | UnreadableDocument)


def test_runs_of_blanks_cost_no_more_than_their_length(tmp_path: Path) -> None:
    """Reading time is linear in the number of blanks: in text, in a page and in a heading."""
    blanks = " " * 200_000
    (tmp_path / "a.txt").write_text(f"a{blanks}b")
    (tmp_path / "b.html").write_text(f"<pre>a{blanks}b</pre>")
    (tmp_path / "c.md").write_text(f"# A title{blanks}b\n")
    documents = [read(file) for file in find([str(tmp_path)]).files]
    assert [document.text[-1] for document in documents] == ["b"] * 3


@pytest.mark.beside_store("a server has a store")
def test_without_its_reader_a_file_is_refused_before_anything_is_written(
    cli: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load of a PDF without pypdf names the extra `documents` and creates no store; other files need no package."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in {"pypdf", "docx"} else name)
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "leave.md").write_text("Everyone has 25 days of leave.")
    for name in ("crew.pdf", "ship.DOCX"):
        (folder / name).write_bytes(b"x")
        said = cli.fails("load", "sam", str(folder))
        assert "pip install 'everlog[documents]'" in said
        assert name in said
        (folder / name).unlink()
    assert not cli.root.exists()
    assert "Loaded 1 document (1 new)" in cli.ok("load", "sam", str(folder))
