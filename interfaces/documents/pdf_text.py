"""Extract the text of a PDF page by page, with pypdf.

Imported by `extract_text` for the first such file. Another text for the same file makes a loaded document count as
changed.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.actors.memory.document_load import DOCUMENT_BYTES_MAX
from everlog.actors.ports.real_clock import monotonic_us
from everlog.events import BadInput
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common.plural import plural
from everlog.interfaces.documents.file_kinds import ExtractedText

if TYPE_CHECKING:
    from pypdf import PdfReader

READING_S_MAX = 300
"""Seconds that reading one file may take. pypdf limits every part of a file, but not how often one part is used: ten
thousand pages with one content of 70 MB, compressed to 70 kB, would take half a day.
"""


def read(path: Path, now: Callable[[], int] = monotonic_us) -> ExtractedText:
    """Return the text and the title of a PDF. Raise BadInput if it has no text or cannot be read.

    `now` returns microseconds since any moment: reading ends after `READING_S_MAX` seconds.
    """
    import pypdf
    from pypdf.errors import DependencyError, PyPdfError

    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # discard its warnings about small faults
    try:
        with pypdf.PdfReader(path) as reader:
            if reader.is_encrypted and not reader.decrypt(""):
                raise BadInput("it is password-protected; save it without a password")
            pages = _pages(reader, now)
            title = reader.metadata.title if reader.metadata else ""
    except DependencyError as error:
        raise BadInput(f"it is encrypted, and cannot be opened here ({error}); save it without encryption") from error
    except (PyPdfError, *_MALFORMED) as error:
        raise BadInput(f"it is not a valid PDF ({type(error).__name__}: {str(error)[:200]})") from error
    text = "\n\n".join(page for page in pages if page.strip())
    if not text:
        raise BadInput(
            f"there is no text on its {plural(len(pages), 'page')}, perhaps only pictures; run text recognition (OCR) "
            "on it first"
        )
    return ExtractedText(text, str(title or ""))


_MALFORMED = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""Other exceptions that pypdf raises for a malformed file."""


def _pages(reader: "PdfReader", now: Callable[[], int]) -> list[str]:
    pages: list[str] = []
    chars = 0
    end = now() + READING_S_MAX * MICROSECONDS
    for page in reader.pages:
        if now() > end:
            raise BadInput(
                f"it takes longer to read than {READING_S_MAX} seconds ({plural(len(pages), 'page')} were read); split "
                "it"
            )
        pages.append(page.extract_text())
        chars += len(pages[-1])
        if chars > DOCUMENT_BYTES_MAX:
            raise BadInput(f"it has more than {DOCUMENT_BYTES_MAX:,} characters of text; split it")
    return pages
