"""Hold the keys that are typed while the agent works, until the editor reads them.

Used by the prompt of `everlog chat` around each turn. Without it the terminal would print the keys into the agent's
answer. A held Enter becomes a line break, so that nothing that is typed or pasted meanwhile is sent by accident.
"""

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

_LOCAL = 3
"""Index of the local modes in the list of `termios.tcgetattr`."""


@contextmanager
def keys_held() -> Iterator[None]:
    """Hold typed keys while the block runs. Ctrl-C and Ctrl-Z work as before. Does nothing without a terminal."""
    try:
        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
    except (OSError, ValueError, termios.error):  # stdin is no terminal, or was replaced by a program
        yield
        return
    held = list(before)
    held[_LOCAL] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(fd, termios.TCSANOW, held)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
