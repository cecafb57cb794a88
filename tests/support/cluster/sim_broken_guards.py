"""Guards of host, worker, supervisor and schedule, each broken on purpose, and a seed for each that detects it.

`python -m tests.support.cluster.sim_broken_guards [NAME ...]` searches and prints the first such seed.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from everlog.actors import command_sender
from everlog.actors.agent.agent import Agent
from everlog.actors.cluster import supervisor
from everlog.actors.cluster.start_queue import StartQueue
from everlog.actors.cluster.supervisor import Supervisor
from everlog.actors.command_sender import CommandSender
from everlog.actors.hosting import host
from everlog.actors.hosting import timer_schedule as timers
from everlog.actors.hosting.host import Host
from everlog.actors.hosting.subscribers import Subscribers
from everlog.actors.hosting.timer_schedule import TimerSchedule
from everlog.events import Heartbeat, HostLost
from everlog.store.stores.memory_store import MemoryLog
from tests.support.cluster import sim_checks
from tests.support.cluster.sim_world import simulate

Patch = AbstractContextManager[Any]


async def _always_due(agent: Any, command: Any, now: int) -> tuple[Heartbeat, list[Any]]:
    return Heartbeat(text="", reason="timer", timer=command.timer, late=command.late), []


async def _whenever(self: Agent, event: Any, *, event_id: str | None = None, **_: Any) -> Any:
    return (await self.commit([event], turn=None, step=0, ids=[event_id] if event_id else None))[0]


async def _twice(self: Any, command: Any) -> Any:
    """Replace `CommandSender._sent`: after a lost host, deliver all records again."""
    while True:
        try:
            async for heard in self.runtime.perform(self.agent_id, command, 0):
                yield heard
            return
        except HostLost:
            pass


async def _nothing(*_: Any, **__: Any) -> None:
    pass


async def _ruthless(self: Host, **_: Any) -> bool:
    async with self._gate:
        await self._let_go()
    return True


def _boundless(self: StartQueue, at_once_max: int, clock: Any) -> None:
    REAL_STARTS(self, 1000, clock)
    del at_once_max


def _joined(self: Subscribers, command_id: str, role: Any, *, held: bool) -> Any:
    return REAL_JOINED(self, command_id, role, held=False)


def _unplanned(self: TimerSchedule, agent_id: str, timers: Any) -> None:
    if agent_id not in self._kept:
        REAL_KNOW(self, agent_id, timers)


REAL_JOINED, REAL_KNOW, REAL_STARTS = Subscribers.joined, TimerSchedule.know, StartQueue.__init__
BREAKS: dict[str, tuple[int, Callable[[], Patch]]] = {
    "sent again": (0, lambda: patch.object(command_sender, "RESENDS_MAX", 0)),
    "told once": (0, lambda: patch.object(CommandSender, "_sent", _twice)),
    "let go of when nobody uses it": (1, lambda: patch.object(Host, "passivate", _ruthless)),
    "due": (0, lambda: patch.object(host, "due_input", _always_due)),
    "not before it is due": (2, lambda: patch.object(Agent, "receive", _whenever)),
    "held until settled": (4, lambda: patch.object(Subscribers, "joined", _joined)),
    "timers are told": (0, lambda: patch.object(TimerSchedule, "know", _unplanned)),
    "recovery": (1, lambda: patch.object(Supervisor, "_recover", _nothing)),
    "our own commands are sent again": (198, lambda: patch.object(supervisor, "RESENDS_MAX", 0)),
    "what failed is tried again": (33, lambda: patch.object(timers, "TIMER_RETRY_US", 10**12)),
    "the newest epoch": (2, lambda: patch.object(MemoryLog, "_raise_if_unusable", lambda _: None)),
    "starts at once": (6, lambda: patch.object(StartQueue, "__init__", _boundless)),
}
"""By guard: the seed that detects its absence, and a patch that removes it."""


def fails(seed: int, guard: str = "") -> str:
    """Return the error of a seed's world without a guard, or an empty string."""
    return sim_checks.error_of(simulate, seed, BREAKS[guard][1]() if guard else nullcontext())


def main(names: list[str]) -> None:
    for name in names or BREAKS:
        seed = next((seed for seed in range(400) if fails(seed, name)), None)
        print(f"{name}: {seed}  {fails(seed, name)[:100] if seed is not None else '-'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
