"""Print pages about errors on a console.

Used by `explain_command` and `docs/make_errors.py`.
"""

import re
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from everlog.interfaces.explain.error_page import ErrorPage

_CODE = re.compile(r"`([^`]+)`")
_INDENT = 2


class PageText:
    """Prints pages, wrapped to the width of the console."""

    def __init__(self, out: Console) -> None:
        self._out = out

    def index(self, pages: Sequence[ErrorPage]) -> None:
        """Print the code and the first sentence of every page, as a tree of types."""
        depth = {"": -1}
        for page in pages:
            depth[page.name] = depth[page.parent] + 1
            indent = "  " * depth[page.name]
            self._out.print(Text(f"{indent}{page.code}", "bold"))
            self._wrapped(f"{first_sentence(page.what)}", len(indent) + _INDENT)
        self._out.print()
        self._wrapped("`everlog explain CODE` prints the page of an error.", 0)

    def page(self, page: ErrorPage, messages: Mapping[str, str]) -> None:
        """Print a page."""
        self._out.print(Text(page.code, "bold red") + Text(f"  {page.name}", "dim"))
        self._out.print()
        self._wrapped(page.what, 0)
        self._list("Why", page.why)
        self._list("How to fix it", page.fix)
        self._heading("Example")
        for line in page.example.splitlines():
            self._out.print(Text(f"{' ' * _INDENT}{line}".rstrip(), "green"), soft_wrap=True)
        self._heading("Its message")
        self._wrapped(messages[page.code], _INDENT, code=False)
        self._out.print()

    def _list(self, heading: str, items: Sequence[str]) -> None:
        self._heading(heading)
        for item in items:
            self._wrapped(item, _INDENT, first="- ")

    def _heading(self, words: str) -> None:
        self._out.print()
        self._out.print(Text(words, "bold"))

    def _wrapped(self, words: str, indent: int, *, first: str = "", code: bool = True) -> None:
        """Print a paragraph. Backquoted parts are coloured, and keep their backquotes: a reader may copy them."""
        text = Text()
        for number, part in enumerate(_CODE.split(words) if code else [words]):
            text.append(f"`{part}`" if number % 2 else part, "green" if number % 2 else "")
        room = max(20, min(self._out.width, 100) - indent - len(first))
        lead = f"{' ' * indent}{first}"
        for line in text.wrap(self._out, room):
            line.rstrip()
            self._out.print(Text(lead) + line, soft_wrap=True)
            lead = " " * len(lead)


def first_sentence(words: str) -> str:
    """Return the first sentence of a paragraph."""
    return f"{words.partition('. ')[0].rstrip('.')}."
