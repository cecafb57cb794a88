"""Read a text file in UTF-8, or in UTF-16 or UTF-32 with a byte order mark.

Imported by `extract_text` for the first such file, and used by the readers of HTML and tables. Another text for the
same file makes a loaded document count as changed.
"""

import codecs
import re
from pathlib import Path

from everlog.actors.memory.document_load import DOCUMENT_BYTES_MAX
from everlog.events import BadInput
from everlog.interfaces.documents.file_kinds import ExtractedText

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEADING = re.compile(r"^#[ \t]+(\S.*)$", re.MULTILINE)


def read(path: Path) -> ExtractedText:
    """Return the text of the file. Raise BadInput if the file is not text."""
    return ExtractedText(text_of(path))


def read_markdown(path: Path) -> ExtractedText:
    """Return the text of a Markdown file, with its first heading as the title. Raise BadInput if it is not text."""
    text = text_of(path)
    heading = _HEADING.search(text)
    return ExtractedText(text, heading[1].rstrip().rstrip("#").rstrip() if heading else "")


def text_of(path: Path, encoding: str = "utf-8") -> str:
    """Return the content of a file, decoded by its byte order mark, else by `encoding`. Raises BadInput."""
    with path.open("rb") as file:
        content = file.read(DOCUMENT_BYTES_MAX + 1)
    if len(content) > DOCUMENT_BYTES_MAX:
        raise BadInput(f"it grew while it was read, beyond {DOCUMENT_BYTES_MAX:,} bytes")
    return decode_text(content, encoding)


def decode_text(content: bytes, encoding: str = "utf-8") -> str:
    """Decode bytes by their byte order mark, else by `encoding`. Raise BadInput with the position of a bad byte."""
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), encoding)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadInput(
            f"it is not text in {encoding.upper()}: {error.reason} at byte {error.start:,} (UTF-8 is read, and UTF-16 "
            "that begins with a byte order mark)"
        ) from error
    except LookupError as error:
        raise BadInput(f"it declares the encoding {encoding!r}, which is unknown") from error
    if "\0" in text:
        raise BadInput(f"it is binary and not text: there is a zero at character {text.index(chr(0)):,}")
    return text
