"""The agents of a server: the API of `AgentSystem`, over HTTP.

Whatever reads one agent at a moment reads a copy of its log; see `MirrorStore`. The rest are requests of their own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pyarrow as pa

from everlog.actors.agent import commands
from everlog.actors.agent.agent_setup import Settings, check_settings
from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent.fork_agent import NewFork
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.agent_handles import AgentHandles
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_state import AgentState
from everlog.actors.agent_system import AgentSystem
from everlog.actors.batch_outcomes import outcomes_of
from everlog.actors.erasure.erase_planned import ErasureReport
from everlog.actors.erasure.erasure_plan import ErasurePlan
from everlog.actors.erasure.selection import Selection
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import ANYTHING, Filters, Page
from everlog.actors.ports.ports import Ports
from everlog.actors.reply import SendOutcome
from everlog.actors.rerun.rerun import RerunOptions, RerunOutcome, TurnPairCallback
from everlog.actors.rerun.rerun_comparison import RerunComparison
from everlog.actors.runtime import Placement
from everlog.actors.short_tracebacks import short_tracebacks
from everlog.actors.store_services import DocumentSources, SharedBlocks
from everlog.events import UsageError
from everlog.interfaces.client.mirror_store import MirrorStore
from everlog.interfaces.client.remote_documents import RemoteBlockService, RemoteSources
from everlog.interfaces.client.remote_erasures import erase_request, plan_of, plan_request
from everlog.interfaces.client.remote_files import export_to, restore_from, table_of
from everlog.interfaces.client.remote_jobs import looks
from everlog.interfaces.client.remote_reruns import compare, rerun
from everlog.interfaces.client.remote_runtime import RemoteRuntime
from everlog.interfaces.client.remote_search import search_agent, search_agents
from everlog.interfaces.client.server_address import BodyT, WireRequest, path_of
from everlog.interfaces.wire import agents as agent_shapes
from everlog.interfaces.wire.sql import SqlBody
from everlog.interfaces.wire.transfer import ErasurePlanShape
from everlog.projections import Projections
from everlog.store import (
    ExportHeader,
    Progress,
    RestoreReport,
    block_of,
    is_agent,
    is_block,
    is_source,
    source_of,
)


class MirrorReading(LocalSystem):
    """Agents of a server for reading, by any of their names."""

    store: MirrorStore

    def view(
        self, agent_id: str, projections: Projections | None = None, *, as_of: int | datetime | None = None
    ) -> AgentView:
        """Open an agent for reading; see `LocalSystem.view`."""
        return super().view(self.store.stream_of(agent_id), projections, as_of=as_of)

    def check_exists(self, agent_id: str) -> None:
        """Raise UnknownAgent for a name that the server does not have."""
        super().check_exists(self.store.stream_of(agent_id))

    def check_no_forks(self, agent_id: str) -> None:
        """Accept every agent: the server checks."""


class RemoteHandles(AgentHandles):
    """Factory of the handles on agents of a server, which is asked to search."""

    async def _search(self, search: Callable[..., Awaitable[Page]], agent_id: str, *how: Any) -> Page:
        assert isinstance(self._runtime, RemoteRuntime)
        archival = search is AgentState.search_archive
        return await search_agent(self._runtime.channel, agent_id, *how, archival=archival)


@short_tracebacks
class RemoteSystem(AgentSystem):
    """The agents of the store of a server. `connect_system` makes it."""

    runtime: RemoteRuntime
    store: MirrorStore

    def __init__(
        self, runtime: RemoteRuntime, mirror: MirrorStore, ports: Ports, *, placement: Placement | None
    ) -> None:
        reading = MirrorReading(mirror, ports=ports)
        super().__init__(
            runtime, mirror, capabilities=None, ports=ports, ask=_no_model, archive=None, exact_names=True,
            reading=reading, where=runtime.channel.address.url,
        )  # fmt: skip
        self._own_placement = placement
        blocks: Any = RemoteBlockService(mirror.channel, ports)
        self.shared = SharedBlocks(blocks, ports.aside)
        sources: Any = RemoteSources(mirror.channel)
        self.sources = DocumentSources(sources, ports.aside)
        self._handles = RemoteHandles(
            runtime, reading, mirror, capabilities=None, ports=ports, prices=self.prices, rename=self.rename,
            where=runtime.channel.address.url,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<RemoteSystem {self.runtime.channel.address.url}>"

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
        """Open an agent, create it if it does not exist, and return a handle on it; see `AgentSystem.agent`.

        Without settings an agent that exists stays as it is. Raises UsageError for `take_over`: the server has the logs
        open.
        """
        if take_over:
            raise UsageError("A log is taken over where it is, not through a server. Nothing was done.")
        settings = Settings() if settings is None else check_settings(settings)
        first = self._handles.sender(name, by=by).command(
            commands.OpenAgent, settings=settings, create=create, keep_configuration=keep_configuration,
            command=command,
        )  # fmt: skip
        assert isinstance(first, commands.OpenAgent)
        opened = await self.runtime.placing(placement or self._own_placement).opened(name, first)
        return self._handles.handle(self._handles.sender(name, on_commit, by=by), opened)

    async def create_many(
        self, names: Iterable[str], settings: Settings | None = None, *, placement: Placement | None = None
    ) -> AsyncIterator[SendOutcome]:
        """Create many agents at once, and open those that exist; see `AgentSystem.create_many`."""
        settings = Settings() if settings is None else check_settings(settings)
        runtime = self.runtime.placing(placement or self._own_placement)
        opens = [(name, commands.OpenAgent(id=self._new_id(), settings=settings)) for name in names]
        async for sent in outcomes_of(runtime, opens, self.prices):
            yield sent

    async def fork(
        self, name: str, new_name: str, *, at: int | datetime | None = None, placement: Placement = "dedicated",
        by: str = "",
    ) -> NewFork:  # fmt: skip
        """Create an agent from the state of another one at a moment; see `AgentSystem.fork`. `by`: unused here."""
        moment = at.isoformat() if isinstance(at, datetime) else at
        body = agent_shapes.ForkBody(name=new_name, at=moment, placement=placement)
        made = await self._call(
            WireRequest("POST", f"/agents{path_of(name)}/forks", body, self._new_id()), agent_shapes.ForkShape
        )
        return NewFork(made.agent, made.parent, made.parent_seq, made.head, made.closed)

    async def rename(self, name: str, new_name: str) -> None:
        """Give an agent another name; see `AgentSystem.rename`."""
        body = agent_shapes.RenameBody(name=new_name)
        await self._call(WireRequest("POST", f"/agents{path_of(name)}/rename", body, self._new_id()), agent_shapes.Done)

    async def delete(self, name: str, *, with_forks: bool = False) -> Sequence[str]:
        """Delete an agent, and with `with_forks` its forks and theirs; see `AgentSystem.delete`."""
        query = [("with_forks", "true")] if with_forks else []
        request = WireRequest("DELETE", f"/agents{path_of(name)}", query=query)
        return (await self._call(request, agent_shapes.DeletedAgents, repeats=False)).deleted

    async def export(
        self,
        name: str,
        path: str | Path,
        *,
        with_sources: bool = False,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> ExportHeader:
        """Export an agent into a file here; see `AgentSystem.export`. `progress` is not called."""
        work = partial(export_to, self.store.channel, name, _file(path), with_sources=with_sources, replace=replace)
        header: ExportHeader = await self._aside(work)
        return header

    async def restore(self, path: str | Path, progress: Progress | None = None) -> RestoreReport:
        """Import a file of `export` into the store of the server; see `AgentSystem.restore`."""
        report: RestoreReport = await self._aside(restore_from, self.store.channel, _file(path))
        return report

    async def sql(self, query: str, *, as_of: datetime | None = None, agent: str | None = None) -> pa.Table:
        """Run one SELECT over the views of all agents, on the server; see `AgentSystem.sql`."""
        moment = None if as_of is None else as_of.isoformat()
        body = SqlBody(query=query, format="arrow", as_of=moment, agent=agent or "")
        rows, _ = table_of(await self.runtime.channel.bytes_of(WireRequest("POST", "/sql", body)))
        return rows

    async def erase(
        self, name: str, selection: Selection, *, derived: bool = False, progress: Progress | None = None
    ) -> ErasureReport:
        """Erase the content of records in every file of the store; see `AgentSystem.erase`. This cannot be undone."""
        request = erase_request(_path_of_stream(name), selection, derived=derived, id=self._new_id())
        async for job in looks(self.runtime.channel, request, self._ports):
            if progress is not None and job.progress.total:
                progress(job.progress.done, job.progress.total)
        return msgspec.convert(job.result, ErasureReport)

    async def plan_erasure(self, name: str, selection: Selection, *, derived: bool = False) -> ErasurePlan:
        """Return what an erasure of an agent would take; see `AgentSystem.plan_erasure`. Raises UsageError for a source
        or a shared block.
        """
        if not is_agent(name):
            raise UsageError(f"An erasure of {name!r} is planned where the store is. Nothing was changed.")
        request = plan_request(_path_of_stream(name), selection, derived=derived)
        return plan_of(await self._call(request, ErasurePlanShape), selection)

    async def rerun(self, what: RerunOptions, notify: TurnPairCallback = lambda _: None) -> RerunOutcome:
        """Have the server repeat inputs in a fork; see `AgentSystem.rerun`.

        The server continues if this call is cancelled. `notify` is called some seconds after a turn has ended.
        """
        return await rerun(self.runtime.channel, what, notify, id=self._new_id(), ports=self._ports)

    async def compare(self, name: str, fork: str) -> RerunComparison:
        """Compare an agent with one of its forks; see `AgentSystem.compare`."""
        return await compare(self.runtime.channel, name, fork)

    async def _call(self, request: WireRequest, kind: type[BodyT], *, repeats: bool = True) -> BodyT:
        return await self.runtime.channel.call(request, kind, repeats=repeats)

    async def search(
        self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING, *,
        agents: Sequence[str] | None = None, as_of: datetime | None = None,
    ) -> Page:  # fmt: skip
        """Search what all agents have heard, said, stored and concluded; see `AgentSystem.search`."""
        return await search_agents(self.runtime.channel, agents, query, page, count, filters, as_of)

    async def agents(self) -> list[str]:
        """Return the names of all agents that have a log, sorted."""
        names: list[str] = await self._aside(self.store.agents)
        return names

    async def unload(self, name: str) -> bool:
        """Unload an agent. Return False if it is at work."""
        return await self.runtime.unload(name)


def _file(path: str | Path) -> Path:
    return Path(path).expanduser()


def _path_of_stream(name: str) -> str:
    """Return the path of an agent, or of the stream `block:NAME` or `source:NAME`."""
    if is_block(name):
        return f"/blocks{path_of(block_of(name))}"
    if is_source(name):
        return f"/sources{path_of(source_of(name))}"
    return f"/agents{path_of(name)}"


async def _no_model(*_: Any, **__: Any) -> NoReturn:
    raise UsageError("Models are asked by the server.")
