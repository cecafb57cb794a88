"""Input of a chat: the editor on a terminal, otherwise lines; and where output goes while a person types.

Used by `everlog chat`. All output of other threads goes through `ChatInput.around`, because a line that is being typed
must not be overwritten.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console

from everlog.events import EverlogError, Record
from everlog.interfaces.common.front_end import Interface, LineReader
from everlog.interfaces.line_editor.completion import Suggest
from everlog.interfaces.line_editor.terminal_check import has_editor_terminal

PROMPT = "you  "
LEAVE_HINT = "(Ctrl-D or /exit leaves; so does Ctrl-C again)"


class ChatInput(Protocol):
    """Entries that a person or a script gives to a chat."""

    typed: bool
    """True if a person types; False if a script gives the lines."""

    def next_entry(self) -> str:
        """Return the next entry, which may have several lines. Raises EOFError at the end of the input, and
        KeyboardInterrupt for Ctrl-C.
        """
        ...

    @contextmanager
    def working(self) -> Iterator[None]:
        """Give the terminal to the agent's output while the block runs."""
        ...

    def print_above(self, work: Callable[[], None]) -> None:
        """Run `work`, which prints, so that the line that is being typed stays whole."""
        ...


class ScriptInput:
    """Lines of stdin; each is one entry."""

    typed = False

    def next_entry(self) -> str:
        """Return the next line."""
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run the block."""
        yield

    def print_above(self, work: Callable[[], None]) -> None:
        """Run `work`."""
        work()


class PlainInput(ScriptInput):
    """Lines of a person whose terminal has no editor, or whose output goes to a file."""

    typed = True

    def __init__(self, ask: LineReader) -> None:
        self._ask = ask

    def next_entry(self) -> str:
        """Ask for the next line."""
        try:
            return self._ask(PROMPT)
        except (EOFError, KeyboardInterrupt):
            print()
            raise


class EditorInput:
    """Entries that a person edits on a terminal."""

    typed = True

    def __init__(self, history: Path, suggest: Suggest, out: Console, show: Callable[[str], None]) -> None:
        from everlog.interfaces.line_editor.terminal_editor import TerminalEditor

        colours = out.color_system is not None
        self._editor = TerminalEditor(
            PROMPT, history=history, hint=LEAVE_HINT, show=show, suggest=suggest, colours=colours
        )

    def next_entry(self) -> str:
        """Return the next entry, which may have several lines."""
        return self._editor.read()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold typed keys for the next entry while the block runs."""
        from everlog.interfaces.line_editor.held_keys import keys_held

        with keys_held():
            yield

    def print_above(self, work: Callable[[], None]) -> None:
        """Run `work` above the entry that is being edited."""
        self._editor.print_above(work)


def input_of(ask: LineReader, history: Path, suggest: Suggest, out: Console, show: Callable[[str], None]) -> ChatInput:
    """Return the input of this process: the editor if a person has a terminal at both ends."""
    if not sys.stdin.isatty():
        return ScriptInput()
    if has_editor_terminal():
        return EditorInput(history, suggest, out, show)
    return PlainInput(ask)


class AboveInput:
    """Interface that prints above the entry that a person may be typing."""

    def __init__(self, given: ChatInput, interface: Interface) -> None:
        self._given = given
        self._interface = interface

    def on_records(self, records: Sequence[Record]) -> None:
        """Show the records above the typed entry."""
        self._given.print_above(lambda: self._interface.on_records(records))

    def on_error(self, error: EverlogError) -> None:
        """Show the error above the typed entry."""
        self._given.print_above(lambda: self._interface.on_error(error))
