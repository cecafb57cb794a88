"""A program on a pseudo-terminal of its own, and the person who types at it.

Used by the tests of `everlog chat` and of streamed replies. The terminal is the program's controlling one, so that
Ctrl-C is a key while the program reads keys, and SIGINT at any other time, as for a person.
"""

import codecs
import os
import pty
import re
import select
import subprocess
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 30
"""Longest wait for an expected output; only a failing test waits so long."""
EDITING = "\x1b[?2004h"
"""Sequence that the chat writes whenever its editor begins to read keys: it asks the terminal to mark pastes."""
CTRL_C = "\x03"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
_OWN = ("COLUMNS", "LINES", "NO_COLOR")
"""Variables of this process that would change what the program believes of its terminal."""
_START = """\
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
"""Program that makes stdin the controlling terminal of its session, and becomes the module."""


class TerminalProgram:
    """A Python module that runs on a terminal."""

    def __init__(self, module: str, *argv: str, width: int = 60, height: int = 30) -> None:
        self._person, program = pty.openpty()
        self.resize(width, height)
        kept = {name: value for name, value in os.environ.items() if name not in _OWN}
        env = kept | {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "PROMPT_TOOLKIT_NO_CPR": "1"}
        ends = {"stdin": program, "stdout": program, "stderr": program}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, module, *argv], **ends, env=env, cwd=ROOT, start_new_session=True
        )
        os.close(program)
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._whole = ""
        self._unread = ""
        """Output after the words of the last `until`."""

    def resize(self, width: int, height: int) -> None:
        termios.tcsetwinsize(self._person, (height, width))

    @property
    def shown(self) -> str:
        """Whole output without control sequences and without overwritten text."""
        text = _CONTROL.sub("", self._whole).replace("\r\n", "\n")
        return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))

    def until(self, words: str) -> str:
        """Read until the words have come, on one line or broken over several. Return the text before them, without
        control sequences. The next call reads what came after them.
        """
        wanted = re.compile(r"\s+".join(map(re.escape, words.split())) if " " in words.strip() else re.escape(words))
        while (found := wanted.search(text := _CONTROL.sub("", self._unread).replace("\r", ""))) is None:
            assert self._read(), f"{words!r} did not come: {text[-2000:]!r}"
        self._unread = text[found.end() :]
        return text[: found.start()]

    def prompted(self, times: int) -> None:
        """Read until the editor has waited `times` times for an entry."""
        while self._whole.count(EDITING) < times:
            assert self._read(), self.shown

    def press(self, keys: str) -> None:
        os.write(self._person, keys.encode())

    def type(self, text: str) -> None:
        """Type a line, and the enter key."""
        self.press(f"{text}\r")

    def ended(self) -> int:
        """Read the rest of the output. Return the exit code."""
        while self._read():
            pass
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._person)

    def _read(self) -> bool:
        if not select.select([self._person], [], [], WAIT_S)[0]:
            return False
        try:
            data = os.read(self._person, 65536)
        except OSError:  # the program has ended
            return False
        text = self._text.decode(data)
        self._whole += text
        self._unread += text
        return bool(data)
