"""The type of a page about an error. Imports nothing heavy.

Used by the files of pages here, and by `docs/make_errors.py`.
"""

from typing import NamedTuple

from everlog.events.errors import code_of

SHELL = "$ "
"""Beginning of each line of an example that is commands; any other example is Python."""


class ErrorPage(NamedTuple):
    """A page: cause and cure of an error."""

    name: str
    """Name of the error type."""
    what: str
    """The failure, and the records that the log has kept. Backquotes mark code."""
    why: tuple[str, ...]
    """Causes, the most frequent first."""
    fix: tuple[str, ...]
    """Things to do, in the order in which to try them."""
    example: str
    """Commands or a program that raise the error, run in an empty folder."""
    parent: str = ""
    """Name of the type that this one is made from."""

    @property
    def code(self) -> str:
        """Address of the page."""
        return code_of(self.name)

    @property
    def language(self) -> str:
        """Language of the example: `sh` or `python`."""
        return "sh" if self.example.startswith(SHELL) else "python"
