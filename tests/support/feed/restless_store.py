"""A store whose agents write, move, fork and are sealed while a reader follows it, between any two steps of that."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everlog.events import Record, uuid7
from everlog.store import partition_of
from tests.support.store.archive_world import World

AGENTS = ("ann", "bob", "alone-sam")
"""Agents of the store; the last one begins in a partition of its own."""


class RestlessStore:
    """A store, and random acts of its agents."""

    def __init__(self, root: Path, seed: int, *, calm: bool = False) -> None:
        """`calm`: nothing happens by itself."""
        self.world = World(root, shards=2)
        self.store = self.world.store
        self.random = random.Random(seed)
        self.agents = list(AGENTS)
        self.left = 0 if calm else 60
        """Acts that still happen by themselves."""
        self._pending: dict[str, str] = {}
        """Partition that an agent has departed to without having arrived, by agent."""
        for agent in AGENTS:
            self.say(agent)

    def say(self, agent: str, count: int = 1) -> None:
        """Append one commit of some records."""
        self.arrive(agent)
        self.world.append(agent, *(self.world.draft("user_message", f"{agent} {n}") for n in range(count)))

    def depart(self, agent: str, to: str) -> None:
        """Move an agent as far as its old partition and the register are concerned."""
        self.arrive(agent)
        log = self.world.log(agent)
        if log.partition != to:
            self.store.begin_move(log, agent, to)
            self._pending[agent] = to

    def arrive(self, agent: str) -> None:
        """Complete the move of an agent that has departed."""
        if self._pending.pop(agent, None):
            self.store.finish_move(self.world.log(agent), agent)

    def fork(self, parent: str) -> str:
        """Create a fork from a random moment of an agent, and return its name."""
        self.arrive(parent)
        name = f"alone-fork-{len(self.agents)}"
        at = self.random.randint(1, self.world.seq(parent))
        self.store.fork(parent, at, name, event_id=uuid7(self.world.now(), len(self.agents)))
        self.agents.append(name)
        return name

    def seal(self) -> None:
        """Seal all logs."""
        self.world.seal()

    def act(self) -> None:
        """Do one random thing."""
        agent = self.random.choice(self.agents)
        kind = self.random.choices(("say", "depart", "arrive", "seal", "fork"), (12, 3, 3, 2, 1))[0]
        if kind == "say":
            self.say(agent, self.random.randint(1, 4))
        elif kind == "depart":
            self.depart(agent, self.random.choice(("shard-000", "shard-001", partition_of(agent))))
        elif kind == "arrive":
            self.arrive(agent)
        elif kind == "seal":
            self.seal()
        elif len(self.agents) < 6:
            self.fork(agent)

    def act_by_itself(self) -> None:
        """Do some random things, as long as there are acts left."""
        while self.left and self.random.random() < 0.5:
            self.left -= 1
            self.act()

    async def aside(self, work: Callable[..., Any], /, *arguments: Any) -> Any:
        """Run slow work of the reader in place; other things happen before and after it."""
        self.act_by_itself()
        value = work(*arguments)
        self.act_by_itself()
        return value

    def log_of(self, agent: str) -> list[Record]:
        """Return all records of an agent, those of its ancestors included."""
        return list(self.store.reader(agent).read(agent))

    def finish(self) -> None:
        """Complete all moves, and do nothing more by itself."""
        self.left = 0
        for agent in self.agents:
            self.arrive(agent)

    def close(self) -> None:
        """Close all logs."""
        self.world.close()
