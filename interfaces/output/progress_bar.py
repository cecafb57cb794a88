"""Progress bar on stderr: shown on a terminal only, and removed when the work is done or interrupted.

Used by long commands, for example `everlog load` and `everlog verify`. Nothing of the bar may reach stdout, which may
be a file.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from everlog.interfaces.output.terminal_output import one_line
from everlog.store import Progress

WHAT_CHARS = 40
"""Longest description beside the bar."""


@contextmanager
def shown(what: str) -> Iterator[Progress]:
    """Show `what` and a bar while the block runs. The yielded function takes the work done and the work in total."""
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
    # Printed lines must reach stdout, which may be a file. With redirect_stdout they would go to the bar's terminal.
    with Bars(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bars:
        task = bars.add_task(one_line(what, WHAT_CHARS), total=None)

        def moved(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield moved


def _ignore_progress(_done: int, _total: int) -> None:
    """Take a progress report and do nothing: stderr is not a terminal."""
