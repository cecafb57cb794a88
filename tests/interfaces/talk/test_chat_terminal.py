"""`everlog chat` on a pseudo-terminal."""

from collections.abc import Callable, Iterator

import pytest

from everlog.store import typed_before, typed_path
from tests.support.cli.command_line import Line
from tests.support.cli.terminal_program import TerminalProgram

PASTE = "\r\n".join(f"  line {number} of a trace" for number in range(40))
Opens = Callable[[int], TerminalProgram]


@pytest.fixture
def chat_at(cli: Line) -> Iterator[Opens]:
    """Return a function that opens a chat with sam on a terminal of so many columns."""
    found: list[TerminalProgram] = []

    def opened(width: int) -> TerminalProgram:
        argv = ("--store", str(cli.root), "chat", "sam")
        found.append(TerminalProgram("everlog.interfaces.cli.main", *argv, width=width))
        return found[-1]

    yield opened
    for chat in found:
        chat.close()


def said(cli: Line) -> list[str]:
    return [one["text"] for one in cli.lines("events", "sam") if one["type"] == "user_message"]


def test_a_person_types_pastes_and_comes_back(cli: Line, chat_at: Opens) -> None:
    """A paste is one message at every width; Ctrl-C clears, hints, and leaves; the next chat recalls what was typed."""
    chat = chat_at(40)
    chat.until("you  ")
    chat.press(f"\x1b[200~{PASTE}\x1b[201~")
    chat.until("line 39 of a trace")
    chat.resize(200, 30)
    chat.press("\r")
    chat.until("sam  ")
    chat.until("you  ")
    chat.press("half a line\x03")
    chat.press("/pre\t")
    chat.until("/pressure")
    chat.press("\r")
    chat.until("as of seq")
    chat.until("you  ")
    chat.press("\x03")
    chat.until("Ctrl-C again)")
    chat.until("you  ")
    chat.press("\x03")
    chat.until("Goodbye.")
    assert chat.ended() == 0
    assert said(cli) == [PASTE.replace("\r\n", "\n").strip("\n")]
    chat = chat_at(200)
    chat.until("now")
    chat.until("you  ")
    chat.press("\x1b[A")
    chat.until("/pressure")
    chat.press("\x03\x04")
    chat.until("Goodbye.")
    assert chat.ended() == 0
    assert len(typed_before(typed_path(cli.root, "sam"))) == 2
