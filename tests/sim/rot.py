"""Bits rot: who reads afterwards gets the same data or an error, never other data in silence.

One thing cannot be told from a torn write: the last frame of the open file. It may be missing, if that is said.
"""

import random
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

from events import EverlogError, Record
from store import FileStore, records_of

from .checkers import Violation
from .disk import Inode
from .lives import FOLDER_OF, ROOT, Life
from .simulation import Failed, run
from .world import World

FLIPS = 12
GROUP_MAX = 4
"""Commits in a frame, at most."""


def rot(seed: int) -> World:
    """Let the bits of the world of `seed` rot after its end, one at a time. Raises Failed."""
    world = World(seed, rotting=True)
    try:
        with world.begun():
            run(world)
            world.trace.clear()
            expected = _Reading(world).everything()
            whole = world.platter
            for _ in range(FLIPS):
                world.platter = deepcopy(whole)
                _flip(world)
                _Reading(world).compare(expected)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Failed(world, seed, error) from error
    return world


def _flip(world: World) -> None:
    """Change something in a file."""
    chance: random.Random = world.chance
    paths = [path for folder in sorted(world.platter.folders) for path in world.platter.paths(folder)]
    path = chance.choice([path for path in paths if world.platter.inode(path).cache])
    inode = world.platter.inode(path)
    bit = chance.randrange(len(inode.cache) * 8)
    _change(inode, bit)
    world.note("the world", "rots", f"{path.name} bit {bit} of {len(inode.cache) * 8}")


def _change(inode: Inode, bit: int) -> None:
    inode.cache[bit // 8] ^= 1 << bit % 8


class _Reading(Life):
    """Who comes after."""

    def __init__(self, world: World) -> None:
        super().__init__(world, world.born("judge"))

    def everything(self) -> list[Record]:
        """All records, in commit order."""
        return list(records_of(FileStore(ROOT, self.process.now, disk=self.process.disk).reader(FOLDER_OF).table()))

    def compare(self, expected: list[Record]) -> None:
        """Read, then open, then read again."""
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
        with suppress(EverlogError):
            self.same(list(records_of(log.table())), expected, missing=log.cut is not None)
        log.close()

    def same(self, records: list[Record], expected: list[Record], *, missing: bool) -> None:
        """The records are those expected; without the last frame only where that is said."""
        if records == expected:
            return
        lost = {record.commit for record in expected[len(records) :]}
        if missing and records == expected[: len(records)] and len(lost) <= GROUP_MAX:
            return
        raise Violation(f"other data in silence: {len(records)} records in place of {len(expected)}")

    def bytes(self) -> dict[Path, bytes]:
        """Every file that holds records, or says which do."""
        paths = [path for folder in self.world.platter.folders for path in self.world.platter.paths(folder)]
        kept = [path for path in paths if not path.name.startswith("epoch-")]
        return {path: bytes(self.world.platter.inode(path).cache) for path in kept}
