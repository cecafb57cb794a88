"""Move agents into the shards where they belong, after the number of shards has changed.

It holds no state: an agent is out of place if the register has it in a shard that an earlier number of shards gives its
name and the present number does not, or in one that is no more. An agent in any other shard was moved there because of
its load (see `scaling`), and stays. So whatever dies, what is left is found again. Each move is one command to the host
of the agent's present shard, with the promises of any move: no record is lost, doubled, or written in two places.

Used by `LocalRuntime`, by the supervisor's actor, and by `everlog cluster shards`.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from everlog.actors.agent.commands import Command, MoveAgent
from everlog.actors.ports.ports import Ports
from everlog.events import Busy, EverlogError
from everlog.store import FileStore, first_shards, is_shared, shard_name, shard_of

CommandsSender = Callable[[Sequence[tuple[str, Command]]], Awaitable[Sequence[EverlogError | None]]]
"""Has agents, each named before its command, carry out commands, and returns the error of each, in order."""

MOVES_AT_ONCE = 64
"""Agents that are moved at a time. The commands of an agent wait while it is moved, so these are few."""
PATIENCE_S = 30
"""Seconds that an agent at work has to end its turn before it is passed over for this time. It gets them after it was
found at work once: most agents are idle at the second attempt, and hold up no command.
"""
PAUSE_S = 1
"""Seconds between two passes over the agents."""
PASSES_MAX = 5
"""Passes in a row that may fail to move a single agent, without one of them being at work, before it is given up."""


class ShardMoves(msgspec.Struct, frozen=True):
    """Progress of a `ShardMover`."""

    running: bool = False
    moved: int = 0
    """Agents that were moved since this process began."""
    at_work: int = 0
    """Agents that were passed over in the last pass, because they were at work."""
    faults: Sequence[str] = ()
    """Reasons why agents could not be moved in the last pass, the most frequent first."""


@runtime_checkable
class ShardingRuntime(Protocol):
    """Runtime that can move the agents of its store between shards."""

    async def move_to_shards(self, *, begin: bool = True) -> ShardMoves:
        """Begin to move the agents that are out of place, unless that is under way or `begin` is False. Return the
        progress.
        """
        ...


def misplaced(store: FileStore) -> list[str]:
    """Return the agents in a shard where only an earlier number of shards puts them, sorted. Reads the register."""
    numbers = store.shard_numbers.all()
    now = set(map(shard_name, range(numbers[-1])))
    return [
        name
        for name, place in store.assigned().items()
        if is_shared(place)
        and place != shard_of(name, numbers[-1])
        and (place not in now or place in first_shards(name, numbers))
    ]


def shards_for(store: FileStore, agent_id: str) -> set[str]:
    """Return the shards that an agent may be moved to because of its load; none if it must stay.

    An agent that was ever moved otherwise than by a change of the number stays: a person put it where it is, or its
    load did. In a shard that an earlier number gives its name it would be out of place, see `misplaced`. Raises
    UnknownAgent, CorruptLog, StoreError.
    """
    numbers = store.shard_numbers.all()
    homes = first_shards(agent_id, numbers)
    if not homes.issuperset(store.route(agent_id)):
        return set()
    return set(map(shard_name, range(numbers[-1]))) - homes


class ShardMover:
    """Moves the misplaced agents of a store, in a task of the event loop."""

    def __init__(
        self,
        store: FileStore,
        send: CommandsSender,
        ports: Ports,
        arrived: Callable[[Sequence[str]], Awaitable[None]] | None = None,
    ) -> None:
        """Store the collaborators. `send` carries out commands, each after the name of its agent, and returns their
        errors; `arrived` is called with the agents that a pass has moved, also with those of a pass that failed.
        """
        self._store, self._send, self._ports, self._arrived = store, send, ports, arrived
        self._task: asyncio.Task[None] | None = None
        self._asked = False
        """True if a pass must follow the one that runs: the number has changed since that one began."""
        self._moved = self._at_work = 0
        self._faults: Counter[str] = Counter()

    @property
    def status(self) -> ShardMoves:
        """Progress so far."""
        running = self._task is not None and not self._task.done()
        return ShardMoves(running, self._moved, self._at_work, [reason for reason, _ in self._faults.most_common()])

    def begin(self) -> None:
        """Move what is out of place now. If that is being done already, look again afterwards."""
        self._asked = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop. What is left stays where it is, and works there."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        idle_passes = 0
        patience_s = 0
        while self._asked or self._at_work or (self._faults and idle_passes < PASSES_MAX):
            self._asked = False
            before = self._moved
            try:
                await self._pass(patience_s)
            except EverlogError as error:  # the register cannot be read now
                self._faults = Counter([str(error)])
            idle_passes = 0 if self._moved > before or self._at_work else idle_passes + 1
            patience_s = PATIENCE_S
            if self._at_work or self._faults:
                await self._ports.sleep(PAUSE_S)
        for reason, count in self._faults.most_common():
            self._ports.note(f"{count} agents stay in their old shards, where they work: {reason}")

    async def _pass(self, patience_s: float) -> None:
        """Try once to move each agent that is out of place."""
        left = await self._ports.aside(misplaced, self._store)
        at_work, faults, moved = 0, Counter[str](), list[str]()
        try:
            for start in range(0, len(left), MOVES_AT_ONCE):
                agents = left[start : start + MOVES_AT_ONCE]
                errors = await self._send([(name, self._command(patience_s)) for name in agents])
                moved += [name for name, error in zip(agents, errors, strict=True) if error is None]
                self._moved += errors.count(None)
                at_work += sum(isinstance(error, Busy) for error in errors)
                faults.update(str(error) for error in errors if error is not None and not isinstance(error, Busy))
        finally:
            if self._arrived is not None and moved:
                await self._arrived(moved)
        self._at_work, self._faults = at_work, faults

    def _command(self, patience_s: float) -> MoveAgent:
        return MoveAgent(id=self._ports.ids.new(self._ports.clock.now()), shared=True, patience_s=patience_s)
