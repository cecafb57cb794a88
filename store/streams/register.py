"""Register the partition of each agent.

    <root>/agents/<h[:2]>/<h>            h = sha256 of the name: name, partition, epoch of the assignment
    <root>/agents/<h[:2]>/<h>.000002     the same after a move: the highest number counts

A file is complete before it has its name, only one process can create that name, and the file never changes. So it is
read without a lock, and a reader that knows it only has to check for the next number. Agents that are registered
together share one file with a name for each of them; it holds a list. So a name costs one link, and a folder costs two
syncs.

Used by `FileStore`, `routes` and the services for forks, moves and restores.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from everlog.events import CorruptLog
from everlog.store.base.disk import Disk, parse_json, publish, publish_all, storage
from everlog.store.base.names import hash_of
from everlog.store.partition.partition import token

NAMES_TOGETHER_MAX = 64
"""Number of names that share a file; looking up one of them parses all."""
KNOWN_MAX = 20_000
"""Number of assignments cached in memory; above it the cache is cleared."""
_ASSIGNMENT = re.compile(r"([0-9a-f]{64})(?:\.(\d{6,}))?").fullmatch
"""Name of an assignment's file: the hash of the agent's name, and from the second assignment on its epoch."""


class Assignment(msgspec.Struct, frozen=True):
    """Partition of an agent."""

    agent_id: str
    partition: str
    epoch: int = 1
    """Number of the assignment: a move publishes the next one."""
    parent: str = ""
    """Parent of a fork, whose records come before its own; empty for an agent that is not a fork."""
    parent_seq: int = 0
    """Fork point of a fork: the last of the parent's records that belong to the fork too."""


