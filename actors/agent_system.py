"""The agents of one store: open, create, fork, rerun and query them, and send messages to many agents at once.

Part of the public API: made by `open_system`, wrapped by `sync_api`, used by the commands and by users' programs.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from copy import copy
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Self

import msgspec
import pyarrow as pa

from everlog.actors.agent import commands
from everlog.actors.agent.agent_setup import Settings, check_settings
from everlog.actors.agent.commands import Command, SessionCapabilities
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent.fork_agent import NewFork, stream_for
from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.agent_handles import AgentHandles
from everlog.actors.agent_ref import AgentRef, input_of
from everlog.actors.agent_state import AgentState
from everlog.actors.batch_outcomes import outcomes_of
from everlog.actors.erasure.erase_planned import ErasureReport, agents_to_unload, erase_planned
from everlog.actors.erasure.erasure_plan import ErasurePlan, plan_erasure
from everlog.actors.erasure.selection import Selection
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.gateway.store_prices import KnownPrices
from everlog.actors.hosting.agent_factory import GatewayCall
from everlog.actors.memory.shared_block_service import SharedBlockService
from everlog.actors.memory.source_service import Sources
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import ANYTHING, ArchiveClient, Filters, Page
from everlog.actors.ports.ports import Ports
from everlog.actors.reply import SendOutcome
from everlog.actors.reports import export_restore
from everlog.actors.rerun.rerun import RerunOptions, RerunOutcome, TurnPairCallback, compare, rerun
from everlog.actors.rerun.rerun_comparison import RerunComparison
from everlog.actors.rerun_runtime import stage
from everlog.actors.runtime import Placement, PriceLookup, Runtime
from everlog.actors.short_tracebacks import short_tracebacks
from everlog.actors.store_services import DocumentSources, SharedBlocks
from everlog.events import Event
from everlog.events.times import microseconds_of
from everlog.store import ExportHeader, FileStore, Progress, RestoreReport, check_new_name, check_not_reserved, name_of


@short_tracebacks
class AgentSystem:
    """The agents of one store, in this process or in a cluster. `open_system` makes it.

    A name means the newest agent of that name: NAME@gen2 after a fork took the name of the deleted NAME.
    """

    def __init__(
        self,
        runtime: Runtime,
        store: FileStore,
        *,
        capabilities: SessionCapabilities | None,
        ports: Ports,
        ask: GatewayCall,
        archive: ArchiveClient | None,
        placement: Placement = "dedicated",
        limits: GatewayLimits | None = None,
        exact_names: bool = False,
        reading: LocalSystem | None = None,
        prices: PriceLookup | None = None,
        where: str = "",
    ) -> None:
        """Create the system over a runtime and its store.

        `ask` sends a request through the gateway of this process or of the cluster, and `archive` searches the archive
        of that gateway's system (None: searches compare words only). Reruns use both, wherever agents run. `placement`
        is the default for new agents.
        `limits`: see `ServiceOptions.limits`. `exact_names`: see `open_system`. `reading`, `prices`, `where`: agents
        for reading, prices of tokens and the place that handles show, where they are not those of the store.
        """
        self.runtime, self.store, self.ask = runtime, store, ask
        self._placement = placement
        self._stream = name_of if exact_names else store.stream_of
        """Function that returns the stream of the agent of a name."""
        self._aside = ports.aside
        self.prices: PriceLookup = prices or KnownPrices(store.root, limits, ports.aside)
        """Function that returns the prices of tokens, or the error for which they are not known."""
        self.tools = tools = capabilities.tools if capabilities else ()
        """Functions of users that the agents get here."""
        self._reading = reading or LocalSystem(store, tools=tools, ports=ports, services=AgentServices(archive=archive))
        self._capabilities, self._ports = capabilities, ports
        self._handles = AgentHandles(
            runtime, self._reading, store, capabilities=capabilities, ports=ports, prices=self.prices,
            rename=self.rename, where=where or str(store.root),
        )  # fmt: skip
        blocks = SharedBlockService(store, runtime.blocks, clock=ports.clock, ids=ports.ids)
        self.shared = SharedBlocks(blocks, ports.aside)
        """The memory blocks that agents share."""
        sources = Sources(store, clock=ports.clock, ids=ports.ids, note=ports.note)
        self.sources = DocumentSources(sources, ports.aside)
        """Collections of documents that agents can search."""
        self._stage = partial(stage, store, capabilities, ask=ask, archive=archive, ports=ports, limits=limits)

    def __repr__(self) -> str:
        return f"<AgentSystem {self.store.root}, {type(self.runtime).__name__}>"

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
        by: str = "",
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
        - `by`: see `handle`.

        Raises UnknownAgent; PartitionBusy if another process has the log open; BadInput for an unusable name, setting
        or function; UsageError if the agent is at work with other functions or another endpoint; HostLost; StoreError.
        """
        name = self._stream(name)
        check_not_reserved(name)
        settings = Settings() if settings is None else check_settings(settings)
        if create:
            check_new_name(name, self.store.partition_of)
            self.runtime.check_capabilities(self._capabilities)
            await self._reading.check_new(name, settings)
            await self._aside(partial(self.store.register, name, shared=(placement or self._placement) == "shared"))
        else:
            await self._aside(self._reading.check_exists, name)
        sender = self._handles.sender(name, on_commit, by=by)
        # None keeps the capabilities that other callers gave the agent: this caller runs no turn and needs none.
        capabilities = self._capabilities if keep_configuration else self._capabilities or SessionCapabilities()
        opened = await sender.perform(
            commands.OpenAgent, capabilities=capabilities, settings=settings, create=create,
            take_over=take_over, keep_configuration=keep_configuration, command=command,
        )  # fmt: skip
        for warning in opened.warnings:
            self._ports.note(warning)
        return self._handles.handle(sender, opened)

    def handle(self, name: str, *, by: str = "", first_id: str = "") -> AgentRef:
        """Return a handle on an agent without opening it: a call raises UnknownAgent if there is no such agent.

        For a server, whose requests are single calls. `by`: id of the key of the caller, which the log names beside
        what the call writes. `first_id`: UUIDv7 of the first call that writes, which makes the call idempotent; empty:
        a new id. `opened` of the handle is empty.
        """
        return self._handles.handle(self._handles.sender(self._stream(name), by=by, first_id=first_id))

    async def cancel(self, name: str, *, all_turns: bool = False) -> Sequence[int]:
        """Cancel the turn that an agent runs. Return the numbers of the cancelled turns, none if no turn is open.

        `all_turns`: cancel the queued turns too. Events that a turn has committed stay in the log. Raises UnknownAgent.
        """
        ended: Sequence[int] = await self._handles.sender(self._stream(name)).perform(
            commands.CancelTurn, capabilities=None, every=all_turns
        )
        return ended

    async def create_many(
        self, names: Iterable[str], settings: Settings | None = None, *, placement: Placement | None = None
    ) -> AsyncIterator[SendOutcome]:
        """Create many agents at once, and open those that exist. Yield a `SendOutcome` for each as it is done.

        `settings` and `placement`: as for `agent`. The value of a `SendOutcome` is an `OpenReport`. Raises BadInput for
        an unusable name; errors of single agents are in their outcomes.
        """
        wanted = [self._stream(name) for name in names]
        for name in wanted:
            check_not_reserved(name)
            check_new_name(name, self.store.partition_of)
        settings = Settings() if settings is None else check_settings(settings)
        self.runtime.check_capabilities(self._capabilities)
        shared = (placement or self._placement) == "shared"
        await self._aside(partial(self.store.register_many, wanted, shared=shared))
        opens = [
            commands.OpenAgent(id=self._new_id(), capabilities=self._capabilities, settings=settings, command="everlog")
            for _ in wanted
        ]
        async for sent in outcomes_of(self.runtime, list(zip(wanted, opens, strict=True)), self.prices):
            yield sent

    async def send_many(self, messages: Iterable[tuple[str, str | Event]]) -> AsyncIterator[SendOutcome]:
        """Send messages to many agents at once. Yield a `SendOutcome` for each message as soon as its turn has ended.

        `messages`: pairs of an agent's name and a text or an input event. Agents do not delay each other; several
        messages to one agent are handled in the given order. A `SendOutcome` with an error was not carried out, or not
        completely; if the error has `retry_after_s`, try again after that many seconds. Raises BadInput for a message
        without words, before anything is sent.
        """
        say: list[tuple[str, Command]] = []
        for name, words in messages:
            send = commands.SendInput(id=self._new_id(), capabilities=self._capabilities, event=input_of(words))
            say.append((self._stream(name), send))
        async for sent in outcomes_of(self.runtime, say, self.prices):
            yield sent

    async def search(
        self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING, *,
        agents: Sequence[str] | None = None, as_of: datetime | None = None,
    ) -> Page:  # fmt: skip
        """Search what all agents heard, said, stored and concluded, and documents. Return a page, most relevant first.

        Each hit has its `agent` and its `place`; its `score` is its relevance, from 0 to 1. `agents`: only these.
        `as_of`: what was recorded up to this time, with a zone. Agents whose logs cannot be read are `unread`. Other
        parameters and errors are those of `AgentRef.search`.
        """
        await self._aside(import_module, "everlog.actors.reports.fleet_search")  # reads files: not in the event loop
        from everlog.actors.reports.fleet_search import FleetQuery, search_fleet

        names = None if agents is None else [self._stream(name) for name in agents]
        asked = FleetQuery(query, page, count, filters, None if as_of is None else microseconds_of(as_of, "as_of"))
        return await search_fleet(self._reading, self.store, names, asked, self._ports)

    def _new_id(self) -> str:
        return self._ports.ids.new(self._ports.clock.now())

    async def fork(
        self, name: str, new_name: str, *, at: int | datetime | None = None, placement: Placement = "dedicated",
        by: str = "",
    ) -> NewFork:  # fmt: skip
        """Create the agent `new_name` from the state of `name` at a moment, and return a description of the fork.

        `at`: fork point as a seq (inclusive) or a time with a zone (the last record up to then); None: the head.
        `placement`: of the fork. The cost does not depend on the length of the log. The parent may be at work; nothing
        is written to its log. A turn that was open at the fork point is closed in the fork and is not run again.
        `by`: see `handle`. Raises UnknownAgent; BadInput for a seq of no record, an erased one or a deleted agent,
        and for a name that is taken.
        """
        forked: NewFork = await self._aside(partial(self._reading.fork, self._stream(name), new_name, at=at, by=by))
        if placement == "shared":
            await (await self._exact().agent(forked.agent_id, create=False, keep_configuration=True)).move("shared")
        return forked

    async def export(
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
        `progress`: called in another thread while the export runs. The agent may be at work: the export holds its
        records of this moment.

        Raises UnknownAgent, BadInput (also for an existing file without `replace`), StoreError. A failed export leaves
        no new file.
        """
        export = partial(
            export_restore.export_agent, self._reading, self.store, self._stream(name), _file(path),
            clock=self._ports.clock, with_sources=with_sources, replace=replace, progress=progress,
        )  # fmt: skip
        header: ExportHeader = await self._aside(export)
        return header

    async def restore(self, path: str | Path, progress: Progress | None = None) -> RestoreReport:
        """Import a file of `export` under its original names. Return a report of each stream.

        The whole file is checked first. Agents that exist here with the same records stay as they are; one that was
        deleted since comes back as a fork of itself, `revived` in the report, under the same name. `progress`: called
        in another thread while the import runs. Raises CorruptLog for a damaged file, BadInput for a file that is no
        export and for a name that another agent has here, NewerFormat, PartitionBusy, StoreError.
        """
        restore = partial(export_restore.restore_agent, self.store, _file(path), progress, ports=self._ports)
        report: RestoreReport = await self._aside(restore)
        return report

    async def rerun(self, what: RerunOptions, notify: TurnPairCallback = lambda _: None) -> RerunOutcome:
        """Fork an agent before a seq, and replay its inputs from that seq on into the fork. Return the outcome.

        `what`: agent, seq, name of the fork, and the changes to try. `notify`: called after each turn with the recorded
        turn and the new one. The rerun runs in this process. Functions that act outside get their recorded results, or
        are refused, unless `what` allows them. A model failure ends the rerun; the error is in the outcome.

        Raises UnknownAgent, BadInput, UsageError if a function is missing that edits memory.
        """
        what = msgspec.structs.replace(what, agent_id=self._stream(what.agent_id))
        budget_of = await self._aside(stream_for, self.store, what.fork)
        return await rerun(what, self._stage(budget_of), notify)

    async def compare(self, name: str, fork: str) -> RerunComparison:
        """Compare an agent with one of its forks, turn by turn from the fork point on. Return the comparison.

        Raises UnknownAgent, BadInput if `fork` is no fork of `name`.
        """
        name, fork = [await self._aside(self._stream, one) for one in (name, fork)]
        compared: RerunComparison = await self._aside(compare, name, fork, self._stage(fork))
        return compared

    async def rename(self, name: str, new_name: str) -> None:
        """Give an agent another name, which is taken wherever a name of an agent is, and shown from now on.

        The name in the agent's log stays, in its records and as a name to use, and so do the names that it had before.
        Raises UnknownAgent; BadInput for an unusable name, and for one of another agent.
        """
        await self._aside(self.store.aliases.give, self._stream(name), new_name, self._ports.clock.now())

    async def delete(self, name: str, *, with_forks: bool = False) -> Sequence[str]:
        """Delete an agent, and with `with_forks` its forks and theirs. Return the deleted names, `name` last.

        A deleted name can be used again, by `agent` and by `fork`, and names that `rename` gave are free; the records
        stay until they are erased. Raises UnknownAgent, and BadInput if the agent has forks that are not deleted and
        `with_forks` is False.
        """
        name, exact = self._stream(name), self._exact()
        ended: list[str] = [*(await self._aside(self._reading.live_forks, name) if with_forks else []), name]
        for each in ended:
            await (await exact.agent(each, create=False, keep_configuration=True, command="everlog delete")).delete()
        return ended

    def _exact(self) -> Self:
        """Return this system for names of streams, which are not looked up again."""
        exact = copy(self)
        exact._stream = name_of  # noqa: SLF001 - its own class
        return exact

    async def plan_erasure(self, name: str, selection: Selection, *, derived: bool = False) -> ErasurePlan:
        """Return what an erasure would take, and which other records say the same. Nothing is changed.

        `name`: an agent, or the stream `block:NAME` or `source:NAME`. `derived`: plan to take those records too.
        Raises UnknownAgent; BadInput for an empty selection, a range beyond the head, records of an ancestor.
        """
        stream = self._stream(name)
        await self._aside(self._reading.check_exists, stream)
        plan: ErasurePlan = await self._aside(partial(plan_erasure, self.store, stream, selection, derived=derived))
        return plan

    async def erase(
        self, name: str, selection: Selection, *, derived: bool = False, progress: Progress | None = None
    ) -> ErasureReport:
        """Erase the content of records in every file of the store. Return a report. This cannot be undone.

        Parameters and errors: as for `plan_erasure`. The agents are unloaded first. Repeat the call after an
        interruption: it erases the rest. Files of `export` and backups keep the content. Raises PartitionBusy if an
        agent is at work, StoreError, ArchiveError.
        """
        plan = await self.plan_erasure(name, selection, derived=derived)
        for each in agents_to_unload(plan):
            await self.runtime.unload(each)
        report: ErasureReport = await self._aside(erase_planned, self._reading, plan, progress)
        return report

    async def unload(self, name: str) -> bool:
        """Unload an agent, so that another process can open it. Return False if the agent is at work.

        An agent in a shard is unloaded together with the other agents of the shard.
        """
        return await self.runtime.unload(self._stream(name))

    async def agents(self) -> list[str]:
        """Return the names of all agents that have a log, sorted."""
        return list(await self._aside(self._reading.agents))

    async def sql(self, query: str, *, as_of: datetime | None = None, agent: str | None = None) -> pa.Table:
        """Run one SELECT over the views of all agents (docs/reference/sql.md). Return the rows.

        The views show one position of all logs. `as_of`: use only records up to this time, with a zone, inclusive.
        `agent`: use only the records of this agent. Writers are not blocked. Raises BadInput, CorruptLog, StoreError.
        """
        from everlog.actors.memory.fleet_sql import fleet_sql

        upto = None if as_of is None else microseconds_of(as_of, "as_of")
        return await self._aside(partial(fleet_sql, self.store, query, as_of=upto, agent=agent and self._stream(agent)))

    async def view(self, name: str, *, as_of: int | datetime | None = None) -> AgentState:
        """Return the state of an agent for reading, now or as of a seq (inclusive) or a time with a zone.

        Starts no host. Close the state after use, or use it in an `async with` block. Raises UnknownAgent, and BadInput
        for a moment before the agent's first record or after its last.
        """
        view = await self._aside(partial(self._reading.view, self._stream(name), as_of=as_of))
        return AgentState(view, self._aside)


def _file(path: str | Path) -> Path:
    return Path(path).expanduser()
