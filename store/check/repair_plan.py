"""Plan the repair of the register: compare its files with what the records of all partitions say. Writes nothing.

Used by `repair_register`. The records are right and the register follows them, except where they contradict each other:
such a stream is named and left as it is. A file that agrees with the records stays, also one of everlog 0.1.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from everlog.events import AgentForked, BadInput, CorruptLog, StoreError
from everlog.store.base.contract import LogReader
from everlog.store.base.disk import storage
from everlog.store.base.names import hash_of, is_shared, partition_of
from everlog.store.check.stream_facts import (
    StoreFacts,
    StreamPieces,
    agrees,
    broken,
    fork_of,
    leaving_in,
    route_of,
)
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.partition.partition import EPOCH, MANIFEST
from everlog.store.stores.file_store import FileStore
from everlog.store.streams.memory_register import MemoryRegister
from everlog.store.streams.register import EpochFiles
from everlog.store.streams.register_file import Assignment
from everlog.store.streams.routes import Routes
from everlog.store.streams.stream_evidence import GIVEN_UP

DAMAGED = ".damaged"
WRONG = ".wrong"
LOST = ".lost"


class RegisterChange(msgspec.Struct):
    """A change of the register, of one stream."""

    stream: str
    """Name of the stream; empty if no file that is left has the name."""
    kind: str
    """`registered`: the files are made from the log; `given_up`: the name is free again; `continued`: the stream
    continues after the last record that is left.
    """
    text: str
    """Sentence for people."""
    aside: list[tuple[Path, str]] = []
    """Files that are kept under another name, each with the ending of that name."""
    publish: list[Assignment] = []
    """Assignments whose files are made."""
    mark: bool = False
    """True if the stream has no record in the partition that it is in now."""
    folders: list[Path] = []
    """Folders of partitions that are made: they are missing, and no record was ever in them."""
    free: Path | None = None
    """Folder of a dedicated partition without a record, whose name becomes free."""


class RepairPlan(msgspec.Struct):
    """Changes that a repair makes, and what it cannot repair."""

    changes: list[RegisterChange] = []
    unrepairable: list[str] = []
    """Streams that contradict themselves, and partitions that cannot be read; they are left as they are."""


def plan_repair(store: FileStore, facts: StoreFacts) -> RepairPlan:
    """Return the changes that make the register agree with the records. Raises StoreError."""
    return _Planner(store, facts).plan()


class _Planner:
    def __init__(self, store: FileStore, facts: StoreFacts) -> None:
        self._store = store
        self._facts = facts
        self._files = store.register_files.files()
        self._plan = RepairPlan()
        self._planned = MemoryRegister()
        self._readers = Routes(self._planned, self._place)

    def _place(self, name: str, partition: str) -> LogReader:
        del name
        return PartitionReader(self._store.partition(partition))

    def plan(self) -> RepairPlan:
        for name, why in self._facts.unread.items():
            self._plan.unrepairable.append(f"log/{name} cannot be read, so its names stay as they are: {why}")
        forks = []
        for name, pieces in self._facts.streams.items():
            why = broken(name, pieces) or _wrong_place(name, pieces)
            if why:
                self._plan.unrepairable.append(
                    f"{why}. Nothing was changed for {name!r}; restore the log that is right from a backup."
                )
            elif fork_of(pieces) is not None:
                forks.append(name)
            else:
                self._settle(name, "", 0)
        self._find_parents(forks)
        for name, route in self._planned.places.items():
            self._compare(name, route)
        self._plan_names_without_records()
        self._plan.changes.sort(key=lambda change: change.stream)
        return self._plan

    def _settle(self, name: str, parent: str, cut: int) -> None:
        """Plan the route of a stream, whose parent and fork point are known: the register's if it agrees."""
        pieces = self._facts.streams[name]
        found = _sound(self._files.get(hash_of(name), {}))
        same = found is not None and all((one.parent, one.parent_seq) == (parent, cut) for one in found)
        agreed = found if found is not None and same and agrees(found, pieces) else None
        self._planned.places[name] = agreed or route_of(name, pieces, parent, cut)

    def _find_parents(self, forks: Iterable[str]) -> None:
        """Plan the routes of forks: a fork's parent is a stream with the chain value that the fork's first record has.

        The register may name an ancestor further back than the record does, so its parent is tried first.
        """
        left = dict.fromkeys(forks)
        while left:
            found = [(name, parent) for name in left if (parent := self._named_parent(name))]
            if not found:  # one at a time: a fork that is found may be the parent of others
                found = [(name, parent) for name in left if (parent := self._any_parent(name))][:1]
            if not found:
                break
            for name, parent in found:
                del left[name]
                self._settle(name, parent, self._fork(name).parent_seq)
        for name in left:
            fork = self._fork(name)
            self._plan.unrepairable.append(
                f"{name!r} was forked from {fork.parent!r} at seq {fork.parent_seq}, and no sound log of this store "
                f"has the records up to there. Nothing was changed for {name!r}; restore the parent from a backup."
            )

    def _fork(self, name: str) -> AgentForked:
        fork = fork_of(self._facts.streams[name])
        assert fork is not None, "only forks are asked for"
        return fork

    def _named_parent(self, name: str) -> str:
        fork = self._fork(name)
        found = _sound(self._files.get(hash_of(name), {})) or []
        named = [*(one.parent for one in found[:1]), fork.parent]
        return next((parent for parent in named if self._is_parent(parent, fork)), "")

    def _is_parent(self, parent: str, fork: AgentForked) -> bool:
        """Return True if a stream has the records that a fork continues."""
        if parent not in self._planned.places:
            return False
        try:
            return self._readers.reader(parent).chain(parent, fork.parent_seq).hex() == fork.chain
        except (BadInput, StoreError):  # the stream is shorter, or cannot be read
            return False

    def _any_parent(self, name: str) -> str:
        """Return a stream that has the fork's past, if there is one: rather one that owns the record at the fork
        point.
        """
        fork = self._fork(name)
        routes = self._planned.places
        among = sorted(routes, key=lambda other: (routes[other][0].parent_seq >= fork.parent_seq, other))
        return next((parent for parent in among if self._is_parent(parent, fork)), "")

    def _compare(self, name: str, route: list[Assignment]) -> None:
        """Plan the changes that give a stream this route, of which it has some files or all."""
        found, pieces = self._files.get(hash_of(name), {}), self._facts.streams[name]
        register = self._store.register_files
        wanted = {assignment.epoch: assignment for assignment in route}
        wrong = {epoch: file for epoch, file in found.items() if wanted.get(epoch) != file}
        change = RegisterChange(
            name,
            "registered",
            f"{name!r} is registered in {_said(route[-1].partition)}"
            + (f", as a fork of {route[0].parent!r} at seq {route[0].parent_seq}" if route[0].parent else "")
            + ", as its log says.",
            aside=[
                (register.path_of(name, epoch), DAMAGED if isinstance(file, CorruptLog) else WRONG)
                for epoch, file in wrong.items()
            ],
            publish=[one for epoch, one in wanted.items() if found.get(epoch) != one],
            folders=self._missing(one.partition for one in route),
        )
        leaving = leaving_in(pieces)
        if leaving is not None and route[-1].partition == leaving.partition:
            change.mark = bool(change.publish) or not register.may_begin(route[-1])
            if change.mark and not change.publish:
                last = max(piece.last for piece in pieces.values())
                change.kind = "continued"
                change.text = (
                    f"{name!r} continues after seq {last}, its departure to {leaving.partition}: the records that it "
                    "had there are lost."
                )
        if change.aside or change.publish or change.mark or change.folders:
            self._plan.changes.append(change)

    def _missing(self, partitions: Iterable[str]) -> list[Path]:
        folders = [self._store.partition(name).path for name in dict.fromkeys(partitions)]
        return [path for path in folders if not self._exists(path)]

    def _exists(self, path: Path) -> bool:
        with storage("look for", path):
            return self._store.disk.exists(path)

    def _plan_names_without_records(self) -> None:
        """Plan the changes of names that no partition has a record of."""
        known = {hash_of(name) for name in self._facts.streams}
        for digest, found in self._files.items():
            if digest not in known:
                self._plan_without_records(digest, found)
        for partition in sorted(self._facts.read):
            digest = partition.removeprefix("agent-")
            free = self._used_folder(partition)
            if free is not None and digest not in known and digest not in self._files:
                text = f"log/{partition} has no record, and no file of the register names it: its name is free again."
                self._plan.changes.append(RegisterChange("", "given_up", text, free=free))

    def _plan_without_records(self, digest: str, found: EpochFiles) -> None:
        register, route = self._store.register_files, _sound(found)
        sound = [file for file in found.values() if isinstance(file, Assignment)]
        name = sound[0].agent_id if sound else ""
        unread = self._facts.unread.keys()
        if unread & {one.partition for one in sound} or (unread and route is None):
            return
        missing = self._missing(one.partition for one in sound)
        if route is not None and register.may_begin(route[-1]):
            marked = self._exists(register.mark_of(name))
            if not missing:
                return
            if marked:
                text = f"{name!r} has no record yet, and gets the folder of its log again."
                self._plan.changes.append(RegisterChange(name, "continued", text, folders=missing))
                return
        who = repr(name) if name else f"the agent of agents/{digest[:2]}/{digest}"
        change = RegisterChange(name, "given_up", f"{who} has no record in any log. The name is given up.")
        change.aside = [
            (register.file_of(digest, epoch), DAMAGED if isinstance(file, CorruptLog) else LOST)
            for epoch, file in sorted(found.items(), reverse=True)
        ]
        change.free = self._used_folder(f"agent-{digest}")
        self._plan.changes.append(change)

    def _used_folder(self, partition: str) -> Path | None:
        """Return the folder of a dedicated partition that was opened and has no record; None if it is none."""
        where = self._store.partition(partition)
        if is_shared(partition) or not self._exists(where.path):
            return None
        with storage("list", where.path):
            names = where.disk.names(where.path)
        used = any(file.startswith((EPOCH, MANIFEST)) for file in names) and GIVEN_UP not in names
        held = any(partition in pieces for pieces in self._facts.streams.values())
        return where.path if used and not held else None


def _said(partition: str) -> str:
    """Return the name of a partition for people."""
    return partition if is_shared(partition) else "its own log"


def _sound(found: EpochFiles) -> list[Assignment] | None:
    """Return the assignments of a stream if none of its files is damaged or missing."""
    route = [file for _, file in sorted(found.items()) if isinstance(file, Assignment)]
    return route if route and len(route) == len(found) else None


def _wrong_place(name: str, pieces: StreamPieces) -> str:
    others = [place for place in pieces if place != partition_of(name) and not is_shared(place)]
    return f"log/{others[0]} is the log of another agent, but has records of {name!r}" if others else ""