class Register:
    """Assignments of a store. Names are in their NFC form."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self._folder = root / "agents"
        self._log = root / "log"
        self._known: dict[str, Assignment] = {}
        """Last known assignment of each agent, by name."""

    def all(self) -> dict[str, Assignment]:
        """Return the assignment of every agent, sorted by agent, in one pass. Raises CorruptLog, StoreError."""
        found: dict[str, Assignment] = {}
        with storage("list the agents in", self._folder):
            if self._disk.exists(self._folder):
                for name in self._disk.names(self._folder):
                    found.update(self._in(self._folder / name))
        return dict(sorted(found.items()))

    def _in(self, folder: Path) -> Mapping[str, Assignment]:
        newest: dict[str, int] = {}
        for name in self._disk.names(folder):
            match = _ASSIGNMENT(name)
            if match:
                newest[match[1]] = max(int(match[2] or 1), newest.get(match[1], 1))
        found: dict[str, Assignment] = {}
        last, together = b"", {}
        for digest, epoch in sorted(newest.items()):
            path = folder / _file_name(digest, epoch)
            content = self._disk.read(path)
            if content != last:  # agents that share a file are adjacent: it is parsed once
                last, together = content, _parse_assignments(content, path)
            assignment = _of(together, path, digest)
            found[assignment.agent_id] = assignment
        return found

    def find(self, name: str) -> Assignment | None:
        """Return the assignment of an agent; None if it was never registered. Raises CorruptLog, StoreError."""
        # Assignment files never change: only a higher epoch can make a cached assignment outdated.
        known = self._known.get(name)
        epoch = known.epoch + 1 if known else 1
        path = self._path_of(name, epoch)
        with storage("read", path):
            if not self._disk.exists(path):
                return known
            while self._disk.exists(self._path_of(name, epoch + 1)):
                epoch += 1
            known = self._read(name, epoch)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[name] = known
        return known

    def before(self, assignment: Assignment) -> list[Assignment]:
        """Return the earlier assignments of an agent, oldest first. Raises CorruptLog, StoreError."""
        name = assignment.agent_id
        with storage("read", self._path_of(name)):
            return [self._read(name, epoch) for epoch in range(1, assignment.epoch)]

    def _read(self, name: str, epoch: int) -> Assignment:
        path = self._path_of(name, epoch)
        return _of(_parse_assignments(self._disk.read(path), path), path, hash_of(name))

    def move(self, assignment: Assignment) -> None:
        """Assign an agent to another partition, durably. Idempotent. Raises CorruptLog, StoreError.

        The epoch of `assignment` must be one higher than that of the current assignment.
        """
        path = self._path_of(assignment.agent_id, assignment.epoch)
        with storage("register an agent in", path.parent):
            self._make_partitions([assignment])
            file = publish(self._disk, path, msgspec.json.encode(assignment), token())
            if file is not None:
                file.close()
            elif self._read(assignment.agent_id, assignment.epoch) != assignment:
                raise CorruptLog(
                    f"{path} assigns {assignment.agent_id!r} to another partition than {assignment.partition}, which "
                    "the agent's log names. Nothing was changed; restore one of the two from a backup."
                )

    def add(self, assignment: Assignment) -> bool:
        """Assign an agent to its first partition, durably. Return False if it has a partition already, which may be
        another.
        """
        path = self._path_of(assignment.agent_id)
        with storage("register an agent in", path.parent):
            if self._disk.exists(path):
                self._disk.sync_dir(path.parent)  # its process may have died before the name was durable
                return False
            self._disk.make_dirs(path.parent)
            self._make_partitions([assignment])
            file = publish(self._disk, path, msgspec.json.encode(assignment), token())
            if file is None:
                return False
            file.close()
            return True

    def add_many(self, assignments: Iterable[Assignment]) -> set[str]:
        """Assign many agents to their first partitions, durably. Return those that had none.

        After a failure some of them are registered; the same call registers the rest.
        """
        folders: dict[Path, list[Assignment]] = defaultdict(list)
        for assignment in assignments:
            folders[self._path_of(assignment.agent_id).parent].append(assignment)
        added: set[str] = set()
        with storage("register agents in", self._folder):
            for folder in sorted(folders):
                self._disk.make_dirs(folder)
                there = set(self._disk.names(folder))
                folders[folder] = [a for a in folders[folder] if hash_of(a.agent_id) not in there]
            self._make_partitions(assignment for new in folders.values() for assignment in new)
            for folder, new in sorted(folders.items()):
                for start in range(0, len(new), NAMES_TOGETHER_MAX):
                    added |= self._add_together(new[start : start + NAMES_TOGETHER_MAX])
                self._disk.sync_dir(folder)  # always: a process that died may have registered some
        return added

    def _make_partitions(self, assignments: Iterable[Assignment]) -> None:
        """Create the folders of partitions durably, before any agent is registered in them. May raise OSError."""
        for partition in sorted({assignment.partition for assignment in assignments}):
            self._disk.make_dirs(self._log / partition)

    def _add_together(self, assignments: Sequence[Assignment]) -> set[str]:
        """Register agents of one folder with one file; return those that were new. The names are not durable yet."""
        paths = {self._path_of(assignment.agent_id): assignment.agent_id for assignment in assignments}
        content = assignments[0] if len(assignments) == 1 else assignments
        free = publish_all(self._disk, list(paths), msgspec.json.encode(content), token())
        return {paths[path] for path in free}

    def _path_of(self, name: str, epoch: int = 1) -> Path:
        """Return the path of the assignment of an epoch."""
        digest = hash_of(name)
        return self._folder.joinpath(digest[:2], _file_name(digest, epoch))


def _file_name(digest: str, epoch: int) -> str:
    """Return the file name of an assignment; `digest` is the hash of the agent's name."""
    return digest if epoch == 1 else f"{digest}.{epoch:06d}"


def _parse_assignments(content: bytes, path: Path) -> dict[str, Assignment]:
    """Return the assignments in a file, by the hash of the name. Raises CorruptLog."""
    found = parse_json(content, Assignment | list[Assignment], path)  # type: ignore[arg-type]
    together = found if isinstance(found, list) else [found]
    return {hash_of(assignment.agent_id): assignment for assignment in together}


def _of(together: Mapping[str, Assignment], path: Path, digest: str) -> Assignment:
    if digest not in together:
        raise CorruptLog(f"{path} is damaged: it is of another agent. Nothing was changed; restore it from a backup.")
    return together[digest]
