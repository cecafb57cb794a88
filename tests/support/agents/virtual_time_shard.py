"""A process whose agents share one partition, in virtual time."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.activation import ActivationFactory
from everlog.actors.agent.commands import Command, SendInput, SessionCapabilities, StreamItem
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.hosting.agent_factory import HostLink, session_system
from everlog.actors.hosting.command_batch import BatchCommand
from everlog.actors.hosting.local_runtime import LocalRuntime
from everlog.actors.hosting.shard import Shard
from everlog.events import StoreError, UserMessage
from everlog.store import Append, MemoryStore
from tests.support.agents.journal_world import SHARD, in_place
from tests.support.agents.virtual_time_runtime import Home


class SharedHome(Home):
    """One process with one shard."""

    def __init__(self, store: Any = None, **options: Any) -> None:
        hooks = {name: options.pop(name) for name in ("on_idle", "on_rest", "on_fenced") if name in options}
        more = {name: options.pop(name) for name in ("agents_max",) if name in options}
        super().__init__(store or MemoryStore(shards=1), **options)
        self.lost: list[str] = []
        self.shard = Shard(
            SHARD, self.store, self._system_of, ports=msgspec.structs.replace(self.ports, aside=in_place),
            link=HostLink(notify_timers=self.runtime._schedule.know, **hooks),
            **{"idle_s": options.get("idle_s", 300), **more},
        )  # fmt: skip
        self.runtime = LocalRuntime(
            self._system_of, ports=self.ports,
            partition_of=self.store.partition_of, shard_of=self._told, blocks=self.blocks,
        )  # fmt: skip

    def _told(self, _: str, link: HostLink) -> Shard:
        self.shard._host_link = link
        return self.shard

    def _system_of(self, lent: SessionCapabilities, enter: ActivationFactory | None = None) -> LocalSystem:
        return session_system(self.store, lent, self.ask, ports=self.ports, enter=enter, blocks=self.blocks)

    async def leave(self) -> None:
        await super().leave()
        await self.shard.close()

    async def open_all(self, *names: str) -> None:
        """Register agents of the shard, and open them."""
        self.store.register_many(names, shared=True)
        await asyncio.gather(*map(self.open, names))

    def say(self, text: str) -> SendInput:
        return SendInput(id=self.ids.new(self.clock.now()), event=UserMessage(text=text))

    def said(self, agent_id: str) -> list[str | None]:
        """Return the users' messages in an agent's log."""
        return [record.text for record in self.log(agent_id) if record.type == "user_message"]

    def answers(self, agent_id: str) -> list[str | None]:
        return [record.text for record in self.log(agent_id) if record.type == "message_sent"]

    def orders(self, *commands: tuple[str, Command]) -> list[BatchCommand]:
        return [BatchCommand(number, *each) for number, each in enumerate(commands)]

    def fail_next(self, times: int = 1) -> None:
        """Let the next groups fail; the journal then gives up its log."""
        log: Any = self.shard._ticks and self.shard._ticks.log
        left = [StoreError("the disk is broken")] * times
        real: Callable[[Sequence[Append]], Any] = log.append_group

        def append_group(appends: Sequence[Append]) -> Any:
            if left:
                raise left.pop()
            return real(appends)

        log.append_group = append_group


async def all_heard(answer: AsyncIterator[StreamItem]) -> list[StreamItem]:
    return [item async for item in answer]


def alive(*kinds: type) -> int:
    """Return the number of objects of these kinds in memory."""
    gc.collect()
    return sum(isinstance(thing, kinds) for thing in gc.get_objects())
