"""Connect to a server, and talk to its agents.

    async with connect_system("http://127.0.0.1:8283") as system:
        agent = await system.agent("sam")
        print(await agent.ask("Hi, I sail"))

Used by users' programs through the package `everlog`, and by the commands with --server.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import chance
from everlog.actors.runtime import Placement
from everlog.actors.sync_api import SyncSystem, blocking_system
from everlog.actors.sync_proxy import check_no_loop
from everlog.interfaces.client.mirror_store import MirrorStore
from everlog.interfaces.client.remote_runtime import RemoteRuntime
from everlog.interfaces.client.remote_system import RemoteSystem
from everlog.interfaces.client.server_address import ServerAddress, WireRequest
from everlog.interfaces.client.server_channel import BlockingChannel, ServerChannel
from everlog.interfaces.wire.jobs import JobList


@asynccontextmanager
async def connect_system(
    url: str,
    *,
    key: str | None = None,
    placement: Placement | None = None,
    ports: Ports | None = None,
    chance: Callable[[], float] = chance,
) -> AsyncIterator[RemoteSystem]:
    """Connect to the server at `url` while the block runs. The API is that of `open_system`.

    - `key`: key of the server; None: none is sent, which a server without keys accepts.
    - `placement`: default for new agents; None: the server's.
    - `ports`: clock, ids and other effects of a test or an embedding program; None: the real ones.
    - `chance`: makes a number from 0 to 1, so that clients that wait come back at different times.

    Turns that run continue when the block ends. Raises BadInput for an unusable address or key, and ClusterError if
    there is no server.
    """
    ports = ports or Ports()
    address = ServerAddress(url, key)
    if address.sends_key_in_clear:
        ports.note(f"the key is sent to {address.url} without encryption: use https://, or a tunnel")
    async with mirrored(address, ports) as mirror, connected(address, mirror, ports, placement, chance) as system:
        yield system


@asynccontextmanager
async def connected(
    address: ServerAddress,
    mirror: MirrorStore,
    ports: Ports,
    placement: Placement | None,
    chance: Callable[[], float] = chance,
) -> AsyncIterator[RemoteSystem]:
    """Connect to a server while the block runs, with copies of agents that outlive the block."""
    await ports.aside(mirror.channel.call, _FIRST, JobList)  # a wrong address or key is found at once
    runtime = RemoteRuntime(ServerChannel(address, ports, chance), ports)
    try:
        yield RemoteSystem(runtime, mirror, ports, placement=placement)
    finally:
        await runtime.close()


_FIRST = WireRequest("GET", "/jobs", query=[("limit", "1")])
"""First request: one that needs a key and little work. A listing of agents reads all of them, however few it shows."""


@asynccontextmanager
async def mirrored(address: ServerAddress, ports: Ports) -> AsyncIterator[MirrorStore]:
    """Keep copies of the agents of a server while the block runs."""
    with BlockingChannel(address) as channel:
        mirror = MirrorStore(channel, ports)
        try:
            yield mirror
        finally:
            await ports.aside(mirror.close)


@contextmanager
def connect(
    url: str, *, key: str | None = None, placement: Placement | None = None, ports: Ports | None = None
) -> Iterator[SyncSystem]:
    """Connect to the server at `url` while the block runs; every call blocks.

    The parameters and errors are those of `connect_system`, and UsageError in a running event loop.
    """
    check_no_loop("connect")
    with blocking_system(connect_system(url, key=key, placement=placement, ports=ports)) as system:
        yield system
