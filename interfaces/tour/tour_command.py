"""The command `tour`.

Loaded by name from `interfaces/cli/args_operate.py`. The shell is closed however the tour ends, so that no process
outlives it.
"""

import difflib
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from everlog.events import BadInput
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output.terminal_output import console
from everlog.interfaces.tour.tour_runner import TourRunner
from everlog.interfaces.tour.tour_screen import TourScreen
from everlog.interfaces.tour.tour_shell import COLUMNS, STORE, TourShell, isolated
from everlog.interfaces.tour.tour_steps import NAMES, STEPS


def tour(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `tour`. Return its exit code."""
    start = step_number(args.first) if args.first else 0
    interactive = not args.plain and sys.stdin.isatty() and sys.stdout.isatty()
    out = console()
    if not out.is_terminal:
        out.width = min(out.width, COLUMNS)
    screen = TourScreen(out)
    if args.list:
        screen.list_steps()
        return 0
    with _folder(args.keep) as folder, isolated(folder, interactive=interactive):
        shell = TourShell(folder, world.ask)
        runner = TourRunner(shell, screen, world.ask)
        try:
            if interactive:
                with suppress(ImportError):
                    import readline  # noqa: F401 - line editing and history for `input`
                runner.play(start)
            else:
                runner.play_through(start)
        except KeyboardInterrupt as error:
            out.print()  # the interrupted prompt keeps its line
            raise KeyboardInterrupt(_goodbye(runner.place, args.keep)) from error
        finally:
            shell.close()
    if interactive or args.keep:
        screen.text(_goodbye(runner.place, args.keep))
    return 0


def step_number(given: str) -> int:
    """Return the number of a step, from 0, by its name or by its number from 1. Raises BadInput."""
    if given in NAMES:
        return NAMES.index(given)
    if given.isdecimal() and 1 <= int(given[:4]) <= len(STEPS):
        return int(given) - 1
    near = difflib.get_close_matches(given, NAMES, 1)
    maybe = f" Did you mean {near[0]!r}?" if near else ""
    raise BadInput(
        f"The tour has no step {given!r}.{maybe} Steps are numbered 1 to {len(STEPS)}; `everlog tour --list` has names."
    )


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    """Make the folder of the tour: a temporary one that is removed at the end, or the one to keep. Raises BadInput."""
    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="everlog-tour-"))
        try:
            yield folder.resolve()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    folder = Path(keep).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        filled = next(folder.iterdir(), None)
    except OSError as error:
        raise BadInput(f"--keep {keep}: the folder cannot be made or read: {error.strerror}.") from error
    if filled is not None:
        raise BadInput(f"--keep {keep}: the folder is not empty. Name a new folder, or an empty one.")
    yield folder.resolve()


def _goodbye(place: int, keep: str | None) -> str:
    """Return the last words of the tour: where to continue, and where the store is if it was kept."""
    kept = "" if keep is None else f" The store is kept: try `everlog agents --store {Path(keep) / STORE}`."
    if place >= len(STEPS):
        return f"You have done the whole tour.{kept}"
    return f"You left the tour. `everlog tour --from {STEPS[place].name}` continues at this step.{kept}"
