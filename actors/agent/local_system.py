"""Run the agents of one store in this process: the one place that combines log, projections, models and effects.

Used by `AgentSystem`, by the hosts in `actors/hosting` and `actors/cluster`, and by commands that work on a store
directly.
"""

import difflib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from everlog.actors.agent import agent_setup, erase_agent, fork_agent
from everlog.actors.agent.activation import Activation, ActivationFactory, AgentResources, separate_logs
from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import ModelDefaultsLookup, Settings
from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.functions.extras import NO_GRANTS, Grants, answer, extras, helper, no_helper
from everlog.actors.functions.memgpt_functions import ALIASES, BUILTIN
from everlog.actors.functions.tools import Tool
from everlog.actors.mail.mail_functions import OPTIONAL_FUNCTIONS
from everlog.actors.mail.names import StoreAgents
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.models.make_model import model_for
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import ArchiveClient, Model
from everlog.actors.ports.log_warnings import note_opening
from everlog.actors.ports.moments import seq_of
from everlog.actors.ports.ports import Ports
from everlog.actors.prompt.context import Context
from everlog.events import BadInput, HostLost, Moved, UnknownAgent
from everlog.projections import HEAD, Projections
from everlog.store import (
    Log,
    LogReader,
    Progress,
    SealReport,
    Store,
    check_new_name,
    check_not_reserved,
    name_of,
    partition_of,
    shard_of,
    typed,
)

if TYPE_CHECKING:
    from everlog.actors.memory.agent_search import AgentSearcher
    from everlog.projections.engine_pool import EnginePool

__all__ = ["AgentServices", "AgentView", "LocalSystem", "ModelLookup"]

ModelLookup = Callable[[str], Model]
"""Returns the model for a name in a configuration."""
ToolTransform = Callable[[Mapping[str, Tool]], Mapping[str, Tool]]
"""Changes the functions that agents would have into those that they get."""


def _by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Index the built-in and the user's functions by name. Raise BadInput for a duplicate: one would be unreachable."""
    named = {tool.name: tool for tool in (*BUILTIN, *OPTIONAL_FUNCTIONS)}
    for tool in tools:
        if tool.name in named or tool.name in ALIASES:
            raise BadInput(f"There is a function {tool.name!r} already. Give yours another name: @tool(name=...).")
        named[tool.name] = tool
    return named


class AgentServices(msgspec.Struct, frozen=True, kw_only=True):
    """Services that the agents of a process, or of a cluster, share."""

    models_of: Callable[[str], ModelLookup] | None = None
    """Models of an agent, by the agent's name; None: the real ones."""
    known: ModelDefaultsLookup | None = None
    """Looks up the defaults of a model by its name; None: no model has defaults."""
    archive: ArchiveClient | None = None
    """Index of memories; None: searches compare words only."""
    blocks: BlockClient | None = None
    """Client for shared blocks; None: they are edited in this process."""


NO_SERVICES = AgentServices()


