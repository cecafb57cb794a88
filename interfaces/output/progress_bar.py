"""How far long work is: a bar on stderr, on a terminal only, and gone when the work is done or interrupted."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from everlog.interfaces.output.terminal_output import one_line
from everlog.store import Progress

WHAT_CHARS = 40
"""Longest name of a work beside its bar."""


@contextmanager
def shown(what: str) -> Iterator[Progress]:
    """While the block runs `what` is shown; what it is given tells how much is done, of how much in all."""
    if not sys.stderr.isatty():
        yield _ignore_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    # What is printed meanwhile must reach stdout, which may be a file, and not the terminal of the bar.
    with Bars(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bars:
        task = bars.add_task(one_line(what, WHAT_CHARS), total=None)

        def moved(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield moved


def _ignore_progress(_done: int, _total: int) -> None:
    """Nobody looks."""
