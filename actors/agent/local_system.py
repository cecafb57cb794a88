"""The agents of one store in this process: the one place where log, projections, model and effects are put together."""

import difflib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import msgspec

from everlog.actors.agent import erase_agent, fork_agent
from everlog.actors.agent.activation import ActivationFactory, separate_logs
from everlog.actors.agent.agent import Agent, AgentResources
from everlog.actors.agent.agent_setup import ModelDefaultsLookup, Settings
from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.functions.extras import NO_GRANTS, Grants, answer, extras, no_helper
from everlog.actors.functions.memgpt_functions import ALIASES, BUILTIN
from everlog.actors.functions.tools import Tool
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.models.make_model import model_for
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import ArchiveClient, Model
from everlog.actors.ports.moments import seq_of
from everlog.actors.ports.ports import Ports
from everlog.actors.prompt.context import Context
from everlog.events import BadInput, UnknownAgent
from everlog.projections import HEAD, Projections
from everlog.store import (
    Log,
    LogReader,
    Progress,
    SealReport,
    Store,
    check_not_reserved,
    name_of,
    partition_of,
    shard_of,
)

__all__ = ["AgentServices", "AgentView", "LocalSystem", "ModelLookup"]

ModelLookup = Callable[[str], Model]
"""From the name in a configuration to a model."""
ToolTransform = Callable[[Mapping[str, Tool]], Mapping[str, Tool]]
"""From the functions that agents would have to those that they get."""


def _by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """The agent's own functions and the user's. Raises BadInput for a name that is taken: one would be mute."""
    named = {tool.name: tool for tool in BUILTIN}
    for tool in tools:
        if tool.name in named or tool.name in ALIASES:
            raise BadInput(f"There is a function {tool.name!r} already. Give yours another name: @tool(name=...).")
        named[tool.name] = tool
    return named


class AgentServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the agents of a process, or of a cluster, share with each other."""

    models_of: Callable[[str], ModelLookup] | None = None
    """The models of an agent, by its name; None: the real ones."""
    known: ModelDefaultsLookup | None = None
    """What an agent is set up with for a model; None: nothing is known of any."""
    archive: ArchiveClient | None = None
    """None: searches go by words alone."""
    blocks: BlockClient | None = None
    """None: shared blocks are edited in this process."""


NO_SERVICES = AgentServices()


class LocalSystem:
    """Every agent of a store, run in this process."""

    def __init__(
        self,
        store: Store,
        *,
        models: ModelLookup | None = None,
        tools: Sequence[Tool] = (),
        grants: Grants = NO_GRANTS,
        ports: Ports | None = None,
        services: AgentServices = NO_SERVICES,
        enter: ActivationFactory | None = None,
        refit: ToolTransform = dict,
    ) -> None:
        """`models`: None are those of `services`, or else the real ones. `enter` gives an agent its seat; None: each
        opens its own log. `refit` changes the functions of agents, as a rerun does.
        """
        self.store = store
        self._services = services
        self._enter = enter or separate_logs(self._open, store.reader)
        self.grants = grants
        self.tools: Mapping[str, Tool] = _by_name([*tools, *extras(grants, no_helper)])
        """All that any agent may have; which of them one has is in its configuration."""
        self._models = models
        self._ports = ports or Ports()
        self._refit = refit
        self.blocks = services.blocks or SharedBlockWriter(store, self._ports)
        """The shared blocks of the store."""

    def agents(self) -> list[str]:
        """Names of all agents with a log, sorted."""
        return self.store.agents()

    def view(
        self, agent_id: str, projections: Projections | None = None, *, as_of: int | datetime | None = None
    ) -> AgentView:
        """An agent for reading, now or as of a seq or a time. Raises UnknownAgent, naming those that are near.

        `projections`: to look at many agents with, one after the other. Raises BadInput for a moment that it did not
        see: a seq past the head, or a time before its first record.
        """
        reader = self._reader(agent_id)
        moment = None if as_of is None else seq_of(reader, agent_id, as_of)
        return AgentView(agent_id, reader, self._services.archive, projections, moment)

    def _reader(self, agent_id: str) -> LogReader:
        try:
            reader = self.store.reader(agent_id)
        except UnknownAgent:
            raise self.unknown(agent_id) from None
        if not reader.head(agent_id).seq:
            raise self.unknown(agent_id)
        return reader

    def _open(self, agent_id: str, command: str, take_over: bool) -> Log:
        try:
            return self.store.open(agent_id, command, take_over=take_over)
        except UnknownAgent:
            raise self.unknown(agent_id) from None

    def check_exists(self, agent_id: str) -> None:
        """Raises UnknownAgent, naming those that are near, for a name that nobody was ever given."""
        try:
            self.store.partition_of(agent_id)
        except UnknownAgent:
            raise self.unknown(agent_id) from None

    def unknown(self, agent_id: str) -> UnknownAgent:
        """The error for a name that is no agent's."""
        names = [name for name in self.agents() if name != agent_id]
        near = difflib.get_close_matches(agent_id, names, n=3, cutoff=0.5) or names[:3]
        said = f"Near it: {', '.join(near)}." if near else "The store has no agents yet."
        return UnknownAgent(f"There is no agent {agent_id!r} here. {said} `everlog create {agent_id}` makes one.")

    @asynccontextmanager
    async def agent(
        self,
        agent_id: str,
        settings: Settings | None = None,
        *,
        command: str = "everlog",
        on_commit: CommitListener | None = None,
        create: bool = True,
        take_over: bool = False,
        unattended: bool = False,
        keep_configuration: bool = False,
    ) -> AsyncIterator[Agent]:
        """Own the agent while the block runs. Its unfinished turns wait in it: `run` finishes them.

        `unattended`: nobody asked for it who could lend it functions; `keep_configuration`: it is not set up anew.
        """
        check_not_reserved(agent_id)
        if create:
            self.store.register(agent_id)
        agent: Agent | None = None
        models = self._models or (self._services.models_of or _real_models)(agent_id)
        async with self._enter(agent_id, command, take_over) as seat:
            try:
                if not create and not seat.head:
                    raise self.unknown(agent_id)

                def searcher(context: Context | None, turn: int) -> AgentSearcher:
                    if context is None:
                        return AgentSearcher(seat.projections, agent_id, HEAD, "UTC")
                    return AgentSearcher.during(seat.projections, context, turn, self._services.archive)

                async def ask(question: str) -> str:
                    own = agent.model_name if agent else OFFLINE
                    return await answer(models, self.grants.helper or own, question)

                resources = AgentResources(
                    models=models,
                    tools=self._refit({**self.tools, **{tool.name: tool for tool in extras(self.grants, ask)}}),
                    searcher=searcher,
                    blocks=self.blocks,
                    known=self._services.known,
                )
                agent = Agent(
                    agent_id,
                    journal=seat.journal,
                    head=seat.head,
                    resources=resources,
                    ports=self._ports,
                    on_commit=on_commit,
                )
                agent.cut, agent.unsealed = seat.cut, seat.unsealed
                await agent.activate(
                    settings or Settings(), create=create, unattended=unattended, keep_configuration=keep_configuration
                )
                yield agent
            finally:
                if agent is not None:
                    await agent.close()
        agent.unsealed = seat.unsealed

    def fork(self, agent_id: str, name: str, *, at: int | datetime | None = None) -> fork_agent.NewFork:
        """Begin another agent, `name`, as what this one was at a seq or a time (None: its head).

        Costs the same however long its log is: nothing is copied, and nothing is written to the parent, which may be at
        work. A turn that was open there is closed in the fork. Raises BadInput for a seq that is not there, at which
        the agent was deleted, or whose record was erased, and for a name that is taken; UnknownAgent.
        """
        reader = self._reader(agent_id)
        cut = seq_of(reader, agent_id, reader.head(agent_id).seq if at is None else at)
        ports = self._ports
        return fork_agent.fork(self.store, reader, name_of(agent_id), cut, name, clock=ports.clock, ids=ports.ids)

    def move(self, agent_id: str, *, shared: bool) -> None:
        """Let the agent go to another partition: its shard's, or one of its own. Raises StoreError, PartitionBusy."""
        log = self._open(agent_id, "everlog move", take_over=False)
        try:
            self.store.begin_move(
                log, agent_id, shard_of(agent_id, self.store.shards) if shared else partition_of(agent_id)
            )
        finally:
            log.close()

    def live_forks(self, agent_id: str) -> Sequence[str]:
        """The forks of an agent that were not deleted, those of its forks too, by name."""
        return fork_agent.live_forks(self.store, agent_id)

    def check_no_forks(self, agent_id: str) -> None:
        """Raises BadInput for an agent that has forks which live."""
        fork_agent.check_no_forks(self.store, agent_id)

    async def delete(self, agent_id: str) -> None:
        """End the agent: its name can be created again, its records stay until they are erased.

        Raises BadInput while it has forks that live.
        """
        fork_agent.check_no_forks(self.store, agent_id)
        async with self.agent(agent_id, command="everlog delete", create=False) as agent:
            await agent.delete()

    def erase(
        self, agent_id: str, from_seq: int = 1, to_seq: int | None = None, progress: Progress | None = None
    ) -> SealReport:
        """Erase what records `from_seq` to `to_seq` say (both inclusive; None: the head), in every file of the log.

        Their places stay, and so does whether the agent was deleted; it is not activated. An agent that moved goes
        through all partitions that it was in once more, and is erased in each. Forks that share some of the records are
        told as well. An interruption loses nothing: either nothing is erased, or whoever opens the log next carries it
        out; where it was on its way, say it again. Raises BadInput for a range that does not exist or is an ancestor's,
        UnknownAgent, PartitionBusy.
        """
        head = self._reader(agent_id).head(agent_id).seq
        last = head if to_seq is None else to_seq
        if not 1 <= from_seq <= last <= head:
            raise BadInput(
                f"{agent_id!r} has no records {from_seq} to {last}: a range goes from 1 to {head}, the head, its "
                "first seq no later than its last. Nothing was erased."
            )
        return erase_agent.erase(
            self.store, agent_id, from_seq, last, clock=self._ports.clock, ids=self._ports.ids,
            open_log=lambda name: self._open(name, erase_agent.COMMAND, take_over=False), progress=progress,
        )  # fmt: skip


def _real_models(_: str) -> ModelLookup:
    return model_for
