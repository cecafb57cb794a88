"""The console on a pseudo-terminal: it draws, reads keys, and restores the terminal when it ends."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.live import Live
from rich.text import Text

from everlog.interfaces.replay_console.terminal_screen import TerminalScreen
from tests.support.cli.command_line import Line

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 30
"""Longest wait for an expected output; only a failing test waits so long."""
WIDTH, HEIGHT = 100, 30


def resize(fd: int, width: int, height: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Yield both ends of a pseudo-terminal: the person's end and the program's end."""
    person, program = pty.openpty()
    resize(program, WIDTH, HEIGHT)
    yield person, program
    os.close(person)
    os.close(program)


class Watched:
    """A command on a terminal of its own."""

    def __init__(self, terminal: tuple[int, int], *argv: str) -> None:
        self.person, program = terminal
        self.sent = ""
        """Everything that the command has written, as far as the test has read it."""
        self._text = codecs.getincrementaldecoder("utf-8")()
        self.before = termios.tcgetattr(program)
        self.program = program
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        env = kept | {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "everlog.interfaces.cli.main", *argv]
        ends = {"stdin": program, "stdout": program, "stderr": program}
        self.process = subprocess.Popen(command, **ends, env=env, cwd=ROOT, start_new_session=True)

    def frame(self) -> str:
        """Return the last whole frame, without colours."""
        frames = self.sent.split("\x1b[H")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frames[-1])

    def until(self, *words: str, width: int = WIDTH) -> None:
        """Read until the frame has all the words, and no line that is wider than the terminal."""
        while not self._has(words, width):
            assert select.select([self.person], [], [], WAIT_S)[0], f"{words} did not come: {self.frame()}"
            self._read()

    def _read(self) -> None:
        self.sent += self._text.decode(os.read(self.person, 65536))

    def _has(self, words: Sequence[str], width: int) -> bool:
        frame = self.frame()
        return all(word in frame for word in words) and max(map(len, frame.splitlines())) <= width

    def press(self, keys: str) -> None:
        os.write(self.person, keys.encode())

    def ended(self) -> int:
        """Read the rest of the output. Return the exit code."""
        self._on_commit(lambda: self.process.poll() is not None)
        return self.process.returncode

    def stopped(self) -> None:
        """Wait until the process has stopped, and forget its output until then."""
        self._on_commit(self._has_stopped)
        self.sent = ""

    def _has_stopped(self) -> bool:
        found, status = os.waitpid(self.process.pid, os.WUNTRACED | os.WNOHANG)
        assert not found or os.WIFSTOPPED(status), f"it ended with status {status} instead: {self.frame()}"
        return bool(found)

    def _on_commit(self, over: Callable[[], bool]) -> None:
        """Read until `over()` is true, and then read the rest: a program blocks on a terminal that is not read."""
        for _ in range(WAIT_S * 20):
            ended = over()
            while select.select([self.person], [], [], 0 if ended else 0.05)[0]:
                self._read()
            if ended:
                return
        raise AssertionError(f"it goes on: {self.frame()}")

    def assert_restored(self) -> None:
        """Check that the main screen and the cursor are shown again, and that the terminal reads lines with echo."""
        assert self.sent.rindex("\x1b[?1049l") > self.sent.rindex("\x1b[?1049h")
        assert self.sent.rindex("\x1b[?25h") > self.sent.rindex("\x1b[?25l")
        assert termios.tcgetattr(self.program) == self.before


@pytest.fixture
def watched(cli: Line, terminal: tuple[int, int]) -> Iterator[Watched]:
    """Start `everlog replay sam --speed 0.125x` on a terminal; sam's story has three messages."""
    cli.real = True
    for words in ("Hi, my name is Chad and I sail", "What is my name?", "My dog is called Rex"):
        cli.ok("send", "sam", words)
    console = Watched(terminal, "--store", str(cli.root), "replay", "sam", "--speed", "0.125x")
    yield console
    console.process.kill()
    console.process.wait()


def test_the_console_shows_listens_and_leaves(watched: Watched) -> None:
    """Frames are drawn, each key works, and a new terminal size is drawn at once; q ends the console and restores the
    terminal.
    """
    watched.until(" PLAY 0.125x ", "core memory")
    watched.press(" ")
    watched.until(" PAUSE 0.125x ")
    watched.press("g\x1b[C")
    watched.until("agent_configured", "seq 2 of ")
    watched.press("n")
    watched.until("turn 1 ", "I sail")
    watched.press("/rex\r")
    watched.until("My dog is called Rex")
    watched.press("?")
    watched.until("─ keys ─", "press any key to go back")
    watched.press("x")
    watched.until("─ events ─")
    watched.press("F")
    watched.until("name: █")
    watched.press("bo\x7f\x1b")
    watched.until("q quit")
    watched.press("G")
    watched.until(" END ")
    resize(watched.program, 60, 20)
    watched.until(" END ", "q quit", width=60)
    watched.press("q")
    assert watched.ended() == 0
    watched.assert_restored()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_behind(watched: Watched, number: signal.Signals, code: int) -> None:
    """After Ctrl-C and after a kill the terminal is restored."""
    watched.until("core memory")
    watched.process.send_signal(number)
    assert watched.ended() == code
    watched.assert_restored()


def test_a_stopped_console_gives_the_terminal_back(watched: Watched) -> None:
    """Ctrl-Z stops the program with the terminal restored; when resumed, the console draws again and reads keys."""
    watched.until("core memory")
    watched.press(" ")
    watched.until(" PAUSE ")
    watched.process.send_signal(signal.SIGTSTP)
    watched.stopped()
    assert termios.tcgetattr(watched.program) == watched.before
    watched.process.send_signal(signal.SIGCONT)
    watched.until("─ events ─", " PAUSE ")
    watched.press("G")
    watched.until(" END ")
    watched.press("q")
    assert watched.ended() == 0
    watched.assert_restored()


