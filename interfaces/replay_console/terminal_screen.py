"""Full-screen terminal with single keys, by rich's Live. The terminal is restored however the process ends.

Used by `replay_command`.
"""

import codecs
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Self

from rich.live import Live
from rich.text import Text

from everlog.interfaces.output.terminal_output import console
from everlog.interfaces.replay_console.key_decoder import keys_of

READ_BYTES = 1024
ESCAPE_S = 0.05
"""Seconds to wait for the rest of an escape sequence before an escape counts as the escape key."""
TERMINATED = 128 + signal.SIGTERM


class TerminalScreen:
    """Terminal of this process while the block runs. Ctrl-Z restores it until the process continues."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._out = console()
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._sent = ""
        self._live: Live | None = None
        self._undo = ExitStack()
        self._page = Text()
        self._waiting = False
        self._stop_asked = False

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            for number, handler in ((signal.SIGTSTP, self._stop), (signal.SIGTERM, self._end)):
                undo.callback(signal.signal, number, signal.signal(number, handler))
            undo.callback(self._leave)
            self._take()
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def size(self) -> tuple[int, int]:
        """Return the number of cells in a line and the number of lines."""
        return self._out.size.width, self._out.size.height

    def show(self, page: Text) -> None:
        """Show a frame in place of the previous one."""
        self._page = page
        if self._live is not None:
            self._live.update(page, refresh=True)

    def keys(self, seconds: float) -> Sequence[str]:
        """Return the keys that were pressed; wait at most `seconds` for the first one."""
        if not self._pressed(ESCAPE_S if self._sent else seconds):
            found, self._sent = keys_of(self._sent, over=True)
            return found
        read = os.read(self._fd, READ_BYTES)
        if not read:
            return ["q"]
        found, self._sent = keys_of(self._sent + self._text.decode(read), over=False)
        return found

    def _pressed(self, seconds: float) -> bool:
        """Wait at most `seconds` for a key. Return True if there is one. Ctrl-Z takes effect here."""
        self._waiting = True
        try:
            if self._stop_asked:
                self._stop_process()
            return bool(select.select([self._fd], [], [], seconds)[0])
        finally:
            self._waiting = False

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Restore the original state of the terminal while the block runs."""
        self._leave()
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        """Take over the terminal. Idempotent."""
        if self._live is not None:
            return
        self._saved = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        self._live = Live(
            self._page, console=self._out, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        with ExitStack() as undo:
            undo.callback(self._leave)
            self._live.start(refresh=True)
            undo.pop_all()

    def _leave(self) -> bool:
        """Restore the terminal. Return True if this object had taken it over. Idempotent."""
        live, self._live = self._live, None
        if live is None:
            return False
        try:
            live.stop()
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)
        return True

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        # A handler may interrupt a write of a frame, and a second write inside the first is an error of Python's
        # streams. While the terminal is ours, the process therefore stops only where it waits for a key.
        if self._live is None or self._waiting:
            self._stop_process()
        else:
            self._stop_asked = True

    def _stop_process(self) -> None:
        waiting, self._waiting = self._waiting, False
        again = True
        while again:  # Ctrl-Z while the frame is drawn again stops the process once more
            self._stop_asked = False
            had = self._leave()
            # The handler replaces the default action of SIGTSTP, so the process stops itself, after the terminal is
            # restored.
            os.kill(os.getpid(), signal.SIGSTOP)
            if had:
                self._take()
            again = self._stop_asked
        self._waiting = waiting

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)
