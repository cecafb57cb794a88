"""Prompt of a conversation: read the next line, and keep a half-typed line intact while other output is printed.

Used by `everlog chat`.
"""

import contextlib
import sys
from collections.abc import Sequence

from rich.console import Console

from everlog.events import EverlogError, Record
from everlog.interfaces.common.front_end import Interface, LineReader


class Prompt:
    """Prompt with line editing on a terminal; otherwise the lines of stdin."""

    def __init__(self, ask: LineReader, out: Console) -> None:
        self._ask = ask
        self._typed = sys.stdin.isatty()
        coloured = out.is_terminal and out.color_system is not None
        self._prompt = "\001\033[1;32m\002you\001\033[0m\002  " if coloured else "you  "
        self._asking = False
        if self._typed:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - line editing and history for `input`

    def line(self) -> str:
        """Return the next line. Raises EOFError at the end of the input, and KeyboardInterrupt for Ctrl-C."""
        if not self._typed:
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line
        self._asking = True
        try:
            return self._ask(self._prompt)
        finally:
            self._asking = False

    def around(self, interface: Interface) -> "PromptInterface":
        """Return an interface that prints above the line that is being typed, and then restores that line."""
        return PromptInterface(self, interface)

    def cleared(self) -> None:
        """Leave the line that is being typed, because output follows."""
        if self._asking:
            print()

    def restore_line(self) -> None:
        """Print the prompt and the text typed so far again, after other output."""
        if self._asking:
            readline = sys.modules.get("readline")
            typed = readline.get_line_buffer() if readline is not None else ""
            print(self._prompt.replace("\001", "").replace("\002", "") + typed, end="", flush=True)


class PromptInterface:
    """Interface that prints above the line that a person may be typing."""

    def __init__(self, prompt: Prompt, interface: Interface) -> None:
        self._prompt = prompt
        self._interface = interface

    def on_records(self, records: Sequence[Record]) -> None:
        """Show the records above the typed line."""
        self._prompt.cleared()
        self._interface.on_records(records)
        self._prompt.restore_line()

    def on_error(self, error: EverlogError) -> None:
        """Show the error above the typed line."""
        self._prompt.cleared()
        self._interface.on_error(error)
        self._prompt.restore_line()
