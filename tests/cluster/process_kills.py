"""Kills of processes, and helpers to check that nothing was lost."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from everlog.actors.agent_system import AgentSystem
from everlog.actors.cluster.ray_address import host_name, namespace
from everlog.projections import PROJECTIONS
from tests.cluster.conftest import descendants, ends

LOOK_S = 0.05
"""Seconds between two checks of a condition that sends no notification."""


def actor(system: AgentSystem, name: str) -> Any:
    """Return an actor of the system's store: `supervisor`, `gateway`, or a host. Raises ValueError if there is none."""
    import ray

    return ray.get_actor(name, namespace=namespace(system.runtime._root))  # type: ignore[attr-defined]


def host_of(system: AgentSystem, name: str = "sam") -> Any:
    """Return the actor that runs the agent."""
    return actor(system, host_name(name))


async def pid_of_host(system: AgentSystem, name: str = "sam") -> int:
    """Return the process id of the actor that runs the agent."""
    pid: int = await host_of(system, name).ready.remote()
    return pid


def titled(word: str, ancestor: int | None = None) -> list[int]:
    """Return the descendants of this process, or of `ancestor`, whose command line begins with the word or has it as
    program.
    """
    found = []
    for pid in descendants(ancestor or os.getpid()):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if line.startswith(word) or f"/{word} " in line:
            found.append(pid)
    return found


def kill(*pids: int) -> None:
    """Send SIGKILL to the processes, and wait until they have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):  # it has ended before
            os.kill(pid, signal.SIGKILL)
    assert all(ends(pid) for pid in pids)


async def until(condition: Callable[[], bool]) -> None:
    """Poll a condition that sends no notification; the test's own time limit ends the wait."""
    while not condition():  # noqa: ASYNC110 - a log sends no notice when it grows
        await asyncio.sleep(LOOK_S)


def checksums(system: AgentSystem, name: str = "sam", as_of: int | None = None) -> dict[str, str]:
    """Return a checksum of every projection of the agent as of a seq."""
    view = system._reading.view(name)
    upto = view.head.seq if as_of is None else as_of
    try:
        return {projection: view.projections.checksum(projection, name, upto) for projection in PROJECTIONS}
    finally:
        view.close()


def statuses(system: AgentSystem, name: str = "sam") -> list[str]:
    """Return how each turn of the agent ended, in order."""
    view = system._reading.view(name)
    try:
        return [str(turn["status"]) for turn in sorted(view.rows("turns"), key=lambda turn: turn["turn"])]
    finally:
        view.close()
