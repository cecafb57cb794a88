"""Extract a document from a file: its text, normalized.

Used by `everlog load` through the package. The sha256 of the text is recorded: another normalization makes every loaded
document count as changed.
"""

import importlib
import importlib.util
import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

from everlog.actors.memory.document_load import Document, UnreadableDocument
from everlog.events import BadInput, UsageError
from everlog.interfaces.documents.file_kinds import ExtractedText, FileKind, kind_of
from everlog.interfaces.documents.find_files import DocumentFile

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f\ufeff\ud800-\udfff]")
"""Characters that are removed from a text: control characters, byte order marks, lone surrogates."""
_BLANK_ENDS = re.compile(r"(?<![^\S\n])[^\S\n]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{4,}")


def check_readers_installed(files: Iterable[DocumentFile]) -> None:
    """Raise UsageError if a file needs a package that is not installed: those of the extra `documents`."""
    for file in files:
        kind = _kind_of(file)
        if kind.needs and importlib.util.find_spec(kind.needs) is None:
            raise UsageError(
                f"{file.name} cannot be read: the package for {file.path.suffix} files is not installed here. Nothing "
                "was loaded. Install it: pip install 'everlog[documents]'. Or name only files of other types."
            )


def read(file: DocumentFile) -> Document | UnreadableDocument:
    """Return the document in a file, or the reason why it cannot be read. The size is checked before reading."""
    kind = _kind_of(file)
    try:
        if not file.bytes:
            raise BadInput("it is empty")
        if file.bytes > kind.bytes_max:
            raise BadInput(f"it has {file.bytes:,} bytes, and the limit for its type is {kind.bytes_max:,}; split it")
        module, name = kind.reader.split(":")
        reader = cast(
            "Callable[[Path], ExtractedText]", getattr(importlib.import_module(f"{__package__}.{module}"), name)
        )
        content = reader(file.path)
        text = normal(content.text)
        if not text:
            raise BadInput("it has no text")
    except BadInput as error:
        return UnreadableDocument(file.name, str(error))
    except (RecursionError, MemoryError):
        return UnreadableDocument(file.name, "it is nested too deeply, or too large, to be read")
    except OSError as error:
        return UnreadableDocument(file.name, f"it cannot be read ({error.strerror or error})")
    title = " ".join(normal(content.title).split())[:200]
    return Document(
        name=file.name, text=text, title=title, media_type=kind.media_type, bytes=file.bytes, origin=file.origin
    )


def _kind_of(file: DocumentFile) -> FileKind:
    kind = kind_of(file.path) or kind_of(Path(file.name))
    assert kind is not None, "only files of a known kind are found"
    return kind


def normal(text: str) -> str:
    """Return the text in NFC, with line feeds as line ends, no blanks before them, and at most two blank lines."""
    text = _NO_TEXT.sub("", _LINE_ENDS.sub("\n", text))
    text = _BLANK_LINES.sub("\n\n\n", _BLANK_ENDS.sub("", unicodedata.normalize("NFC", text)))
    return text.strip("\n").rstrip()
