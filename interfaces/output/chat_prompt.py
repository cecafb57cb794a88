"""The prompt of a conversation: where the next line comes from, and what is shown while somebody types it."""

import contextlib
import sys
from collections.abc import Sequence

from rich.console import Console

from everlog.events import EverlogError, Record
from everlog.interfaces.common.front_end import Interface, LineReader


class Prompt:
    """A prompt with line editing on a terminal, else the lines of stdin."""

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
        """The next line. Raises EOFError where there is none, KeyboardInterrupt."""
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
        """The interface, which leaves the prompt as it was when something happens while a line is typed."""
        return PromptInterface(self, interface)

    def cleared(self) -> None:
        """Something is about to be shown: leave the line on which somebody types."""
        if self._asking:
            print()

    def shown_again(self) -> None:
        """It was shown: the prompt, and what was typed so far, stand in the last line again."""
        if self._asking:
            readline = sys.modules.get("readline")
            typed = readline.get_line_buffer() if readline is not None else ""
            print(self._prompt.replace("\001", "").replace("\002", "") + typed, end="", flush=True)


class PromptInterface:
    """An interface that people read while they may be typing."""

    def __init__(self, prompt: Prompt, interface: Interface) -> None:
        self._prompt = prompt
        self._interface = interface

    def on_records(self, records: Sequence[Record]) -> None:
        """Show them above the line that is typed."""
        self._prompt.cleared()
        self._interface.on_records(records)
        self._prompt.shown_again()

    def on_error(self, error: EverlogError) -> None:
        """Show it above the line that is typed."""
        self._prompt.cleared()
        self._interface.on_error(error)
        self._prompt.shown_again()
