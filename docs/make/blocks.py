"""Find the blocks of a page that are made from code, and fill each again.

A block begins with `<!-- made from SOURCE: NAME -->` and ends with `<!-- end -->`. The text between is never edited by
hand; the text around it always is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs"
COMMAND = "python -m docs.make"
"""The command that mends a page whose blocks are out of date."""

Maker = Callable[[str, str], str]
"""Make the text of a block from its name and the text that it has now."""

_BLOCK = re.compile(r"(<!-- made from ([^:>]+): ([^>]+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


class UnknownBlock(Exception):
    """A page names a source, or a thing of that source, that does not exist."""


def pages() -> list[Path]:
    """Return every page of the documentation, sorted by path."""
    return sorted(PAGES.rglob("*.md"))


def filled(text: str, makers: Mapping[str, Maker]) -> str:
    """Return the text of a page with every block made again. Raise UnknownBlock for a source that has no maker."""

    def fill(found: re.Match[str]) -> str:
        begin, source, name, old, end = found.groups()
        if source not in makers:
            raise UnknownBlock(f"no maker for {source!r}: there are {sorted(makers)}")
        return f"{begin}\n{makers[source](name, old).strip()}\n\n{end}"

    return _BLOCK.sub(fill, text)


def names(text: str, source: str) -> Iterator[str]:
    """Yield the names of the blocks of one source that a page has."""
    return (found[3] for found in _BLOCK.finditer(text) if found[2] == source)


def escaped(text: str) -> str:
    """Return plain text as Markdown: brackets and angle brackets outside of code do not begin links or tags."""
    parts = text.split("`")
    plain = [part.replace("[", r"\[").replace("<", "&lt;").replace("*", r"\*") for part in parts[::2]]
    return "`".join(part for pair in zip(plain, [*parts[1::2], ""], strict=True) for part in pair).rstrip("`") + (
        "`" if text.endswith("`") else ""
    )


def cell(text: str) -> str:
    """Return text for one cell of a table: one line, with no bar that would end the cell."""
    return " ".join(text.split()).replace("|", r"\|")


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table, or an empty text where there are no rows."""
    if not rows:
        return ""
    lines = [head, *(tuple(cell(value) for value in row) for row in rows)]
    body = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([body[0], f"|{'|'.join('---' for _ in head)}|", *body[1:]])
