"""Derive facts of an agent in a process of its own, and die by SIGKILL at a sync of the disk.

Run by `test_killed_derivations.py` as `python -m tests.soak.derivation_victim ROOT SYNC WHEN`: the process kills itself
at the SYNC-th sync after the agent was opened, `before` or `after` it is done; SYNC 0: never. It prints `done` at the
end.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.derivation.rule_facts import RuleFacts
from everlog.actors.deriving.memory_derivation import MemoryDerivation
from everlog.actors.ports.real_clock import RealClock, RealIds, make_store

MESSAGES_MAX = 2
"""Messages of one commit, so that there are many."""


def dying(sync: Callable[[int], None], at: int, when: str) -> Callable[[int], None]:
    """Return a sync of which the call number `at`, from 1, kills the process before or after it is done."""
    calls = 0

    def counted(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        sync(descriptor)
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return counted


async def derive(root: Path, at: int, when: str) -> None:
    """Open the agent, then derive all that is new, until a sync kills the process."""
    clock, ids = RealClock(), RealIds()
    system = LocalSystem(make_store(root, clock, ids))
    async with system.agent("sam", Settings(model="offline")) as agent:
        if at:
            os.fdatasync = dying(os.fdatasync, at, when)
        await MemoryDerivation(agent, "facts", RuleFacts(), messages_max=MESSAGES_MAX).run()
    print("done")


if __name__ == "__main__":
    asyncio.run(derive(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