class LocalSystem:
    """All agents of a store, run in this process."""

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
        transform_tools: ToolTransform = dict,
        engines: "EnginePool | None" = None,
        has_shards: bool = False,
    ) -> None:
        """`models`: None: those of `services`, else the real ones. `enter` activates an agent; None: each agent opens
        its own log. `transform_tools` changes the functions of agents, as a rerun does. `engines` lends views their
        engines; None: each opens its own. `has_shards`: others own the store's shards, so that an agent in one of them
        is not opened here.
        """
        self.store = store
        self._services = services
        self._enter = enter or separate_logs(partial(self._open, own=has_shards), store.reader)
        self.grants = grants
        self.tools: Mapping[str, Tool] = _by_name([*tools, *extras(grants, no_helper)])
        """All functions that any agent may have; an agent's configuration names its own."""
        self._models = models
        self._ports = ports or Ports()
        self._refit = transform_tools
        self._engines = engines
        self.blocks = services.blocks or SharedBlockWriter(store, self._ports)
        """Client for the shared blocks of the store."""

    @property
    def archive(self) -> ArchiveClient | None:
        """Index of memories; None: searches compare words only."""
        return self._services.archive

    def agents(self) -> list[str]:
        """Return the names of all agents with a log, sorted."""
        return self.store.agents()

    def view(
        self, agent_id: str, projections: Projections | None = None, *, as_of: int | datetime | None = None
    ) -> AgentView:
        """Open an agent for reading, now or as of a seq or a time. Raise UnknownAgent, with similar names.

        `projections`: query engine for many agents, one after the other. Raises BadInput for a moment outside the log:
        a seq past the head, or a time before the first record.
        """
        reader = self._reader(agent_id)
        moment = None if as_of is None else seq_of(reader, agent_id, as_of)
        return AgentView(agent_id, reader, self._services.archive, projections, moment, self._engines)

    def _reader(self, agent_id: str) -> LogReader:
        try:
            reader = self.store.reader(agent_id)
        except UnknownAgent:
            raise self.unknown(agent_id) from None
        if not reader.head(agent_id).seq:
            self.store.check_not_lost(agent_id)
            raise self.unknown(agent_id)
        return reader

    def _open(self, agent_id: str, command: str, take_over: bool, *, own: bool = False) -> Log:
        """Open the log that has the agent. `own`: only one of its own; raises HostLost if the agent is in a shard: the
        caller looked it up too early, or a move that a dead process had begun is finished now.
        """
        expected = partition_of(agent_id) if own else None
        try:
            return self.store.open(agent_id, command, take_over=take_over, expected=expected)
        except UnknownAgent:
            raise self.unknown(agent_id) from None
        except Moved as moved:
            raise HostLost(str(moved)) from moved

    def _open_noted(self, agent_id: str, command: str) -> Log:
        """Open an agent's log for a command that does not activate the agent; warnings become notes."""
        log = self._open(agent_id, command, take_over=False)
        note_opening(self._ports.note, agent_id, log)
        return log

    def check_exists(self, agent_id: str) -> None:
        """Raise UnknownAgent, with similar names, for a name that was never registered."""
        try:
            self.store.partition_of(agent_id)
        except UnknownAgent:
            raise self.unknown(agent_id) from None

    async def check_new(self, agent_id: str, settings: Settings) -> None:
        """Raise BadInput or UnknownAgent if no agent of that name was registered, and none can have these settings.

        So a refused creation leaves no name behind. The host checks again what may change until then, and rules about
        functions, which may be functions that only the host knows.
        """
        try:
            await self._ports.aside(self.store.partition_of, agent_id)
        except UnknownAgent:
            configured = agent_setup.configuration(msgspec.structs.replace(settings, rules=None), None, self.tools, {})
            agent_setup.birth(agent_id, settings, configured)
            others = StoreAgents(self.store, agent_id)
            if configured.members:
                from everlog.actors.groups.membership import with_members  # most agents are no groups

                await with_members(agent_id, others, configured, None)
            if configured.background:
                await others.background(configured.background)

    def unknown(self, agent_id: str) -> UnknownAgent:
        """Return the error for a name without an agent, with similar names."""
        names = [name for name in self.agents() if name != agent_id]
        near = difflib.get_close_matches(agent_id, names, n=3, cutoff=0.5)
        listed = "`everlog agents` lists those that exist." if names else "The store has no agents yet."
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else listed
        return UnknownAgent(
            f"There is no agent {agent_id!r} here. {hint} `everlog create {typed(agent_id)}` makes one."
        )

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
        by: str = "",
    ) -> AsyncIterator[Agent]:
        """Hold the agent open, as the owner of its log. Its unfinished turns wait: `run` finishes them.

        `unattended`: no caller is there to grant functions; `keep_configuration`: the agent is not configured again;
        `by`: id of the key with which a new agent was asked for over HTTP.
        """
        check_not_reserved(agent_id)
        if create:
            check_new_name(agent_id, self.store.partition_of)
            self.store.register(agent_id)
        agent: Agent | None = None
        models = self._models or (self._services.models_of or _real_models)(agent_id)
        async with self._enter(agent_id, command, take_over) as seat:
            try:
                if not create and not seat.head:
                    raise self.unknown(agent_id)

                async def ask(question: str) -> str:
                    own = agent.model_name if agent else OFFLINE
                    return await answer(models, self.grants.helper or own, question)

                own_helper = helper(ask)
                resources = AgentResources(
                    models=models,
                    tools=self._refit({**self.tools, own_helper.name: own_helper}),
                    searcher=partial(self._searcher, agent_id, seat),
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
                    settings or Settings(), create=create, unattended=unattended,
                    keep_configuration=keep_configuration, by=by,
                )  # fmt: skip
                if self._services.archive is not None:
                    self._services.archive.begin(agent_id, seat.head)
                yield agent
            finally:
                if agent is not None:
                    await agent.close()
        # Closing the log seals it, which may fail only now.
        agent.unsealed = seat.unsealed

    def _searcher(self, agent_id: str, seat: Activation, context: Context | None, turn: int) -> "AgentSearcher":
        """Return the searcher of an open agent; `context` is that of the turn, None outside of one."""
        from everlog.actors.memory.agent_search import AgentSearcher

        if context is None:
            return AgentSearcher(seat.projections, agent_id, HEAD, "UTC", others=StoreAgents(self.store, agent_id))
        return AgentSearcher.during(
            seat.projections, context, turn, self._services.archive, seat.journal, StoreAgents(self.store, agent_id)
        )

    def fork(self, agent_id: str, name: str, *, at: int | datetime | None = None, by: str = "") -> fork_agent.NewFork:
        """Create the agent `name` as this agent was at a seq or a time (None: its head).

        The cost does not depend on the log's length: nothing is copied, and nothing is written to the parent, which may
        be running. A turn that was open there is closed in the fork. The name of a deleted agent can be used again: the
        fork is then NAME@genN, the next generation of the name. Raises BadInput if the seq does not exist or its record
        was erased, if the agent was deleted at that seq, or if the name is taken; UnknownAgent. `by`: id of the key
        that the log names; empty: none.
        """
        stream = fork_agent.stream_for(self.store, name)
        reader = self._reader(agent_id)
        cut = seq_of(reader, agent_id, reader.head(agent_id).seq if at is None else at)
        ports, parent = self._ports, name_of(agent_id)
        return fork_agent.fork(self.store, reader, parent, cut, stream, clock=ports.clock, ids=ports.ids, by=by)

    def move(self, agent_id: str, *, shared: bool) -> None:
        """Move the agent to another partition: its shard's, or one of its own. Raise StoreError, PartitionBusy."""
        log = self._open_noted(agent_id, "everlog move")
        try:
            self.store.begin_move(
                log, agent_id, shard_of(agent_id, self.store.shards) if shared else partition_of(agent_id)
            )
        finally:
            log.close()

    def live_forks(self, agent_id: str) -> Sequence[str]:
        """Return the forks of an agent that are not deleted, and theirs, descendants first."""
        return fork_agent.live_forks(self.store, agent_id)

    def check_no_forks(self, agent_id: str) -> None:
        """Raise BadInput if the agent has forks that are not deleted."""
        fork_agent.check_no_forks(self.store, agent_id)

    async def delete(self, agent_id: str) -> None:
        """Delete the agent: its name can be created again, its records stay until they are erased.

        Raises BadInput if the agent has forks that are not deleted.
        """
        fork_agent.check_no_forks(self.store, agent_id)
        async with self.agent(agent_id, command="everlog delete", create=False) as agent:
            await agent.delete()

    def erase(
        self, agent_id: str, from_seq: int = 1, to_seq: int | None = None, progress: Progress | None = None
    ) -> SealReport:
        """Erase the content of records `from_seq` to `to_seq` (both inclusive; None: the head) in every file of the
        log.

        The places of the records stay, and a deleted agent stays deleted; the agent is not activated. An agent that
        moved passes through all of its partitions once more and is erased in each. Forks that share some of the records
        get a record of the erasure. An interruption loses nothing: either nothing is erased yet, or the next process
        that opens the log finishes; if an agent was interrupted between partitions, run the command again. Raises
        BadInput for a range that does not exist or belongs to an ancestor, UnknownAgent, PartitionBusy.
        """
        head = self._reader(agent_id).head(agent_id).seq
        last = head if to_seq is None else to_seq
        if not 1 <= from_seq <= last <= head:
            raise BadInput(
                f"{agent_id!r} has no records {from_seq} to {last}. Give a range within 1 to {head} (the head) whose "
                "first seq is not greater than its last. Nothing was erased."
            )
        return self.erase_spans({name_of(agent_id): [(from_seq, last)]}, progress)

    def erase_spans(
        self, targets: Mapping[str, Sequence[erase_agent.Span]], progress: Progress | None = None
    ) -> SealReport:
        """Erase ranges of records of several streams, as `erase` does. The last stream is erased last."""
        return erase_agent.erase(
            self.store, targets, clock=self._ports.clock, ids=self._ports.ids,
            open_log=lambda name: self._open_noted(name, erase_agent.COMMAND), progress=progress,
            note=self._ports.note,
        )  # fmt: skip


def _real_models(_: str) -> ModelLookup:
    return model_for
