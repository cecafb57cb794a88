"""Read agents of a server as if their store were here: each agent that is looked at is downloaded whole, as an export.

An agent is its log, so everything that reads a store works on the copies unchanged. The records are checked by their
chain when they come in. An agent that has not changed is not downloaded again, and of one that has grown only the new
records are added. The folder is removed with the object.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import make_store
from everlog.events import Draft, EverlogError, Record, UnknownAgent, UsageError
from everlog.interfaces.client.remote_figures import agent_pages
from everlog.interfaces.client.remote_files import export_request
from everlog.interfaces.client.server_address import WireRequest, is_missing, path_of
from everlog.interfaces.client.server_channel import BlockingChannel
from everlog.interfaces.wire.agents import AgentRow, AgentShape
from everlog.interfaces.wire.memory import RecordPage
from everlog.projections import DERIVER
from everlog.store import ExportedStream, ExportHeader, FileLog, FileStore, Log, LogReader, States, name_of
from everlog.store.backup.export_file import ExportReader
from everlog.store.streams.register import Register, RegisterScan

FIRST = "{}@gen1"
"""Name by which a server finds the first agent of a name that a later one has too."""


class MirrorStore(FileStore):
    """Copies of the agents of a server, for reading."""

    def __init__(self, channel: BlockingChannel, ports: Ports) -> None:
        """Make an empty folder for the copies. Agents are downloaded when they are read."""
        self.channel = channel
        self._ports = ports
        self._temporary = tempfile.TemporaryDirectory(prefix="everlog-mirror-", ignore_cleanup_errors=True)
        self._lock = RLock()
        self._folders = 0
        self._begin()

    def _begin(self) -> None:
        """Begin with an empty folder."""
        root = Path(self._temporary.name) / f"store{self._folders}"
        self._folders += 1
        now = self._ports.clock.now
        make_store(root, self._ports.clock, self._ports.ids, 0)
        super().__init__(root, now)
        self._copies: dict[str, ExportedStream] = {}
        """Streams whose copies are whole, by name."""
        self._fetching = False
        self._take_in, self.restore = self.restore, self._refuse
        self.begin_move = self._refuse
        self._names = _MirrorAliases(self.channel, self._refuse)
        self.aliases = self._names  # type: ignore[assignment]
        self._read, self._states, self._groups = self.reader, self.states, self.reader_groups
        self._placed, self._all_partitions, self._all_assigned = self.partition_of, self.partitions, self.assigned
        self.reader, self.partition_of = self._reader, self._partition_of
        self.states, self.reader_groups = self._all_states, self._all_groups
        self.partitions, self.assigned = self._partitions, self._assigned
        self.agents = self._agents
        self.register_files = _FetchedRegister(self.register_files, self.fetch_all)  # type: ignore[assignment]

    def close(self) -> None:
        """Remove the copies."""
        self._temporary.cleanup()

    def open(self, agent_id: str, command: str, *, take_over: bool = False, expected: str | None = None) -> FileLog:
        """Open the log of a copy while it is taken in. Raises UsageError at any other time."""
        if not self._fetching:
            self._refuse()
        return super().open(agent_id, command, take_over=take_over, expected=expected)

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> FileLog:
        """Open a partition of a copy while it is taken in. Raises UsageError at any other time."""
        if not self._fetching:
            self._refuse()
        return super().open_partition(partition, command, label=label, take_over=take_over)

    def register(self, agent_id: str, *, shared: bool = False) -> bool:
        """Raise UsageError: the server registers agents."""
        self._refuse()

    def register_many(self, names: Iterable[str], *, shared: bool = False) -> list[str]:
        """Raise UsageError: the server registers agents."""
        self._refuse()

    def fork(
        self, parent: str, at: int, name: str, *, event_id: str, closing: Sequence[Draft] = (), by: str = ""
    ) -> Sequence[Record]:
        """Raise UsageError: the server makes forks."""
        self._refuse()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError(
            f"This cannot be done through the server {self.channel.address.url}: it changes files of the store. Do it "
            "where the store is, with --store DIR. Nothing was changed."
        )

    def rows(self) -> Iterator[AgentRow]:
        """Yield the agents of the server, deleted ones too, by name."""
        for page in agent_pages(self.channel, deleted=True):
            yield from page.agents

    def forks_of(self, agent_id: str) -> dict[str, int]:
        """Return the forks of an agent, and theirs, as the server lists them; see `Store.forks_of`."""
        rows = list(self.rows())
        found: dict[str, int] = {}
        reached = [(agent_id, 2**53)]
        for parent, shared in reached:  # which grows
            for row in rows:
                if row.parent == parent:
                    found[row.agent] = min(shared, row.parent_seq or 0)
                    reached.append((row.agent, found[row.agent]))
        return dict(sorted(found.items()))

    def stream_of(self, name: str) -> str:
        """Return the stream of the agent that the server calls `name`; the name itself if there is none.

        Requests about the stream are sent with NAME@gen1 from now on, if that was given: its stream is NAME, and to the
        server NAME means a later agent.
        """
        given = name_of(name)
        try:
            stream = self.position(name).agent
        except UnknownAgent:
            return given
        if given == FIRST.format(stream):
            self.channel.address.name_exactly(stream, given)
        return stream

    def fetch_all(self) -> None:
        """Download what changed of every agent, for questions about all of them."""
        for row in self.rows():
            self.fetch(row.agent, row.head)
            self._names.names[row.agent] = row.name

    def fetch(self, stream: str, head: int | None = None) -> None:
        """Download an agent, unless its copy is whole. `head`: its last seq, if that is known.

        Raises UnknownAgent, and CorruptLog for records that do not fit their chain.
        """
        with self._lock:
            at = self._found(stream).as_of if head is None else head
            copy = self._copies.get(stream)
            if copy is not None and copy.to_seq >= at:
                return
            self._folders += 1  # ancestors are fetched in between, each into a file of its own
            path = Path(self._temporary.name) / f"export{self._folders}"
            contents = self._download(stream, path)
            if contents.own.agent_id != stream:
                contents = self._download(FIRST.format(stream), path)
            if any(self._is_stale(each) for each in contents.streams):
                self._begin()  # records were erased on the server: nothing may be left of them here
            self._fetching = True
            try:
                # First whole: an ancestor that came with its fork alone would count as deleted.
                for before in contents.streams:
                    if before.agent_id not in self._copies and before.agent_id != contents.agent_id:
                        self._fetch_ancestor(before.agent_id)
                        self._fetching = True
                self._take_in(path, DERIVER)
            finally:
                self._fetching = False
                path.unlink(missing_ok=True)
            self._copies[contents.agent_id] = contents.own

    def _found(self, stream: str) -> RecordPage:
        """Return the head of a stream, whose name a later agent may have."""
        page = self.position(stream)
        return page if page.agent == stream else self.position(FIRST.format(stream))

    def _download(self, name: str, path: Path) -> ExportHeader:
        with path.open("wb") as file:
            for part in self.channel.parts_of(export_request(name)):
                file.write(part)
        with closing(ExportReader(path)) as export:
            return export.contents

    def _is_stale(self, now: ExportedStream) -> bool:
        copy = self._copies.get(now.agent_id)
        return copy is not None and now.erased != copy.erased

    def _fetch_ancestor(self, stream: str) -> None:
        try:
            self.fetch(stream)
        except UnknownAgent:  # the server does not show it, and the export of the fork has the records that are needed
            return

    def position(self, name: str) -> RecordPage:
        """Return the stream of an agent of the server and its head. Raises UnknownAgent."""
        query = [("after", str(2**53)), ("limit", "1")]
        try:
            return self.channel.call(WireRequest("GET", f"/agents{path_of(name)}/records", query=query), RecordPage)
        except EverlogError as error:
            if is_missing(error):
                raise UnknownAgent(f"There is no agent {name!r} on the server {self.channel.address.url}.") from error
            raise

    def _reader(self, agent_id: str, own: Log | None = None) -> LogReader:
        self.fetch(agent_id)
        return self._read(agent_id, own)

    def _partition_of(self, agent_id: str) -> str:
        if not self._fetching:  # else a restore opens the log of the copy
            self.fetch(agent_id)
        return self._placed(agent_id)

    def _agents(self) -> list[str]:
        found: list[str] = []
        for page in agent_pages(self.channel, deleted=True):
            found += [*(row.agent for row in page.agents), *page.unlisted]
        return sorted(found)

    def _all_states(self, maker: str) -> Iterator[States]:
        self.fetch_all()
        return self._states(maker)

    def _all_groups(self) -> list[list[str]]:
        self.fetch_all()
        return self._groups()

    def _partitions(self, **how: Any) -> list[str]:
        self.fetch_all()
        return self._all_partitions(**how)

    def _assigned(self) -> dict[str, str]:
        self.fetch_all()
        return self._all_assigned()


class _MirrorAliases:
    """Names of the copies, as the server has told them; the server gives names."""

    def __init__(self, channel: BlockingChannel, refuse: Callable[..., NoReturn]) -> None:
        self._channel = channel
        self.names: dict[str, str] = {}
        """Newest name of each agent, by stream."""
        self.give = refuse

    def shown(self) -> dict[str, str]:
        """Return the names that were given, by stream."""
        return {stream: name for stream, name in self.names.items() if name != stream}

    def of(self, agent_id: str) -> list[str]:
        """Return the other names of an agent, oldest first, as the server says them now. Raises UnknownAgent."""
        return list(self._channel.call(WireRequest("GET", f"/agents{path_of(agent_id)}"), AgentShape).names)

    def faults(self) -> Iterator[str]:
        """Yield nothing: the files of names are on the server."""
        yield from ()

    def remove_of(self, _: str) -> list[str]:
        """Return nothing: the server forgets the names of deleted agents."""
        return []


class _FetchedRegister:
    """Register of the copies, which downloads all agents before it lists them."""

    def __init__(self, register: Register, fetch_all: Callable[[], None]) -> None:
        self._register, self._fetch_all = register, fetch_all

    def scan(self) -> RegisterScan:
        """Return what the register holds."""
        self._fetch_all()
        return self._register.scan()