class StopWhenDrawn:
    """Page that receives Ctrl-Z while it is drawn for the nth time."""

    def __init__(self, nth: int = 1) -> None:
        self.nth = nth
        self.drawn = 0
        self.drawing = False

    def __rich__(self) -> Text:
        self.drawn += 1
        self.drawing = True
        if self.drawn == self.nth:
            signal.raise_signal(signal.SIGTSTP)
        self.drawing = False
        return Text("x")


@contextmanager
def at(terminal: tuple[int, int]) -> Iterator[TerminalScreen]:
    """Open a screen in this process, on a terminal whose size is so small that no write blocks."""
    _, program = terminal
    resize(program, 20, 3)
    with pytest.MonkeyPatch.context() as patch, os.fdopen(os.dup(program)) as typed:
        patch.setenv("TERM", "xterm-256color")
        patch.delenv("COLUMNS", raising=False)
        with os.fdopen(os.dup(program), "w") as shown:
            patch.setattr(sys, "stdin", typed)
            patch.setattr(sys, "stdout", shown)
            with TerminalScreen() as screen:
                yield screen


def test_an_error_of_ours_leaves_nothing_behind(terminal: tuple[int, int]) -> None:
    """Any exception passes through, and terminal and signal handlers are restored."""
    _, program = terminal
    before = termios.tcgetattr(program)
    handlers = [signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGTERM)]
    with pytest.raises(ZeroDivisionError), at(terminal) as screen:
        screen.show(Text("x"))
        assert termios.tcgetattr(program) != before
        raise ZeroDivisionError
    assert termios.tcgetattr(program) == before
    assert [signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGTERM)] == handlers


def test_a_stop_while_the_terminal_is_given_back_does_not_take_it(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-Z while a fork runs leaves the terminal restored until the fork is done; at the end it is as before the
    start.
    """
    _, program = terminal
    before = termios.tcgetattr(program)
    with at(terminal) as screen:
        monkeypatch.setattr(os, "kill", lambda _pid, _number: None)
        taken = termios.tcgetattr(program)
        with screen.suspended():
            screen._stop(signal.SIGTSTP, None)
            assert termios.tcgetattr(program) == before
        assert termios.tcgetattr(program) == taken
        screen._stop(signal.SIGTSTP, None)
        assert termios.tcgetattr(program) == taken
    assert termios.tcgetattr(program) == before


def test_a_screen_that_cannot_be_begun_leaves_nothing_behind(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the page cannot be drawn after single-key input was switched on, line input is restored."""
    _, program = terminal
    before, handler = termios.tcgetattr(program), signal.getsignal(signal.SIGTSTP)

    def failing(_live: Live, *, refresh: bool) -> None:
        raise OSError(refresh)

    monkeypatch.setattr(Live, "start", failing)
    with pytest.raises(OSError, match="True"), at(terminal):
        pass
    assert termios.tcgetattr(program) == before
    assert signal.getsignal(signal.SIGTSTP) == handler


def test_keys_come_one_by_one_and_in_pieces(terminal: tuple[int, int]) -> None:
    """Keys need no Enter; a key in two reads is one key, a lone escape is a key, and no input gives no key."""
    person, _ = terminal
    with at(terminal) as screen:
        assert list(screen.keys(0)) == []
        os.write(person, b"n\xc3")
        assert list(screen.keys(WAIT_S)) == ["n"]
        os.write(person, b"\xa9\x1b[")
        assert list(screen.keys(WAIT_S)) == ["é"]
        os.write(person, b"C")
        assert list(screen.keys(WAIT_S)) == ["right"]
        os.write(person, b"\x1b")
        assert [*screen.keys(WAIT_S), *screen.keys(WAIT_S)] == ["escape"]


def test_while_suspended_the_terminal_is_as_it_was(terminal: tuple[int, int]) -> None:
    """Output and questions of a fork reach the terminal in order; afterwards the frame is shown again."""
    person, program = terminal
    before = termios.tcgetattr(program)
    with at(terminal) as screen:
        screen.show(Text("the frame"))
        with screen.suspended():
            assert termios.tcgetattr(program) == before
            screen.show(Text("unseen"))
        assert termios.tcgetattr(program) != before
    sent = ""
    while select.select([person], [], [], 0)[0]:
        sent += os.read(person, 65536).decode()
    assert sent.index("the frame") < sent.index("\x1b[?1049l") < sent.rindex("\x1b[?1049h") < sent.rindex("unseen")


def test_ctrl_z_in_the_middle_of_a_frame_stops_once_the_frame_is_whole(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop that arrives while a frame is written takes effect when keys are read, because a write inside a write is
    an error.
    """
    kills: list[tuple[int, int]] = []
    page = StopWhenDrawn()
    with at(terminal) as screen:
        monkeypatch.setattr(os, "kill", lambda pid, number: kills.append((pid, number)))
        screen.show(page)  # type: ignore[arg-type]
        assert (page.drawn, kills) == (1, [])
        screen.keys(0)
        assert kills == [(os.getpid(), signal.SIGSTOP)]
        screen.keys(0)
        assert len(kills) == 1


def test_ctrl_z_while_the_frame_comes_back_stops_again_after_it(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a stop the frame is drawn again, and a second Ctrl-Z in the middle of it waits until it is whole."""
    page = StopWhenDrawn(nth=2)
    stops: list[bool] = []
    with at(terminal) as screen:
        monkeypatch.setattr(os, "kill", lambda *_: stops.append(page.drawing))
        screen.show(page)  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGTSTP)
        screen.keys(0)
        assert stops == [False, False]
