"""The Python API: agents that are talked to, wherever they run.

    async with open_system("~/.everlog") as system:
        agent = await system.agent("sam")
        async for record in agent.send("Hi, I sail"):
            if record.type == "message_sent":
                print(record.text)

Everything that can fail raises an EverlogError, and what was acknowledged before stays in the log.
"""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Literal

import msgspec

from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.agent_system import AgentSystem
from everlog.actors.archive.archive_index import local_archive
from everlog.actors.archive.archive_service import WaitPolicy
from everlog.actors.cluster.ray_address import address_to_join, prepare, running
from everlog.actors.functions.extras import NO_GRANTS, Grants
from everlog.actors.functions.tools import Tool
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits, limits_from
from everlog.actors.hosting.local_runtime import local_runtime
from everlog.actors.ports.agent_constants import IDLE_S
from everlog.actors.ports.effects import Model
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import make_store
from everlog.actors.runtime import Placement
from everlog.events import BadInput, ClusterError

RuntimeName = Literal["auto", "local", "ray"]
RUNTIMES: Sequence[RuntimeName] = ("auto", "local", "ray")
PLACEMENTS: Sequence[Placement] = ("dedicated", "shared")


class ServiceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the services that agents in this process share are set up: the gateway to the models, and the archive."""

    models: Callable[[str, str], Model] | None = None
    """From a model's name and the address where it is served to a model; None: the real ones."""
    limits: GatewayLimits | None = None
    """Of the gateway; None: those of the EVERLOG_GATEWAY_ variables. That of a cluster has its own."""
    patience: WaitPolicy | None = None
    """Whether a search of what was said waits until vectors can be had (`wait`), goes by words until they can
    (`begin`), or does so for good, as in a process that soon ends (`spare`); None: `begin` where timers go off, else
    `spare`. A search in archival memory always waits.
    """


@asynccontextmanager
async def open_system(
    store: str | Path,
    *,
    runtime: RuntimeName | None = None,
    tools: Sequence[Tool] = (),
    base_url: str = "",
    grants: Grants = NO_GRANTS,
    idle_s: float = IDLE_S,
    timers: bool = True,
    placement: Placement = "dedicated",
    shards: int | None = None,
    services: ServiceOptions | None = None,
    ports: Ports | None = None,
) -> AsyncIterator[AgentSystem]:
    """The agents of the store in the folder `store`, which is made if there is none, while the block runs.

    `runtime`: `local` is this process; `ray` joins a running cluster, or starts one here for as long as the block
    runs; `auto` joins a cluster if one runs and is local otherwise; None is EVERLOG_RUNTIME, else `auto`. `tools`,
    `base_url` and `grants` are lent to the agents and never kept in a log. An agent that nobody uses for `idle_s`
    seconds is let go of. `timers`: whether, in `local`, timers of agents that are opened here go off meanwhile.
    `services`: how the gateway and the archive are set up. `ports`: what a test or a program around this one brings
    (`sleep` and `aside` are for `local`); None: the real ones, and nobody is told notes.

    `placement`: of agents that are made here and not told otherwise; `shards`: how many shared partitions a new store
    gets (None: one for each processor of this machine); their number is fixed then, and another one is refused.

    Raises StoreError, ClusterError, BadInput.
    """
    services, ports = services or ServiceOptions(), ports or Ports()
    place = place_of(runtime, _folder(store))
    files = make_store(_folder(store), ports.clock, ports.ids, shards)
    session = SessionCapabilities(tools=tuple(tools), base_url=base_url, grants=grants)
    capabilities = session if session.same != SessionCapabilities().same else None
    system_over = partial(AgentSystem, store=files, ports=ports, placement=placement, limits=services.limits)
    if place == "ray":
        address = address_to_join(files.root)
        served = base_url or os.environ.get("OPENAI_BASE_URL", "")  # of this process: the cluster may have another
        capabilities = msgspec.structs.replace(session, base_url=served) if capabilities or served else None
        if not address:
            ports.note("starting Ray on this machine; `everlog up` keeps it running between commands")
        prepare(files.root, address)
        async with _cluster().joined(files, address, idle_s=idle_s) as cluster:
            yield system_over(cluster, capabilities=capabilities, ask=cluster.ask, archive=cluster.archive)
        return
    limits = services.limits or limits_from(os.environ)
    gateway = Gateway(services.models, limits, clock=ports.clock, root=files.root)
    archive = local_archive(files, services.patience or ("begin" if timers else "spare"), note=ports.note)
    local = local_runtime(files, gateway.ask, archive, ports=ports, idle_s=idle_s, timers=timers)
    try:
        yield system_over(local, capabilities=capabilities, ask=gateway.ask, archive=archive)
    finally:
        await local.close()
        await gateway.close()
        await archive.close()


def _cluster() -> ModuleType:
    """The file that imports Ray. Raises ClusterError where Ray is not installed."""
    try:
        from everlog.actors.cluster import ray_runtime as cluster
    except ImportError as error:
        raise ClusterError(
            f"Ray cannot be imported ({error}): install it (the requirement is in pyproject.toml), or run agents in "
            "this process with --runtime local."
        ) from error
    return cluster


def _folder(store: str | Path) -> Path:
    return Path(store).expanduser()


def place_of(asked: RuntimeName | None, root: Path) -> str:
    """`local` or `ray`, as it was asked for the store in `root`. Raises BadInput for any other word."""
    wanted = asked or os.environ.get("EVERLOG_RUNTIME") or "auto"
    if wanted not in RUNTIMES:
        raise BadInput(f"There is no runtime {wanted!r} (--runtime, EVERLOG_RUNTIME): it is auto, local or ray.")
    if wanted != "auto":
        return wanted
    return "ray" if running(root) else "local"
