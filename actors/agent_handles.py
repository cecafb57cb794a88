"""Make the handles on the agents of one store: each knows how to send commands, to search, and to give names.

Used by `AgentSystem`, which opens agents; a handle itself opens nothing before its first call.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from everlog.actors.agent.commands import OpenReport, SessionCapabilities
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.agent_memory import AgentSearches
from everlog.actors.agent_ref import AgentNaming, AgentRef
from everlog.actors.agent_state import AgentState
from everlog.actors.command_sender import CommandSender
from everlog.actors.memory_views import moments_of
from everlog.actors.ports.effects import Page
from everlog.actors.ports.ports import Ports
from everlog.actors.runtime import PriceLookup, Runtime
from everlog.store import FileStore

UNOPENED = OpenReport(born=False, model="", zone="", head=0, turn=0, waiting=0)
"""Report of a handle whose agent was not opened."""


class AgentHandles:
    """Factory of the handles on the agents of one store, by names of streams."""

    def __init__(
        self,
        runtime: Runtime,
        reading: LocalSystem,
        store: FileStore,
        *,
        capabilities: SessionCapabilities | None,
        ports: Ports,
        prices: PriceLookup,
        rename: Callable[[str, str], Awaitable[None]],
        where: str,
    ) -> None:
        """`rename`: gives an agent another name. `where`: place of the agents, for people."""
        self._runtime, self._reading, self._store = runtime, reading, store
        self._capabilities, self._ports, self._prices = capabilities, ports, prices
        self._rename, self._where = rename, where

    def sender(
        self, agent_id: str, on_commit: CommitListener | None = None, *, by: str = "", first_id: str = ""
    ) -> CommandSender:
        """Return the sender of commands to an agent. `by`, `first_id`: see `CommandSender`."""
        return CommandSender(
            agent_id, self._runtime, capabilities=self._capabilities, ports=self._ports, on_commit=on_commit,
            prices=self._prices, by=by, first_id=first_id,
        )  # fmt: skip

    def handle(self, sender: CommandSender, opened: OpenReport = UNOPENED) -> AgentRef:
        """Return the handle on the agent of a sender."""
        aside, agent_id = self._ports.aside, sender.agent_id
        everything, archive = (
            partial(self._search, search, agent_id) for search in (AgentState.search, AgentState.search_archive)
        )
        return AgentRef(
            sender, opened, searches=AgentSearches(everything, archive, moments_of(self._reading, agent_id, aside)),
            where=self._where,
            naming=AgentNaming(self._rename, partial(aside, self._reading.check_no_forks),
                               partial(aside, self._store.aliases.remove_of)),
        )  # fmt: skip

    async def _search(self, search: Callable[..., Awaitable[Page]], agent_id: str, *how: Any) -> Page:
        view = await self._ports.aside(partial(self._reading.view, agent_id))
        async with AgentState(view, self._ports.aside) as state:
            return await search(state, *how)
