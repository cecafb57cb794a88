"""Text as it stands, in UTF-8, or in UTF-16 or UTF-32 that begins with a byte order mark."""

import codecs
import re
from pathlib import Path

from everlog.actors.memory.document_load import DOCUMENT_BYTES_MAX
from everlog.events import BadInput
from everlog.interfaces.documents.file_kinds import ExtractedText

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before that of UTF-16, which begins it
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEADING = re.compile(r"^#[ \t]+(\S.*)$", re.MULTILINE)


def read(path: Path) -> ExtractedText:
    """The text of the file. Raises BadInput where it is none."""
    return ExtractedText(text_of(path))


def read_markdown(path: Path) -> ExtractedText:
    """The same, with its first heading for a title."""
    text = text_of(path)
    heading = _HEADING.search(text)
    return ExtractedText(text, heading[1].rstrip().rstrip("#").rstrip() if heading else "")


def text_of(path: Path, encoding: str = "utf-8") -> str:
    """What is in a file, in the encoding that its byte order mark names, else in `encoding`. Raises BadInput."""
    with path.open("rb") as file:
        content = file.read(DOCUMENT_BYTES_MAX + 1)
    if len(content) > DOCUMENT_BYTES_MAX:
        raise BadInput(f"it grew while it was read, beyond {DOCUMENT_BYTES_MAX:,} bytes")
    return decode_text(content, encoding)


def decode_text(content: bytes, encoding: str = "utf-8") -> str:
    """Bytes as text. Raises BadInput, which says where they are none."""
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), encoding)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadInput(
            f"it is not text in {encoding.upper()}: {error.reason} at byte {error.start:,} (UTF-8 is read, and UTF-16 "
            "that begins with a byte order mark)"
        ) from error
    except LookupError as error:
        raise BadInput(f"it says that it is written in {encoding!r}, which nobody knows") from error
    if "\0" in text:
        raise BadInput(f"it is no text, but binary: there is a zero at character {text.index(chr(0)):,}")
    return text
