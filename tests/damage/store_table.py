"""Read the table "What a store is made of" from docs/explanation/durability.md.

Used by the tests of this folder: the page is the list that they hold a store against, and there is no other list.
"""

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "durability.md"
HEADING = "## What a store is made of"
_PLACES = {
    "<hh>": "[0-9a-f]{2}", "<hash>": "[0-9a-f]{64}", "<number>": r"\d+", "<epoch>": r"\d{6,}", "<commit>": r"\d{12,}",
    "<commits>": r"\d{12,}-\d{12,}", "<partition>": r"(?:shard-\d{3}|agent-[0-9a-f]{64})", "<file>": "[^/]+",
}  # fmt: skip


class FilePattern(NamedTuple):
    """Pattern of a file's path in a store."""

    text: str
    at_rest: bool
    """False if the file exists only for a moment, or while a process runs."""

    def matches(self, path: str) -> bool:
        """Return True if the path of a file, relative to the store, has this form."""
        parts = re.split(r"(<\w+>)", self.text)
        return bool(re.fullmatch("".join(_PLACES.get(part) or re.escape(part) for part in parts), path))


class FileKind(NamedTuple):
    """A row of the table."""

    patterns: tuple[FilePattern, ...]
    cells: tuple[str, ...]
    """Cells after the first: written by, protected by, loss or damage, noticed by, cure."""

    @property
    def name(self) -> str:
        """Pattern that names the row."""
        return self.patterns[0].text


def kinds() -> list[FileKind]:
    """Return the rows of the table, in order."""
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [FileKind(tuple(_patterns(first)), tuple(cell.strip() for cell in cells)) for first, *cells in rows]


def _patterns(cell: str) -> list[FilePattern]:
    return [FilePattern(text, not mark) for text, mark in re.findall(r"`([^`]+)`( †)?", cell)]


def kind_of(path: str, among: list[FileKind]) -> FileKind:
    """Return the one row that a path matches. Raises AssertionError for none, or for several."""
    found = [kind for kind in among if any(pattern.matches(path) for pattern in kind.patterns)]
    assert len(found) == 1, f"{path} matches {[kind.name for kind in found]} of the table in {PAGE}: give it one row"
    return found[0]


def files_of(root: Path) -> list[str]:
    """Return the paths of all files of a store, relative to it, sorted."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
