"""`everlog up` and `everlog down`: a Ray on this machine that goes on running between commands."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from actors.api import place_of
from actors.hosting.addresses import kept, running
from actors.hosting.processes import keeps
from events import ClusterError, UsageError

from .complaints import complain, plain
from .contract import World
from .opening import root_of, store_of

STOP_S = 60
"""Agents that are at work when the cluster stops are interrupted; it takes no longer than this."""
LOOK_S = 0.1
"""Between two looks at a process that is to end."""


def up(args: Namespace, world: World) -> int:
    """The command `up`."""
    place_of(None, root_of(args))  # a word in EVERLOG_RUNTIME that is no runtime is refused before a store is made
    store = store_of(args, world, create=True)
    address = running(store.root)
    if address:
        raise UsageError(f"A Ray cluster runs already at {address}; agents of this store run in it.")
    complain(f"starting Ray for {plain(str(store.root))}; this takes a few seconds")
    with tempfile.TemporaryFile() as errors:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "actors.hosting.keeper", str(store.root.resolve())],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
        )  # fmt: skip
        assert keeper.stdout is not None
        address = keeper.stdout.readline().strip()
        if not address:
            ended = keeper.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace")
            raise ClusterError(_last_line(said) or f"Ray ended with exit code {ended} and said nothing.")
    print(f"Ray runs at {address} (process {keeper.pid}). `everlog down` stops it.")
    return 0


def down(args: Namespace, world: World) -> int:
    """The command `down`."""
    root = root_of(args)
    known = kept(root)
    if known is None or not keeps(known.pid, root):
        raise UsageError(f"No Ray is kept running for the store {plain(str(root))}; `everlog up` starts one.")
    os.kill(known.pid, signal.SIGTERM)
    if not asyncio.run(_gone(known.pid, root, world)):
        raise ClusterError(f"Ray (process {known.pid}) does not stop; end it by hand: kill -9 {known.pid}.")
    print("Ray is stopped. The agents are in their logs.")
    return 0


async def _gone(pid: int, root: Path, world: World) -> bool:
    """Wait until the process has ended; False if it does not."""
    for _ in range(int(STOP_S / LOOK_S)):
        if not keeps(pid, root):
            return True
        await world.sleep(LOOK_S)
    return False


def _last_line(said: str) -> str:
    """What an error came to: the last line of a traceback, without the name of its type."""
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].partition(": ")[2] or lines[-1] if lines else ""
