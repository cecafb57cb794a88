"""Choose the server that a command talks to: --server, else EVERLOG_SERVER unless --store is given, else none.

The key comes from the environment or a file: arguments of a program are visible to every user of a machine.

Used by `cli.command_run` before a command runs, and by `open_store` and `bootstrap`, which then give the command the
agents of the server instead of those of a folder.
"""

import os
from argparse import Namespace
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from everlog.events import BadInput, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from everlog.actors.erasure.store_eraser import Eraser
    from everlog.actors.feed.store_feed import FeedFilter
    from everlog.actors.ports.ports import Ports
    from everlog.actors.reports.fleet_listing import FleetListing
    from everlog.actors.runtime import Placement
    from everlog.interfaces.client.event_stream import FeedPart
    from everlog.interfaces.client.mirror_store import MirrorStore
    from everlog.interfaces.client.remote_documents import RemoteBlockService, RemoteSources
    from everlog.interfaces.client.remote_search import RemoteSearcher
    from everlog.interfaces.client.remote_system import RemoteSystem
    from everlog.interfaces.client.server_channel import BlockingChannel
    from everlog.interfaces.wire.agents import AgentShape
    from everlog.store import ExportHeader, FleetPosition, RestoreReport

ShapeT = TypeVar("ShapeT")
SERVER_VARIABLE, KEY_VARIABLE, KEY_FILE_VARIABLE = "EVERLOG_SERVER", "EVERLOG_KEY", "EVERLOG_KEY_FILE"
KEY_BYTES_MAX = 4096

FILES_ONLY = frozenset(
    {
        "a2a add", "a2a list", "a2a remove", "a2a test", "archive check", "archive rebuild", "archive status",
        "cluster drain", "cluster shards", "cluster status", "console", "down", "fleet", "keys create", "keys list",
        "keys revoke", "log check", "log repair-register", "log seal", "log stats", "mcp add", "mcp list",
        "mcp refresh", "mcp remove", "mcp serve", "mcp test", "ping", "preset add", "preset list", "preset remove",
        "preset show", "serve", "store check", "up",
    }
)  # fmt: skip
"""Commands that look after the files or the processes of a store, where these are."""
_BELONGS = {
    "fleet": "it loads a store to measure it, and from here it would measure the network and this client",
    "preset": "presets are files of the store; --persona FILE sends a text of this machine",
}
"""Reasons of commands, by their first word, that say more than "it looks after files"."""
WITHOUT_STORE = frozenset({"", "completion", "config", "doctor", "explain", "help", "store copy", "tour"})
"""Commands that concern this machine: they do not read the variable of the server."""
OF_SERVER = ("runtime", "workspace", "allow_host", "helper", "base_url", "shards")
"""Options of the process that runs agents, besides --tools, --mcp and --a2a."""


