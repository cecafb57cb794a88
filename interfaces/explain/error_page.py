"""The type of a page about an error. Imports nothing heavy."""

from typing import NamedTuple

from everlog.events.errors import code_of

SHELL = "$ "
"""Beginning of each line of an example that is commands; any other example is Python."""


class ErrorPage(NamedTuple):
    """What a reader of an error wants to know."""

    name: str
    """Name of the error type."""
    what: str
    """What failed, and what the log has kept. Backquotes mark code."""
    why: tuple[str, ...]
    """Causes, the most frequent first."""
    fix: tuple[str, ...]
    """What to do, in the order in which to try."""
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
