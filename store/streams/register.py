"""Register the partition of each agent.

    <root>/agents/<h[:2]>/<h>            h = sha256 of the name: name, partition, epoch of the assignment
    <root>/agents/<h[:2]>/<h>.000002     the same after a move: the highest number counts
    <root>/agents/<h[:2]>/<h>.new        a mark: that partition has no record of the agent yet

A file is complete before it has its name, only one process can create that name, and the file never changes. So it is
read without a lock, and a reader that knows it only has to check for the next number. Agents that are registered
together share one file with a name for each of them; it holds a list. So a name costs one link, and a folder costs two
syncs. `register_file` has the format; other names in these folders are ignored.

The mark tells a crash before the first record from the loss of that record. It gets its name before the assignment
does, and the same sync makes both durable. The owner of the partition removes it, without a sync, after the first
commit is durable. A mark of an agent with records is left over from a power failure, and means nothing. An agent
without a mark and without a record has lost its records, and never begins again; a file of everlog 0.1 has no marks.

Used by `FileStore`, `routes` and the services for forks, moves and restores. A name or a partition that is lost is
never made again here: see `_check_partitions` and `StreamEvidence`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from everlog.events import CorruptLog
from everlog.store.base.disk import Disk, publish, publish_all, storage
from everlog.store.base.names import hash_of, is_shared
from everlog.store.partition.partition import token
from everlog.store.streams.register_file import (
    REPAIR,
    Assignment,
    RegisterFile,
    damaged_error,
    decode_assignments,
    encode_assignments,
)

NAMES_TOGETHER_MAX = 64
"""Number of names that share a file; looking up one of them parses all."""
KNOWN_MAX = 20_000
"""Number of assignments cached in memory; above it the cache is cleared."""
MARK = ".new"
"""Ending of the mark of an agent that has no record in its partition yet."""
_ASSIGNMENT = re.compile(r"([0-9a-f]{64})(?:\.(\d{6,}))?").fullmatch
"""Name of an assignment's file: the hash of the agent's name, and from the second assignment on its epoch."""


EpochFiles = dict[int, Assignment | CorruptLog]
"""Files of one stream, by their epochs from 1 on: the assignment, or the error of a file that is damaged or missing."""


class RegisterScan(NamedTuple):
    """Everything that the register says, also if some of its files are damaged."""

    routes: dict[str, list[Assignment]]
    """Assignments of each stream, from the first on, sorted by name; only of streams whose files are all sound."""
    damaged: dict[Path, CorruptLog]
    """Damaged files, and files that are missing between others."""

    def is_damaged(self, name: str) -> bool:
        """Return True if a file of that stream is damaged."""
        digest = hash_of(name)
        return any(path.name.startswith(digest) for path in self.damaged)


class _LastParsed:
    """Parses files of the register one after the other. Agents that were registered together share a file, and are
    adjacent in a folder: that file is parsed once.
    """

    def __init__(self) -> None:
        self._content = b""
        self._file = RegisterFile({}, signed=True)

    def decode(self, content: bytes, path: Path) -> RegisterFile:
        """Return what `decode_assignments` returns. Raises CorruptLog."""
        if content != self._content:
            self._file = decode_assignments(content, path)
            self._content = content
        return self._file


class Register:
    """Assignments of a store. Names are in their NFC form."""

    def __init__(self, disk: Disk, root: Path, check_unknown: Callable[[Iterable[str]], None]) -> None:
        """Store the collaborators. `check_unknown` raises CorruptLog if a partition knows one of the names, and
        BadInput if one is another name of an agent.
        """
        self._disk = disk
        self._folder = root / "agents"
        self._log = root / "log"
        self._check_unknown = check_unknown
        self._known: dict[str, tuple[Assignment, Path]] = {}
        """Last known assignment of each agent, and the path that a newer one would have, by name."""

    def all(self) -> dict[str, Assignment]:
        """Return the assignment of every agent, sorted by agent, in one pass. Raises CorruptLog, StoreError."""
        found: dict[str, Assignment] = {}
        for folder, newest in self._digests():
            parsed = _LastParsed()
            for digest, epoch in newest.items():
                path = folder / _file_name(digest, epoch)
                with storage("read", path):
                    content = self._disk.read(path)
                assignment = _of(parsed.decode(content, path), path, digest, epoch)
                found[assignment.agent_id] = assignment
        return dict(sorted(found.items()))

    def scan(self) -> RegisterScan:
        """Read every file of the register; a damaged one does not keep the others from being read. Raises
        StoreError.
        """
        routes: dict[str, list[Assignment]] = {}
        damaged: dict[Path, CorruptLog] = {}
        for digest, files in self.files().items():
            found = [file for file in files.values() if isinstance(file, Assignment)]
            damaged.update((self.file_of(digest, e), f) for e, f in files.items() if isinstance(f, CorruptLog))
            if len(found) == len(files):
                routes[found[0].agent_id] = found
        return RegisterScan(dict(sorted(routes.items())), damaged)

    def files(self) -> dict[str, EpochFiles]:
        """Return the files of each stream, by the hash of its name. Raises StoreError."""
        every: dict[str, EpochFiles] = {}
        for folder, newest in self._digests():
            parsed = _LastParsed()
            for digest, last in newest.items():
                every[digest] = {}
                for epoch in range(1, last + 1):
                    path = folder / _file_name(digest, epoch)
                    try:
                        every[digest][epoch] = _of(parsed.decode(self._content(path), path), path, digest, epoch)
                    except CorruptLog as error:
                        every[digest][epoch] = error
        return every

    def _digests(self) -> Iterator[tuple[Path, dict[str, int]]]:
        """Yield each folder with the hashes of the names in it, sorted, and the epoch of their newest file."""
        with storage("list the agents in", self._folder):
            folders = sorted(self._disk.names(self._folder)) if self._disk.exists(self._folder) else []
        for folder in folders:
            newest: dict[str, int] = {}
            with storage("list the agents in", self._folder / folder):
                names = self._disk.names(self._folder / folder)
            for match in filter(None, map(_ASSIGNMENT, names)):
                newest[match[1]] = max(int(match[2] or 1), newest.get(match[1], 1))
            yield self._folder / folder, dict(sorted(newest.items()))

    def find(self, name: str) -> Assignment | None:
        """Return the assignment of an agent; None if it was never registered. Raises CorruptLog, StoreError."""
        # Assignment files never change: only a higher epoch can make a cached assignment outdated.
        known, path = self._known.get(name) or (None, self.path_of(name))
        epoch = known.epoch + 1 if known else 1
        following = self.path_of(name, epoch + 1)
        with storage("read", path):
            if known is not None and not self._disk.exists(path):
                return known
            is_moved = self._disk.beside(partial(self._disk.exists, following))
            try:
                content = self._disk.read(path)
            except FileNotFoundError:
                return known
            if is_moved():
                epoch += 1
                while self._disk.exists(following := self.path_of(name, epoch + 1)):
                    epoch += 1
        if epoch > (known.epoch + 1 if known else 1):
            found = self._read(name, epoch)
        else:
            found = _of(decode_assignments(content, path), path, hash_of(name), epoch)
        return self._remember(found)

    def find_many(self, names: Iterable[str]) -> dict[str, Assignment]:
        """Return `find` of many agents, without those that were never registered. In a bucket, where each look is a
        request, the folders are listed, all at once. Raises CorruptLog, StoreError.
        """
        wanted = list(dict.fromkeys(names))
        if not self._disk.ends_files or len(wanted) == 1:
            return {name: found for name in wanted if (found := self.find(name)) is not None}
        from everlog.store.streams.register_batch import newest_assignments  # each start of a command would pay for it

        # Other threads clear the cache meanwhile.
        known = {name: entry[0] for name in wanted if (entry := self._known.get(name)) is not None}
        newest = newest_assignments(self._disk, wanted, known, self.path_of)
        return {name: self._remember(assignment) for name, assignment in newest.items()}

    def _remember(self, found: Assignment) -> Assignment:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[found.agent_id] = found, self.path_of(found.agent_id, found.epoch + 1)
        return found

    def forget(self) -> None:
        """Drop the cached assignments, because files of the register were replaced."""
        self._known.clear()

    def before(self, assignment: Assignment) -> list[Assignment]:
        """Return the earlier assignments of an agent, oldest first. Raises CorruptLog, StoreError."""
        return [self._read(assignment.agent_id, epoch) for epoch in range(1, assignment.epoch)]

    def _read(self, name: str, epoch: int) -> Assignment:
        path = self.path_of(name, epoch)
        return _of(self.read(path), path, hash_of(name), epoch)

    def read(self, path: Path) -> RegisterFile:
        """Return the content of a file of the register. Raises CorruptLog, StoreError."""
        return decode_assignments(self._content(path), path)

    def _content(self, path: Path) -> bytes:
        with storage("read", path):
            try:
                return self._disk.read(path)
            except FileNotFoundError as error:
                raise damaged_error(
                    path, "it is missing, but the register has a later file of the same agent"
                ) from error

    def inside(self, partition: str) -> list[str]:
        """Return the streams that are or were assigned to a partition, sorted. Reads the whole register for a shard."""
        if is_shared(partition):
            routes = self.scan().routes
            return [name for name, route in routes.items() if partition in {place.partition for place in route}]
        path = self._folder.joinpath(partition.removeprefix("agent-")[:2], partition.removeprefix("agent-"))
        with storage("look for", path):
            if not self._disk.exists(path):
                return []
        first = _of(self.read(path), path, path.name, 1)
        last = self.find(first.agent_id) or first
        return [last.agent_id] if partition in {place.partition for place in (*self.before(last), last)} else []

    def may_begin(self, assignment: Assignment) -> bool:
        """Return True if an agent need not have records in its partition. Raises CorruptLog, StoreError."""
        mark = self.mark_of(assignment.agent_id)
        with storage("look for", mark):
            marked = self._disk.exists(mark)
        return marked or not self.read(self.path_of(assignment.agent_id, assignment.epoch)).signed

    def begun(self, names: Iterable[str]) -> None:
        """Remove the marks of agents that have a durable record in their partition. A mark that cannot be removed means
        nothing.
        """
        for name in names:
            path = self.mark_of(name)
            with suppress(OSError):
                if self._disk.exists(path):
                    self._disk.remove(path)

    def mark(self, name: str) -> None:
        """Create the mark of an agent. It is durable after the next sync of its folder. May raise OSError."""
        with suppress(FileExistsError):
            self._disk.create(self.mark_of(name)).close()

    def move(self, assignment: Assignment) -> None:
        """Assign an agent to another partition, durably. Idempotent. Raises CorruptLog, StoreError.

        The epoch of `assignment` must be one higher than that of the current assignment.
        """
        path = self.path_of(assignment.agent_id, assignment.epoch)
        with storage("register an agent in", path.parent):
            if not self._disk.exists(path):
                self._make_partitions([assignment])
                self.mark(assignment.agent_id)
                if publish(self._disk, path, encode_assignments([assignment]), token()):
                    return
            self._disk.sync_dir(path.parent)  # its process may have died before the name was durable
        if self._read(assignment.agent_id, assignment.epoch) != assignment:
            raise CorruptLog(
                f"{path} assigns {assignment.agent_id!r} to another partition than {assignment.partition}, which "
                "the agent's log names. Nothing was changed; restore one of the two from a backup."
            )

    def add(self, assignment: Assignment, *, begun: bool = False) -> bool:
        """Assign an agent to its first partition, durably. Return False if it has a partition already, which may be
        another. `begun`: its records are durable there.

        Raises CorruptLog if a partition knows the name, or if the partition is missing and agents are assigned to it.
        """
        path = self.path_of(assignment.agent_id)
        with storage("register an agent in", path.parent):
            if self._disk.exists(path) or not self._is_new([assignment.agent_id]):
                self._disk.sync_dir(path.parent)  # its process may have died before the name was durable
                return False
            self._make_partitions([assignment])
            self._disk.make_dirs(path.parent)
            if not begun:
                self.mark(assignment.agent_id)
            return publish(self._disk, path, encode_assignments([assignment]), token())

    def _is_new(self, names: Sequence[str]) -> bool:
        """Return False if another process has registered one of the names meanwhile. Raises CorruptLog if a partition
        knows one of them.
        """
        try:
            self._check_unknown(names)
        except CorruptLog:
            if any(self._disk.exists(self.path_of(name)) for name in names):
                return False
            raise
        return True

    def add_many(self, assignments: Iterable[Assignment]) -> set[str]:
        """Assign many agents to their first partitions, durably. Return those that had none.

        After a failure some of them are registered; the same call registers the rest.
        """
        folders: dict[Path, list[Assignment]] = defaultdict(list)
        for assignment in assignments:
            folders[self.path_of(assignment.agent_id).parent].append(assignment)
        added: set[str] = set()
        with storage("register agents in", self._folder):
            left = self._unregistered(folders)
            while not self._is_new([assignment.agent_id for new in left.values() for assignment in new]):
                left = self._unregistered(left)
            self._make_partitions(assignment for new in left.values() for assignment in new)
            for folder, new in sorted(left.items()):
                for start in range(0, len(new), NAMES_TOGETHER_MAX):
                    added |= self._add_together(new[start : start + NAMES_TOGETHER_MAX])
                self._disk.sync_dir(folder)  # always: a process that died may have registered some
        return added

    def _unregistered(self, folders: Mapping[Path, Sequence[Assignment]]) -> dict[Path, list[Assignment]]:
        """Return those of the assignments, by folder, whose agents have none; the folders are created. May raise
        OSError.
        """
        left = {}
        for folder in sorted(folders):
            self._disk.make_dirs(folder)
            there = set(self._disk.names(folder))
            left[folder] = [a for a in folders[folder] if hash_of(a.agent_id) not in there]
        return left

    def _make_partitions(self, assignments: Iterable[Assignment]) -> None:
        """Create the folders of partitions durably, before any agent is registered in them. May raise OSError,
        CorruptLog.
        """
        partitions = sorted({assignment.partition for assignment in assignments})
        for partition in partitions:
            self.check_partition(partition)
        for partition in partitions:
            self._disk.make_dirs(self._log / partition)

    def check_partition(self, partition: str) -> None:
        """Raise CorruptLog if the folder of a partition is missing although agents are or were in it. May raise
        OSError.
        """
        path = self._log / partition
        if self._disk.exists(path):
            return
        names = self.inside(partition)
        if names and not self._disk.exists(path):  # checked again: another process may have created it meanwhile
            raise missing_log_error(path, names)

    def _add_together(self, assignments: Sequence[Assignment]) -> set[str]:
        """Register agents of one folder with one file; return those that were new. The names are not durable yet."""
        paths = {self.path_of(assignment.agent_id): assignment.agent_id for assignment in assignments}
        for name in paths.values():
            self.mark(name)
        free = publish_all(self._disk, list(paths), encode_assignments(assignments), token())
        return {paths[path] for path in free}

    def path_of(self, name: str, epoch: int = 1) -> Path:
        """Return the path of the assignment of an epoch."""
        return self.file_of(hash_of(name), epoch)

    def file_of(self, digest: str, epoch: int = 1) -> Path:
        """Return the same by the hash of the agent's name."""
        return self._folder.joinpath(digest[:2], _file_name(digest, epoch))

    def mark_of(self, name: str) -> Path:
        """Return the path of the mark of an agent."""
        path = self.path_of(name)
        return path.with_name(path.name + MARK)


def _file_name(digest: str, epoch: int) -> str:
    """Return the file name of an assignment; `digest` is the hash of the agent's name."""
    return digest if epoch == 1 else f"{digest}.{epoch:06d}"


def _of(file: RegisterFile, path: Path, digest: str, epoch: int) -> Assignment:
    """Return the assignment of a name, by its hash, in the file of that epoch. Raises CorruptLog."""
    assignment = file.assignments.get(digest)
    if assignment is not None and assignment.epoch == epoch:
        return assignment
    raise damaged_error(path, "it is of another agent, or of another move")


def missing_log_error(path: Path, names: Sequence[str]) -> CorruptLog:
    """Return the error for a partition whose folder is missing; `names` are the streams in it, one or more."""
    whose = repr(names[0]) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")
    return CorruptLog(
        f"{path}, the log of {whose}, is missing. Restore it from a backup. If there is none, `{REPAIR}` gives up the "
        "names that have no record anywhere."
    )