class ChosenServer:
    """The server of a command, with the copies of its agents that the command reads."""

    def __init__(self, url: str, key: str | None, ports: "Ports") -> None:
        """Store the arguments, which are those of `connect_system`. Raises BadInput for unusable ones."""
        from everlog.interfaces.client.server_address import ServerAddress

        self._address = ServerAddress(url, key)
        self._ports = ports

    @cached_property
    def channel(self) -> "BlockingChannel":
        """Requests to the server."""
        from everlog.interfaces.client.server_channel import BlockingChannel

        return BlockingChannel(self._address)

    @cached_property
    def mirror(self) -> "MirrorStore":
        """Copies of the agents, for reading."""
        from everlog.interfaces.client.mirror_store import MirrorStore

        return MirrorStore(self.channel, self._ports)

    def connected(self, args: Namespace, placement: "Placement | None") -> "AbstractAsyncContextManager[RemoteSystem]":
        """Connect to the server while the block runs. Raises UsageError for options of the process of the agents."""
        from everlog.interfaces.client.connect import connected

        check_no_options_of_server(args)
        return connected(self._address, self.mirror, self._ports, placement)

    def blocks(self) -> "RemoteBlockService":
        """Return the shared blocks."""
        from everlog.interfaces.client.remote_documents import RemoteBlockService

        return RemoteBlockService(self.channel, self._ports)

    def sources(self) -> "RemoteSources":
        """Return the sources of documents."""
        from everlog.interfaces.client.remote_documents import RemoteSources

        return RemoteSources(self.channel)

    def query(self, query: str, **how: object) -> "tuple[pa.Table, FleetPosition]":
        """Return the rows of an SQL query, and their position. `how`: fields of `SqlBody`. Raises BadInput."""
        from everlog.interfaces.client.remote_files import table_of
        from everlog.interfaces.client.server_address import WireRequest

        body = {"query": query, "format": "arrow", **how}
        return table_of(self.channel.bytes_of(WireRequest("POST", "/sql", body)))

    def export(self, name: str, path: Path, *, with_sources: bool, replace: bool) -> "ExportHeader":
        """Download the export of an agent into a file. Return its header."""
        from everlog.interfaces.client.remote_files import export_to

        return export_to(self.channel, name, path, with_sources=with_sources, replace=replace)

    def restore(self, path: Path) -> "RestoreReport":
        """Upload an export. Return what was restored."""
        from everlog.interfaces.client.remote_files import restore_from

        return restore_from(self.channel, path)

    def answer(self, path: str, kind: type[ShapeT], **query: object) -> ShapeT:
        """Return what the server answers under a path. `query`: its parameters; those that are None are left out."""
        from everlog.interfaces.client.server_address import WireRequest

        given = [(name, str(value)) for name, value in query.items() if value is not None]
        return self.channel.call(WireRequest("GET", path, query=given), kind)

    def agent(self, name: str, as_of: str | None = None) -> "AgentShape":
        """Return an agent at a moment; None: now. Raises UnknownAgent, and BadInput for what is no moment of it."""
        from everlog.interfaces.client.server_address import path_of
        from everlog.interfaces.wire.agents import AgentShape

        return self.answer(f"/agents{path_of(name)}", AgentShape, as_of=as_of)

    def searcher(self, name: str, as_of: str | None, zone: str) -> "RemoteSearcher":
        """Return the searches of an agent at a moment. `zone`: IANA zone of the agent."""
        from everlog.interfaces.client.remote_search import RemoteSearcher

        return RemoteSearcher(self.channel, name, as_of, zone)

    def listing(self, *, until: int | None = None, deleted: bool = False, check: bool = False) -> "FleetListing":
        """Return the listing of the agents; see `listing_of`."""
        from everlog.interfaces.client.remote_figures import listing_of

        return listing_of(self.channel, until=until, deleted=deleted, check=check)

    def verify(self, name: str, sample: int | None, seed: str) -> Mapping[str, Any]:
        """Have the server verify an agent. Return the report, as `everlog verify --json` prints it, and `deleted`."""
        from everlog.interfaces.client.remote_jobs import finished
        from everlog.interfaces.client.server_address import WireRequest, path_of
        from everlog.interfaces.wire.jobs import VerifyBody

        body = VerifyBody(sample=sample, seed=seed)
        return finished(self.channel, WireRequest("POST", f"/agents{path_of(name)}/verify", body, self._new_id()))

    def feed(self, after: str, wanted: "FeedFilter") -> "AsyncGenerator[FeedPart]":
        """Return the feed of the server after a position, for ever; see `read_feed`."""
        from everlog.interfaces.client.remote_feed import read_feed

        return read_feed(self._address, after, wanted, self._ports)

    def eraser(self) -> "Eraser":
        """Return the erasures in the store of the server."""
        from everlog.interfaces.client.remote_erasures import RemoteEraser

        return RemoteEraser(self.mirror, self._new_id)

    def _new_id(self) -> str:
        return self._ports.ids.new(self._ports.clock.now())

    def close(self) -> None:
        """Remove the copies, and close the connections for reading."""
        made = vars(self)
        for part in ("mirror", "channel"):
            if part in made:
                made.pop(part).close()

    def __repr__(self) -> str:
        return f"<ChosenServer {self._address.url}>"


def choose_server(args: Namespace, ports: "Ports", environment: Mapping[str, str] = os.environ) -> ChosenServer | None:
    """Return the server of a command; None if it works on a folder. Raises UsageError for a command that a server does
    not carry out, BadInput for an unusable address or key.
    """
    given = getattr(args, "server", None)
    named = given or (None if getattr(args, "store", None) else environment.get(SERVER_VARIABLE))
    if not named or (args.command in WITHOUT_STORE and not given):
        return None
    if given and getattr(args, "store", None):
        args.fail("give either --server or --store")
    if args.command in FILES_ONLY or args.command in WITHOUT_STORE:
        why = _BELONGS.get(args.command.partition(" ")[0], "it looks after files or processes of its machine")
        raise UsageError(
            f"`everlog {args.command}` is not carried out by a server: {why}. Run it beside the store, without "
            f"{'--server' if given else SERVER_VARIABLE} and with --store DIR. Nothing was done."
        )
    return ChosenServer(named, key_in(environment), ports)


def check_no_server(args: Namespace, what: str) -> None:
    """Raise UsageError with --server. `what`: work with all files of a store, as the subject of a sentence."""
    if server_of(args) is not None:
        raise UsageError(f"{what} is done where the store is, with --store DIR. Nothing was done.")


def server_of(args: Namespace) -> ChosenServer | None:
    """Return the server that was chosen for a command."""
    chosen: ChosenServer | None = getattr(args, "chosen_server", None)
    return chosen


def key_in(environment: Mapping[str, str]) -> str | None:
    """Return the key of the server: EVERLOG_KEY, else the text of the file EVERLOG_KEY_FILE. Raises BadInput."""
    key, path = environment.get(KEY_VARIABLE), environment.get(KEY_FILE_VARIABLE)
    if key or not path:
        return key or None
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(KEY_BYTES_MAX).decode("ascii").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The file of {KEY_FILE_VARIABLE} cannot be read: {type(error).__name__}.") from error


def check_no_options_of_server(args: Namespace) -> None:
    """Raise UsageError for options of the process that runs the agents."""
    defaults = getattr(args, "defaults", None)
    local = {"allow_host"} if args.command == "load" else set()  # whose pages this process reads
    given = [name for name in OF_SERVER if name not in local and getattr(args, name, None)]
    for name in ("tools", "mcp", "a2a"):
        values = getattr(args, name, None)
        if values and (defaults is None or values != defaults.listed(name)):
            given.append(name)
    if given:
        option = given[0].replace("_", "-")
        raise UsageError(
            f"--{option} belongs to the process that runs the agents, which is the server: give it to `everlog serve`. "
            "Nothing was sent."
        )
