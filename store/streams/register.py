"""The register: which partition each agent is in.

    <root>/agents/<h[:2]>/<h>            h = sha256 of the name: name, partition, epoch of the assignment
    <root>/agents/<h[:2]>/<h>.000002     the same after a move: the highest number counts

A file is whole before it has its name, which only one process can give it, and it never changes; so anybody reads it
without a lock, and who has read it once only looks whether there is a next one. Agents that are registered together
share a file, which then is a list and has a name for each of them: what a name costs is a link, and what a folder costs
is two syncs.
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
"""Names that share a file: who looks for one of them reads them all."""
KNOWN_MAX = 20_000
"""Assignments that are kept in memory; when there are more, all are looked for anew."""
_ASSIGNMENT = re.compile(r"([0-9a-f]{64})(?:\.(\d{6,}))?").fullmatch
"""What the file of an assignment is called: the hash of the name, and the epoch from the second on."""


class Assignment(msgspec.Struct, frozen=True):
    """Which partition an agent is in."""

    agent_id: str
    partition: str
    epoch: int = 1
    """Generation of the assignment: a move publishes the next one."""
    parent: str = ""
    """Of a fork: whose records come before its own; empty for everybody else."""
    parent_seq: int = 0
    """Of a fork: the cut, the last of the parent's records that are the fork's too."""


class Register:
    """The assignments of a store. Names are in their NFC form."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self._folder = root / "agents"
        self._log = root / "log"
        self._known: dict[str, Assignment] = {}
        """By name, where agents were when they were last looked for."""

    def all(self) -> dict[str, Assignment]:
        """Where every agent is, sorted by agent; one pass. Raises CorruptLog, StoreError."""
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
            if content != last:  # agents that share a file come one after the other: it is understood once
                last, together = content, _parse_assignments(content, path)
            assignment = _of(together, path, digest)
            found[assignment.agent_id] = assignment
        return found

    def find(self, name: str) -> Assignment | None:
        """Where an agent is; None if it was never registered. Raises CorruptLog, StoreError."""
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
        """Where an agent was before it was put where it is, oldest first. Raises CorruptLog, StoreError."""
        name = assignment.agent_id
        with storage("read", self._path_of(name)):
            return [self._read(name, epoch) for epoch in range(1, assignment.epoch)]

    def _read(self, name: str, epoch: int) -> Assignment:
        path = self._path_of(name, epoch)
        return _of(_parse_assignments(self._disk.read(path), path), path, hash_of(name))

    def move(self, assignment: Assignment) -> None:
        """Put an agent into another partition, durably; again is harmless. Raises CorruptLog, StoreError.

        Its epoch is the one after that of the partition in which the agent was.
        """
        path = self._path_of(assignment.agent_id, assignment.epoch)
        with storage("register an agent in", path.parent):
            self._make_partitions([assignment])
            file = publish(self._disk, path, msgspec.json.encode(assignment), token())
            if file is not None:
                file.close()
            elif self._read(assignment.agent_id, assignment.epoch) != assignment:
                raise CorruptLog(
                    f"{path} says that {assignment.agent_id!r} went elsewhere than to {assignment.partition}, where "
                    "its log says that it went. Nothing was changed; restore one of them from a backup."
                )

    def add(self, assignment: Assignment) -> bool:
        """Put an agent into its partition, durably; False if it has one already, which may be another."""
        path = self._path_of(assignment.agent_id)
        with storage("register an agent in", path.parent):
            if self._disk.exists(path):
                self._disk.sync_dir(path.parent)  # whoever registered it may have died before it was durable
                return False
            self._disk.make_dirs(path.parent)
            self._make_partitions([assignment])
            file = publish(self._disk, path, msgspec.json.encode(assignment), token())
            if file is None:
                return False
            file.close()
            return True

    def add_many(self, assignments: Iterable[Assignment]) -> set[str]:
        """Put many agents into their partitions, durably; gives those that had none.

        After a failure some are registered and some are not; the same call goes on from there.
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
                self._disk.sync_dir(folder)  # also for those that another process, now dead, may have registered
        return added

    def _make_partitions(self, assignments: Iterable[Assignment]) -> None:
        """The folder of a partition is there, durably, before anybody is registered in it. May raise OSError."""
        for partition in sorted({assignment.partition for assignment in assignments}):
            self._disk.make_dirs(self._log / partition)

    def _add_together(self, assignments: Sequence[Assignment]) -> set[str]:
        """Agents of one folder in one file, all of it but its names durable; gives those that had none."""
        paths = {self._path_of(assignment.agent_id): assignment.agent_id for assignment in assignments}
        content = assignments[0] if len(assignments) == 1 else assignments
        free = publish_all(self._disk, list(paths), msgspec.json.encode(content), token())
        return {paths[path] for path in free}

    def _path_of(self, name: str, epoch: int = 1) -> Path:
        """Where the assignment of an epoch is."""
        digest = hash_of(name)
        return self._folder.joinpath(digest[:2], _file_name(digest, epoch))


def _file_name(digest: str, epoch: int) -> str:
    """What the file of an assignment is called; `digest` is the hash of the name."""
    return digest if epoch == 1 else f"{digest}.{epoch:06d}"


def _parse_assignments(content: bytes, path: Path) -> dict[str, Assignment]:
    """The assignments in a file, by the hash of the name. Raises CorruptLog."""
    found = parse_json(content, Assignment | list[Assignment], path)  # type: ignore[arg-type]
    together = found if isinstance(found, list) else [found]
    return {hash_of(assignment.agent_id): assignment for assignment in together}


def _of(together: Mapping[str, Assignment], path: Path, digest: str) -> Assignment:
    if digest not in together:
        raise CorruptLog(f"{path} is damaged: it is of another agent. Nothing was changed; restore it from a backup.")
    return together[digest]
