"""Make the three standard streams safe: open those that are closed, and notice output that is lost.

A process may be started with stdin, stdout or stderr closed (`>&-`, some supervisors). Then the next file that it opens
gets the number of that stream, and what a library or a child process prints would land in that file, which may be the
log of an agent. So each closed stream is opened to the null device, before anything else is opened.

Used by `command_run`. Imports nothing heavy.
"""

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDIN, STDOUT, STDERR = 0, 1, 2


def open_closed_streams() -> None:
    """Open each of the three streams that is closed to the null device: nothing comes in, and output is discarded."""
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is used, which is this one: those below it are open by now.
            os.open(os.devnull, os.O_RDONLY if number == STDIN else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the process ends
    if sys.stdout is None:
        sys.stdout = open(STDOUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(STDERR, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


class _Output(io.FileIO):
    """Stdout that remembers the error of a write. Buffers forget it, and argparse ignores it."""

    lost: OSError | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write to the file, once. Raise OSError."""
        try:
            return super().write(data)
        except OSError as error:
            self.lost = error
            raise


def watch_output() -> None:
    """Replace the stdout of a process by one that `output_error` can ask. One that a caller has replaced is left."""
    out = sys.stdout
    if type(out) is not io.TextIOWrapper or out is not sys.__stdout__:
        return
    raw = _Output(STDOUT, "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), out.encoding, out.errors, line_buffering=out.line_buffering, write_through=False
    )


def output_error() -> OSError | None:
    """Return the error of a write to stdout; None if all that was written has arrived."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.lost if isinstance(raw, _Output) else None


def discard_output() -> None:
    """Point stdout at the null device: Python flushes stdout at its exit, and would print the error again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
