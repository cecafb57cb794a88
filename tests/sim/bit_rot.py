"""Bit rot: after a bit has changed, a reader gets the same data or an error, never other data without an error.

One case looks like a torn write: damage to the last frame of the open file. That frame may be missing, if the reader
reports damage.
"""

from copy import deepcopy
from pathlib import Path

from everlog.events import EverlogError, Record, StoreError
from everlog.store import FileLog, FileStore, Partition, check, records_of
from everlog.store.partition.manifest import load
from tests.sim.checkers import Violation
from tests.sim.sim_processes import FOLDER_OF, ROOT, Life
from tests.sim.sim_store_world import World
from tests.sim.simulation import Failed, run

FLIPS = 8
GROUP_MAX = 4
"""Maximum number of commits in a frame."""


def rot(seed: int) -> World:
    """Flip bits of the final disk of the world of `seed`, one at a time. Raises Failed.

    The run has no troubles, so that the disk holds much data. All processes are on one machine: a tail that another
    machine left is dropped without a message, because its owner may still be writing it.
    """
    world = World(seed, lambda habits: habits.calm()._replace(hosts=1, locks=True))
    try:
        with world.begun():
            run(world)
            world.trace.clear()
            expected = _Reading(world).everything()
            whole = world.platter
            where = _where(world)
            live = _live(world, where)
            for _ in range(FLIPS):
                world.platter = deepcopy(whole)
                path, byte = _flip(world)
                reading = _Reading(world)
                if check(where._replace(disk=reading.process.disk)).ok and byte < live.get(path, 0):
                    raise Violation(f"byte {byte} of {path.name} has changed and check finds nothing")
                reading.compare(expected)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Failed(world, f"rot {seed}", error) from error
    return world


def _where(world: World) -> Partition:
    """Return the partition, for reading only."""
    judge = Life(world, world.born("judge"))
    name = judge.folder().name
    return FileStore(ROOT, judge.process.now, disk=judge.process.disk).partition(name)


def _live(world: World, where: Partition) -> dict[Path, int]:
    """Return the number of counted bytes of each file that the manifest names."""
    sizes = {where.path / entry.name: entry.bytes for entry in load(where).files}
    return {path: size or len(world.platter.inode(path).cache) for path, size in sizes.items()}


def _flip(world: World) -> tuple[Path, int]:
    """Change a bit of a file. Return the file and the position of the changed byte."""
    chance = world.chance
    paths = [path for folder in sorted(world.platter.folders) for path in world.platter.paths(folder)]
    path = chance.choice([path for path in paths if world.platter.inode(path).cache])
    content = world.platter.inode(path).cache
    bit = chance.randrange(len(content) * 8)
    content[bit // 8] ^= 1 << bit % 8
    world.note("the world", "rots", f"{path.name} bit {bit} of {len(content) * 8}")
    return path, bit // 8


class _Reading(Life):
    """The next owner, which compares its reads with the expected records."""

    def __init__(self, world: World) -> None:
        super().__init__(world, world.born("judge"))

    def everything(self) -> list[Record]:
        """Return all records, in commit order."""
        return list(records_of(FileStore(ROOT, self.process.now, disk=self.process.disk).reader(FOLDER_OF).table()))

    def compare(self, expected: list[Record]) -> None:
        """Compare a reader's records, then open the log and compare the owner's records."""
        before = self.bytes()
        try:
            reader = FileStore(ROOT, self.process.now, disk=self.process.disk).reader(FOLDER_OF)
            self.same(list(records_of(reader.table())), expected, missing=reader.damage is not None)
        except EverlogError as error:
            self.world.note(self.process.name, "is told", repr(error)[:100])
        if self.bytes() != before:
            raise Violation("a reader changed something")
        try:
            log = FileStore(ROOT, self.process.now, disk=self.process.disk).open(FOLDER_OF, "judge")
        except EverlogError as error:
            self.world.note(self.process.name, "is told", repr(error)[:100])
            if {path: kept for path, kept in self.bytes().items() if path in before} != before:
                raise Violation(f"{error!r}, but something was changed") from error
            return
        try:
            records = list(records_of(log.table()))
            self.same(records, expected, missing=log.cut is not None)
            self.goes_on(log, records)
        except StoreError as error:
            self.world.note(self.process.name, "is told", repr(error)[:100])
        log.close()

    def goes_on(self, log: FileLog, records: list[Record]) -> None:
        """Check that the next commit follows the last one."""
        last = records[-1].commit if records else 0
        commit = log.append("sam", log.head("sam").seq, self.drafts())
        seq = sum(record.agent_id == "sam" for record in records)
        if (commit.number, commit.records[0].seq) != (last + 1, seq + 1):
            raise Violation(f"after commit {last} and seq {seq} the log goes on with {commit}")

    def same(self, records: list[Record], expected: list[Record], *, missing: bool) -> None:
        """Check that the records are the expected ones; the last frame may be missing if damage was reported."""
        if records == expected:
            return
        lost = {record.commit for record in expected[len(records) :]}
        if missing and records == expected[: len(records)] and len(lost) <= GROUP_MAX:
            return
        raise Violation(f"other data in silence: {len(records)} records in place of {len(expected)}")

    def bytes(self) -> dict[Path, bytes]:
        """Return the content of every file that holds records or names such files."""
        paths = [path for folder in self.world.platter.folders for path in self.world.platter.paths(folder)]
        kept = [path for path in paths if not path.name.startswith("epoch-")]
        return {path: bytes(self.world.platter.inode(path).cache) for path in kept}
