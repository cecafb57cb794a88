"""The agents of one store: open, create, fork, rerun, query them, and send messages to many at once."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from everlog.actors.agent import commands
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import Command, SessionCapabilities
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent.fork_agent import NewFork
from everlog.actors.agent.local_system import AgentView, LocalSystem
from everlog.actors.agent_ref import AgentRef
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.hosting.agent_factory import GatewayCall
from everlog.actors.hosting.command_batch import BatchCommand
from everlog.actors.memory.shared_block_service import SharedBlockService
from everlog.actors.memory.source_service import Sources
from everlog.actors.ports.agent_constants import RESENDS_MAX
from everlog.actors.ports.effects import ArchiveClient, Filters, Page
from everlog.actors.ports.ports import Ports
from everlog.actors.reports import export_restore
from everlog.actors.rerun.rerun import RerunOptions, RerunOutcome, TurnPairCallback, compare, rerun
from everlog.actors.rerun.rerun_comparison import RerunComparison
from everlog.actors.rerun_runtime import stage
from everlog.actors.runtime import Placement, Runtime
from everlog.events import Event, EverlogError, HostLost, Record, UserMessage
from everlog.events.times import since_epoch
from everlog.store import ExportHeader, FileStore, Progress, RestoreReport, check_not_reserved, name_of


class SendOutcome(msgspec.Struct, frozen=True):
    """What came of one command among many."""

    agent_id: str
    event_id: str
    """The id that it was sent with: that of the first event which it left."""
    records: Sequence[Record]
    """What followed from it, in order."""
    value: Any
    """What the command gives back."""
    error: EverlogError | None
    """Why it was not carried out, or not to its end; None if it was."""

    @property
    def text(self) -> str:
        """The words that the agent sent."""
        return "\n".join(record.text or "" for record in self.records if record.type == "message_sent")


class AgentSystem:
    """The agents of one store, wherever they run."""

    def __init__(
        self,
        runtime: Runtime,
        store: FileStore,
        *,
        capabilities: SessionCapabilities | None,
        ports: Ports,
        ask: GatewayCall,
        archive: ArchiveClient,
        placement: Placement = "dedicated",
        limits: GatewayLimits | None = None,
    ) -> None:
        """`ask` sends a request through the gateway of the process or the cluster, whose index is `archive`: reruns use
        both, wherever agents run. `placement` is the default for new agents. `limits`: see `open_system`.
        """
        self.runtime, self.store = runtime, store
        self._placement = placement
        self._reading = LocalSystem(store, tools=capabilities.tools if capabilities else (), ports=ports)
        self._capabilities = capabilities
        self._ports = ports
        self.shared = SharedBlockService(store, runtime.blocks, clock=ports.clock, ids=ports.ids)
        """The memory blocks that agents share."""
        self._stage = partial(stage, store, capabilities, ask=ask, archive=archive, ports=ports, limits=limits)

    async def agent(
        self,
        name: str,
        settings: Settings | None = None,
        *,
        create: bool = True,
        take_over: bool = False,
        keep_configuration: bool = False,
        placement: Placement | None = None,
        on_commit: CommitListener | None = None,
        command: str = "everlog",
    ) -> AgentRef:
        """The agent of that name, in memory and set up; made if it does not exist, unless `create` is False.

        `keep_configuration`: for what runs no turn; the agent is not set up anew, with other functions perhaps.
        `placement` is for an agent that is made: `dedicated`, a host and a log of its own, or `shared`, among others in
        one shard.

        `on_commit` is told every commit that an answer of it brings; `command` is what a person reads in another
        process while the agent is busy here. Raises UnknownAgent, PartitionBusy, BadInput, StoreError.
        """
        check_not_reserved(name_of(name))
        if create:
            self.runtime.check_capabilities(self._capabilities)
            self.store.register(name, shared=(placement or self._placement) == "shared")
        else:
            self._reading.check_exists(name_of(name))
        agent = self._ref(name_of(name), on_commit)
        await agent.open(
            settings or Settings(),
            create=create,
            take_over=take_over,
            keep_configuration=keep_configuration,
            command=command,
        )
        return agent

    def _ref(self, agent_id: str, on_commit: CommitListener | None = None) -> AgentRef:
        return AgentRef(
            agent_id,
            self.runtime,
            capabilities=self._capabilities,
            ports=self._ports,
            on_commit=on_commit,
            search=partial(self._search, agent_id),
            check_deletion=self._reading.check_no_forks,
        )

    async def cancel(self, name: str, *, every: bool = False) -> Sequence[int]:
        """Cancel the turn that an agent runs, without opening the agent. Return the numbers of the cancelled turns.

        `every`: the turns that wait as well. What a turn has committed stays.
        """
        return await self._ref(name_of(name)).cancel(every=every)

    async def create_many(
        self, names: Iterable[str], settings: Settings | None = None, *, placement: Placement | None = None
    ) -> AsyncIterator[SendOutcome]:
        """Make many agents at once, and set up those that there are already; each as it is done.

        The value of a `SendOutcome` is the agent as it was `Opened`.
        """
        wanted = [name_of(name) for name in names]
        for name in wanted:
            check_not_reserved(name)
        self.runtime.check_capabilities(self._capabilities)
        self.store.register_many(wanted, shared=(placement or self._placement) == "shared")
        opens = [
            commands.OpenAgent(
                id=self._new_id(), capabilities=self._capabilities, settings=settings or Settings(), command="everlog"
            )
            for _ in wanted
        ]
        async for sent in self._sent_many(list(zip(wanted, opens, strict=True))):
            yield sent

    async def send_many(self, said: Iterable[tuple[str, str | Event]]) -> AsyncIterator[SendOutcome]:
        """Say something to many agents at once: (name, words) or (name, event); what came of each, as it is done.

        Nothing that one agent does holds up another. What one of them is told twice it hears in the order given. A
        `SendOutcome` with an error was not carried out, or not to its end; `retry_after_s` of it says when to try
        again.
        """
        say = [
            (
                name_of(name),
                commands.SendInput(
                    id=self._new_id(),
                    capabilities=self._capabilities,
                    event=UserMessage(text=words) if isinstance(words, str) else words,
                ),
            )
            for name, words in said
        ]
        async for sent in self._sent_many(say):
            yield sent

    async def _sent_many(self, said: Sequence[tuple[str, Command]]) -> AsyncIterator[SendOutcome]:
        """What came of commands, as it does; those whose host died are sent again, and count once."""
        left = list(range(len(said)))
        for attempt in range(1 + RESENDS_MAX):
            orders = [BatchCommand(number, *said[which]) for number, which in enumerate(left)]
            lost = []
            async for outcomes in self.runtime.perform_many(orders):
                for outcome in outcomes:
                    which = left[outcome.number]
                    if isinstance(outcome.error, HostLost) and attempt < RESENDS_MAX:
                        lost.append(which)
                    else:
                        agent_id, command = said[which]
                        yield SendOutcome(agent_id, command.id, outcome.records, outcome.value, outcome.error)
            left = sorted(lost)
            if not left:
                return

    async def _search(self, agent_id: str, query: str, page: int, count: int, filters: Filters) -> Page:
        with closing(self._reading.view(agent_id)) as view:
            return await view.searcher().archival(query, page, count, filters)

    def _new_id(self) -> str:
        return self._ports.ids.new(self._ports.clock.now())

    async def fork(
        self, name: str, new_name: str, *, at: int | datetime | None = None, placement: Placement = "dedicated"
    ) -> NewFork:
        """Begin the agent `new_name` as what `name` was at a seq or a time (None: its head), however long its log is.

        The parent may be at work meanwhile, and nothing is written to it. A turn that was open at the cut is closed in
        the fork and not run again there. Raises BadInput for a seq that is not there, at which the agent was deleted,
        or whose record was erased, and for a name that is taken; UnknownAgent.
        """
        forked = self._reading.fork(name_of(name), new_name, at=at)
        if placement == "shared":
            await (await self.agent(forked.agent_id, create=False, keep_configuration=True)).move("shared")
        return forked

    def export(
        self,
        name: str,
        path: str | Path,
        *,
        with_sources: bool = False,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> ExportHeader:
        """Write an agent into one file, and the ancestors of a fork, with checksums; `replace` a file that is there.

        The agent may be at work: what it has now is written. `with_sources`: and the documents that it can search.
        Blocks. Raises UnknownAgent, BadInput, StoreError; there is no file then that was not there before.
        """
        return export_restore.export_agent(
            self._reading, self.store, name_of(name), Path(path).expanduser(), clock=self._ports.clock,
            with_sources=with_sources, replace=replace, progress=progress,
        )  # fmt: skip

    def restore(self, path: str | Path, progress: Progress | None = None) -> RestoreReport:
        """Take in what a file of `export` holds, under the names that it had, once all of it was checked.

        What is here already is left as it is. Blocks. Raises CorruptLog for a file that is damaged, BadInput for one
        that is none and for a name that has other records here, NewerFormat, PartitionBusy, StoreError.
        """
        return export_restore.restore_agent(self.store, Path(path).expanduser(), progress)

    async def rerun(self, what: RerunOptions, notify: TurnPairCallback = lambda _: None) -> RerunOutcome:
        """Fork an agent before a seq of its past, and tell the fork again what the agent was told from then on.

        It runs in this process. `notify` is told each turn as it has ended, beside that of then. Functions that act
        outside are given the results of then, or refused, unless `what` allows them. A model that fails ends it, and is
        told in the value. Raises BadInput, UsageError where a function is missing that edits memory, UnknownAgent.
        """
        return await rerun(what, self._stage(name_of(what.fork)), notify)

    async def compare(self, name: str, fork: str) -> RerunComparison:
        """An agent and a fork of it side by side, from the cut on. Raises BadInput where it is none, UnknownAgent."""
        return compare(name_of(name), name_of(fork), self._stage(name_of(fork)))

    async def delete(self, name: str, *, with_forks: bool = False) -> Sequence[str]:
        """End an agent, and `with_forks` those that were forked from it and from those; the names, itself last.

        Raises BadInput while it has forks that live, and they are not to be ended.
        """
        forks = self._reading.live_forks(name_of(name)) if with_forks else []
        ended = [*sorted(forks, key=self._generation, reverse=True), name_of(name)]
        for each in ended:
            await (await self.agent(each, create=False, keep_configuration=True, command="everlog delete")).delete()
        return ended

    def _generation(self, name: str) -> int:
        """How many ancestors an agent has."""
        ancestor = self.store.parent_of(name)
        return 0 if ancestor is None else 1 + self._generation(ancestor[0])

    async def unload(self, name: str) -> bool:
        """Unload an agent, so that another process can open it. Return False if it is at work."""
        return await self.runtime.unload(name_of(name))

    @property
    def sources(self) -> Sources:
        """The documents that agents can share."""
        return Sources(self.store, clock=self._ports.clock, ids=self._ports.ids)

    def agents(self) -> list[str]:
        """Names of all agents with a log, sorted."""
        return self._reading.agents()

    def sql(self, query: str, *, as_of: datetime | None = None, agent: str | None = None) -> pa.Table:
        """The answer of one SELECT over the views of all agents (docs/analytics.md), at one position of their logs.

        `as_of`: only what was recorded by then; UTC without a zone. `agent`: only records of that one. It blocks,
        and may be called in a thread; nobody who writes waits for it. Raises BadInput, CorruptLog, StoreError.
        """
        from everlog.actors.reports.fleet_sql import fleet_sql

        upto = None if as_of is None else since_epoch(as_of)
        return fleet_sql(self.store, query, as_of=upto, agent=agent)

    def view(self, name: str, *, as_of: int | datetime | None = None) -> AgentView:
        """Return an agent for reading, as it is now or was at a seq or a time. It starts nothing; close it.

        Raises BadInput for a moment before the agent's first record or after its last.
        """
        return self._reading.view(name_of(name), as_of=as_of)
