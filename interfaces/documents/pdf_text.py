"""The text of a PDF, with pypdf, page by page."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.actors.memory.document_load import DOCUMENT_BYTES_MAX
from everlog.events import BadInput
from everlog.interfaces.documents.file_kinds import ExtractedText

if TYPE_CHECKING:
    from pypdf import PdfReader


def read(path: Path) -> ExtractedText:
    """The text, and the title that it was given. Raises BadInput where there is none, or it cannot be read."""
    import pypdf
    from pypdf.errors import DependencyError, PyPdfError

    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # what it has to say of small faults is for nobody
    try:
        with pypdf.PdfReader(path) as reader:
            if reader.is_encrypted and not reader.decrypt(""):
                raise BadInput("it is protected by a password; save it without one")
            pages = _pages(reader)
            title = reader.metadata.title if reader.metadata else ""
    except DependencyError as error:
        raise BadInput(f"it is encrypted, and cannot be opened here ({error}); save it without encryption") from error
    except (PyPdfError, *_NONSENSE) as error:
        raise BadInput(f"it is no whole PDF ({type(error).__name__}: {str(error)[:200]})") from error
    text = "\n\n".join(page for page in pages if page.strip())
    if not text:
        raise BadInput(
            f"there is no text on its {len(pages):,} page{'s' * (len(pages) != 1)}, only pictures perhaps: have the "
            "text recognised (OCR) first"
        )
    return ExtractedText(text, str(title or ""))


_NONSENSE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""What pypdf raises, too, where a file makes no sense."""


def _pages(reader: "PdfReader") -> list[str]:
    pages, chars = [], 0
    for page in reader.pages:
        pages.append(page.extract_text())
        chars += len(pages[-1])
        if chars > DOCUMENT_BYTES_MAX:
            raise BadInput(f"it has more than {DOCUMENT_BYTES_MAX:,} characters of text; divide it")
    return pages
