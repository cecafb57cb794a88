"""The agents of one store: open, create, fork, rerun and query them, and send messages to many agents at once.

Part of the public API: made by `open_system`, wrapped by `sync_api`, used by the commands and by users' programs.
"""

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
    """Outcome of one command to one agent: the records that followed, and its value or its error."""

    agent_id: str
    event_id: str
    """Id of the command. The first event that the command appended has the same id."""
    records: Sequence[Record]
    """Records that followed from the command, in order."""
    value: Any
    """Value of the command; None if there was an error."""
    error: EverlogError | None
    """Error that stopped the command before or during its work; None if the command succeeded."""

    @property
    def text(self) -> str:
        """Messages that the agent sent, one per line."""
        return "\n".join(record.text or "" for record in self.records if record.type == "message_sent")


class AgentSystem:
    """The agents of one store, in this process or in a cluster. `open_system` makes it."""

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
        """Create the system over a runtime and its store.

        `ask` sends a request through the gateway of this process or of the cluster, and `archive` searches the archive
        of that gateway's system. Reruns use both, wherever agents run. `placement` is the default for new agents.
        `limits`: see `ServiceOptions.limits`.
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
        """Open an agent, create it if it does not exist, and return a handle on it.

        - `name`: name of the agent.
        - `settings`: settings to apply. A field that is None keeps its recorded value, or has its default for a new
          agent.
        - `create`: if False, an unknown name raises UnknownAgent.
        - `take_over`: fence a live process that has the agent's log open, so that it can write no more (dedicated
          only).
        - `keep_configuration`: open an existing agent without configuring it, for a caller that runs no turn.
        - `placement`: of a new agent: `dedicated` (own host and log) or `shared` (one shard for many agents); None: the
          default of this system. The placement of an existing agent stays.
        - `on_commit`: called with the records of each commit that a `Run` of the returned handle receives.
        - `command`: text that other processes show while this process has the agent's log open.

        Raises UnknownAgent; PartitionBusy if another process has the log open; BadInput for an unusable name, setting
        or function; UsageError if the agent is at work with other functions or another endpoint; HostLost; StoreError.
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
        """Cancel the turn that an agent runs. Return the numbers of the cancelled turns, none if no turn is open.

        `every`: cancel the queued turns too. Events that a turn has committed stay in the log. Raises UnknownAgent.
        """
        return await self._ref(name_of(name)).cancel(every=every)

    async def create_many(
        self, names: Iterable[str], settings: Settings | None = None, *, placement: Placement | None = None
    ) -> AsyncIterator[SendOutcome]:
        """Create many agents at once, and open those that exist. Yield a `SendOutcome` for each as it is done.

        `settings` and `placement`: as for `agent`. The value of a `SendOutcome` is an `OpenReport`. Raises BadInput for
        an unusable name; errors of single agents are in their outcomes.
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
        """Send messages to many agents at once. Yield a `SendOutcome` for each message as soon as its turn has ended.

        `said`: pairs of an agent's name and a text or an input event. Agents do not delay each other; several messages
        to one agent are handled in the given order. A `SendOutcome` with an error was not carried out, or not
        completely; if the error has `retry_after_s`, try again after that many seconds.
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
        """Yield the outcome of each command as it completes. A command whose host died is sent again up to RESENDS_MAX
        times; the command's id makes that idempotent.
        """
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
        """Create the agent `new_name` from the state of `name` at a moment, and return a description of the fork.

        `at`: fork point as a seq (inclusive) or a time (the last record up to then; UTC if without a zone); None: the
        head. `placement`: of the fork. The cost does not depend on the length of the log. The parent may be at work;
        nothing is written to its log. A turn that was open at the fork point is closed in the fork and is not run
        again.

        Raises UnknownAgent; BadInput for a seq that does not exist, at which the agent was deleted or whose record was
        erased, and for a name that is taken.
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
        """Export an agent, and the ancestors of a fork, with checksums into one file. Return the header of that file.

        `with_sources`: export the documents that the agent can search too. `replace`: overwrite an existing file.
        `progress`: called while the export runs. The agent may be at work: the export holds its records of this moment.
        Blocks.

        Raises UnknownAgent, BadInput (also for an existing file without `replace`), StoreError. A failed export leaves
        no new file.
        """
        return export_restore.export_agent(
            self._reading, self.store, name_of(name), Path(path).expanduser(), clock=self._ports.clock,
            with_sources=with_sources, replace=replace, progress=progress,
        )  # fmt: skip

    def restore(self, path: str | Path, progress: Progress | None = None) -> RestoreReport:
        """Import a file of `export` under its original names. Return a report of each stream.

        The whole file is checked first. Agents that exist here with the same records stay as they are. `progress`:
        called while the import runs. Blocks. Raises CorruptLog for a damaged file, BadInput for a file that is no
        export and for a name that has other records here, NewerFormat, PartitionBusy, StoreError.
        """
        return export_restore.restore_agent(self.store, Path(path).expanduser(), progress)

    async def rerun(self, what: RerunOptions, notify: TurnPairCallback = lambda _: None) -> RerunOutcome:
        """Fork an agent before a seq, and replay its inputs from that seq on into the fork. Return the outcome.

        `what`: agent, seq, name of the fork, and the changes to try. `notify`: called after each turn with the recorded
        turn and the new one. The rerun runs in this process. Functions that act outside get their recorded results, or
        are refused, unless `what` allows them. A model failure ends the rerun; the error is in the outcome.

        Raises UnknownAgent, BadInput, UsageError if a function is missing that edits memory.
        """
        return await rerun(what, self._stage(name_of(what.fork)), notify)

    async def compare(self, name: str, fork: str) -> RerunComparison:
        """Compare an agent with one of its forks, turn by turn from the fork point on. Return the comparison.

        Raises UnknownAgent, BadInput if `fork` is no fork of `name`.
        """
        return compare(name_of(name), name_of(fork), self._stage(name_of(fork)))

    async def delete(self, name: str, *, with_forks: bool = False) -> Sequence[str]:
        """Delete an agent, and with `with_forks` its forks and theirs. Return the deleted names, `name` last.

        A deleted name can be created again; the records stay until they are erased. Raises UnknownAgent, and BadInput
        if the agent has forks that are not deleted and `with_forks` is False.
        """
        forks = self._reading.live_forks(name_of(name)) if with_forks else []
        # Descendants first: an agent that has a fork cannot be deleted.
        ended = [*sorted(forks, key=self._generation, reverse=True), name_of(name)]
        for each in ended:
            await (await self.agent(each, create=False, keep_configuration=True, command="everlog delete")).delete()
        return ended

    def _generation(self, name: str) -> int:
        """Return the number of ancestors of an agent."""
        ancestor = self.store.parent_of(name)
        return 0 if ancestor is None else 1 + self._generation(ancestor[0])

    async def unload(self, name: str) -> bool:
        """Unload an agent, so that another process can open it. Return False if the agent is at work.

        An agent in a shard is unloaded together with the other agents of the shard.
        """
        return await self.runtime.unload(name_of(name))

    @property
    def sources(self) -> Sources:
        """Service that loads, lists and removes documents. Its methods block."""
        return Sources(self.store, clock=self._ports.clock, ids=self._ports.ids)

    def agents(self) -> list[str]:
        """Return the names of all agents that have a log, sorted."""
        return self._reading.agents()

    def sql(self, query: str, *, as_of: datetime | None = None, agent: str | None = None) -> pa.Table:
        """Run one SELECT over the views of all agents (docs/reference/sql.md). Return the rows.

        The views show one position of all logs. `as_of`: use only records up to this time, inclusive (UTC if without a
        zone). `agent`: use only the records of this agent. Blocks, and may be called in a thread; writers are not
        blocked. Raises BadInput, CorruptLog, StoreError.
        """
        from everlog.actors.reports.fleet_sql import fleet_sql

        upto = None if as_of is None else since_epoch(as_of)
        return fleet_sql(self.store, query, as_of=upto, agent=agent)

    def view(self, name: str, *, as_of: int | datetime | None = None) -> AgentView:
        """Return a read-only view of an agent, now or as of a seq (inclusive) or a time (UTC if without a zone).

        The view starts no host. Close it after use, or use it in a `with` block. Raises UnknownAgent, and BadInput for
        a moment before the agent's first record or after its last.
        """
        return self._reading.view(name_of(name), as_of=as_of)
