"""Read /proc about other processes of this machine: whether one runs a cluster, and the children of a process.

Used by `local_daemon`, `ray_address` and `everlog down`. The number of an ended process may belong to another program
later: check a number before the process is killed.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def keeps_cluster(pid: int, root: Path) -> bool:
    """Return True if the process runs a cluster for the store in `root`, and its number was not given to another
    program.
    """
    if not (_PROC / "self").exists():
        return _answers_signals(pid)
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"everlog.actors.cluster.local_daemon" in words and os.fsencode(root.resolve()) in words


def starting_daemon(root: Path) -> int | None:
    """Return a process that starts, or runs, a cluster for the store in `root`; None if there is none, or no /proc.

    A daemon records itself only when its cluster runs. One whose `everlog up` was killed meanwhile is found here.
    """
    numbers = (int(folder.name) for folder in _PROC.glob("[0-9]*"))
    return next((pid for pid in numbers if keeps_cluster(pid, root)), None)


def children(pid: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the number, the name, and True if it lives (False for a zombie), of each child of a process."""
    for folder in _PROC.glob("[0-9]*"):
        try:
            head, _, tail = (folder / "stat").read_text().rpartition(")")
        except OSError:
            continue
        state, parent = tail.split()[:2]
        if int(parent) == pid:
            yield int(folder.name), head.partition("(")[2], state not in "ZX"


def descendants(pid: int) -> set[int]:
    """Return all processes that a process started, and those that they started."""
    found: set[int] = set()
    for child, _, _ in children(pid):
        found |= {child} | descendants(child)
    return found


def parent_name() -> str:
    """Return the number and the name of this process's parent: 1 (systemd); only the number without /proc."""
    parent = os.getppid()
    try:
        return f"{parent} ({(_PROC / str(parent) / 'comm').read_text().strip()})"
    except OSError:
        return str(parent)


def end(pids: set[int]) -> None:
    """Kill those of the processes that still run."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _answers_signals(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
