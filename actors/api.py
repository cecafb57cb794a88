"""Open a store and talk to its agents, in this process or in a cluster.

    async with open_system("~/.everlog") as system:
        agent = await system.agent("sam")
        async for record in agent.send("Hi, I sail"):
            if record.type == "message_sent":
                print(record.text)

Every failure raises an EverlogError. Events that were acknowledged before a failure stay in the log.

Used by users' programs through the package `everlog`, by `sync_api`, and by `interfaces.common.bootstrap` for the
commands.
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
from everlog.store import folder_of, is_bucket_url

RuntimeName = Literal["auto", "local", "ray"]
RUNTIMES: Sequence[RuntimeName] = ("auto", "local", "ray")
PLACEMENTS: Sequence[Placement] = ("dedicated", "shared")


class ServiceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the gateway to the models, which the agents of this process share."""

    models: Callable[[str, str], Model] | None = None
    """Function from a model's name and its base URL to a model; None: the real endpoints."""
    limits: GatewayLimits | None = None
    """Limits of the gateway in this process; None: those of the EVERLOG_GATEWAY_ variables. A cluster's gateway has its
    own.
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
    exact_names: bool = False,
) -> AsyncIterator[AgentSystem]:
    """Open the agents of a store while the block runs.

    - `store`: folder of the store, or its address as text (s3://BUCKET/PREFIX, gs:// or az://); it is created if it
      does not exist.
    - `runtime`: `local` runs agents in this process; `ray` joins a running cluster, or starts a cluster here while the
      block runs; `auto` joins a cluster if there is one and is `local` otherwise. None: EVERLOG_RUNTIME, else `auto`.
    - `tools`, `base_url`, `grants`: capabilities of the agents while the block runs: functions, endpoint of the model,
      permissions. They are never written to a log.
    - `idle_s`: seconds without a command after which an agent is unloaded.
    - `timers`: fire the timers of agents that are opened here (`local` only; a cluster always fires timers). Pass False
      in a process that ends soon: it also embeds nothing ahead of searches.
    - `placement`: default for new agents.
    - `shards`: number of shared partitions of a new store; None: one for each processor of this machine. Another
      number than that of an existing store is refused: `everlog cluster shards 8` changes it.
    - `services`: options of the gateway (`local` only, but for `limits`, whose prices reruns use).
    - `ports`: clock, ids and other effects of a test or an embedding program (`sleep` and `aside` are for `local`).
      None: the real ones, and notes are dropped.
    - `exact_names`: names are those of streams, as `AgentSystem.agents` returns them. False: NAME is the newest agent
      of that name, which can be NAME@gen2 if the first one was deleted.

    Raises StoreError, ClusterError, BadInput.
    """
    services, ports = services or ServiceOptions(), ports or Ports()
    place = place_of(runtime, _folder(store))
    files = make_store(_folder(store), ports.clock, ports.ids, shards)
    session = SessionCapabilities(tools=tuple(tools), base_url=base_url, grants=grants)
    capabilities = session if session.same != SessionCapabilities().same else None
    system_over = partial(
        AgentSystem, store=files, ports=ports, placement=placement, limits=services.limits,
        exact_names=exact_names,
    )  # fmt: skip
    if place == "ray":
        address = address_to_join(files.root)
        # The caller's endpoint: the environment of the cluster may name another one.
        served = base_url or os.environ.get("OPENAI_BASE_URL", "")
        capabilities = msgspec.structs.replace(session, base_url=served) if capabilities or served else None
        if not address:
            ports.note("starting Ray on this machine; `everlog up` keeps it running between commands")
        prepare(files.root, address)
        async with _cluster().joined(files, address, idle_s=idle_s, note=ports.note) as cluster:
            yield system_over(cluster, capabilities=capabilities, ask=cluster.ask, archive=cluster.archive)
        return
    limits = services.limits or limits_from(os.environ)
    gateway = Gateway(services.models, limits, clock=ports.clock, root=files.root)
    archive = local_archive(files, note=ports.note, stays=timers)
    local = local_runtime(files, gateway.ask, archive, ports=ports, idle_s=idle_s, timers=timers)
    try:
        yield system_over(local, capabilities=capabilities, ask=gateway.ask, archive=archive)
    finally:
        # In this order: until hosts are closed, their turns call the gateway and search the archive.
        await local.close()
        await gateway.close()
        await archive.close()


def _cluster() -> ModuleType:
    """Return the module that imports Ray. Raises ClusterError if Ray is not installed."""
    try:
        from everlog.actors.cluster import ray_runtime as cluster
    except ImportError as error:
        raise ClusterError(
            f"Ray cannot be imported ({error}): install it (the requirement is in pyproject.toml), or run agents in "
            "this process with --runtime local."
        ) from error
    return cluster


def _folder(store: str | Path) -> Path:
    return folder_of(store) if isinstance(store, str) and is_bucket_url(store) else Path(store).expanduser()


def place_of(asked: RuntimeName | None, root: Path) -> str:
    """Return `local` or `ray` for the store in `root`. Raises BadInput for an unknown runtime.

    `asked`: runtime that the caller wants; None: EVERLOG_RUNTIME, else `auto`.
    """
    wanted = asked or os.environ.get("EVERLOG_RUNTIME") or "auto"
    if wanted not in RUNTIMES:
        raise BadInput(f"There is no runtime {wanted!r} (--runtime, EVERLOG_RUNTIME): it is auto, local or ray.")
    if wanted != "auto":
        return wanted
    return "ray" if running(root) else "local"
