"""Keep the number of shared partitions of a store, which can be changed while agents run.

    <root>/shards/000001    {"crc32c":"xxxxxxxx","numbers":[2,4]}

Each file holds all numbers that the store has had, the oldest first, and the highest file counts; a store without one
has the number that it was created with. A file is complete before it has its name, only one process can create that
name, and it never changes. So each process sees a change at its next look, and of two changes at once one follows the
other.

The number only says in which shard an agent belongs that is placed from now on; where each agent is, the register says.
So an agent that no process has moved yet, after a change, is found and runs as before. All earlier numbers are kept:
agents may be in the shards of any of them, and began where one of them says.

Used by `FileStore`. `MemoryShardNumbers` is the same in memory, for `MemoryStore`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from everlog.events import BadInput, CorruptLog
from everlog.store.base.disk import Disk, publish, storage
from everlog.store.base.names import is_shared, shard_name, shard_of
from everlog.store.base.store_constants import SHARDS_MAX
from everlog.store.partition.partition import token
from everlog.store.streams.register_file import signed_json

SHARDS = "shards"
"""Name of the folder."""


class _Signed(msgspec.Struct, forbid_unknown_fields=True):
    crc32c: str
    numbers: list[int]


def _encoded(numbers: Sequence[int]) -> bytes:
    return signed_json("numbers", msgspec.json.encode(list(numbers)))


class ShardNumbers(Protocol):
    """The numbers of shared partitions that a store has had."""

    def all(self) -> Sequence[int]:
        """Return all numbers, oldest first, at least one; the last is the number now. Raises CorruptLog, StoreError."""
        ...

    def change(self, number: int) -> bool:
        """Change the number, durably. Return False if it is that already. Raises BadInput, CorruptLog, StoreError."""
        ...


def is_shard_of(partition: str, numbers: Sequence[int]) -> bool:
    """Return True if a store that has had these numbers of shards has had that one."""
    return partition in map(shard_name, range(max(numbers)))


def first_shards(name: str, numbers: Sequence[int]) -> set[str]:
    """Return the shards in which an agent may have begun, in a store that has had these numbers of shards."""
    return {shard_of(name, number) for number in numbers if number}


def check_number(number: int) -> None:
    """Raise BadInput for a number of shards that a store cannot be changed to."""
    if not 1 <= number <= SHARDS_MAX:
        raise BadInput(
            f"A store can be changed to 1 to {SHARDS_MAX} shards, not {number}. To have none, move each agent to a log "
            "of its own: `everlog move NAME --placement dedicated`."
        )


class FileShardNumbers:
    """The numbers of a store on a disk."""

    def __init__(self, disk: Disk, root: Path, first: int) -> None:
        """Store the collaborators. `first`: number of shards that the store in `root` was created with."""
        self._disk = disk
        self._folder = root / SHARDS
        self._log = root / "log"
        self._known: tuple[int, Sequence[int]] = (0, (first,))
        """Number of the newest file that was read, and its content."""
        self._listed = False
        """True if the folder was listed, by which a gap between its files is found."""

    def all(self) -> Sequence[int]:
        """Return all numbers; see `ShardNumbers.all`."""
        with storage("read the number of shards in", self._folder):
            last, numbers = self._known
            if not self._listed:
                self._check_no_gap()
                self._listed = True
            while self._disk.exists(self._path(last + 1)):
                last += 1
                numbers = self._read(self._path(last), numbers)
            self._known = last, numbers
        return numbers

    def change(self, number: int) -> bool:
        """Change the number; see `ShardNumbers.change`."""
        check_number(number)
        while (numbers := self.all())[-1] != number:
            with storage("keep the number of shards in", self._folder):
                self._disk.make_dirs(self._folder)
                if publish(self._disk, self._path(self._known[0] + 1), _encoded((*numbers, number)), token()):
                    return True
        with storage("keep the number of shards in", self._folder):
            if self._known[0]:  # the process that changed it may have died before the name was durable
                self._disk.sync_dir(self._folder)
        return False

    def fault(self) -> str:
        """Return what is wrong with the files; empty if nothing is. Raises StoreError."""
        try:
            numbers = self.all()
        except CorruptLog as error:
            return str(error)
        with storage("list", self._log):
            names = self._disk.names(self._log) if self._disk.exists(self._log) else []
        more = sorted(name for name in names if is_shared(name) and not is_shard_of(name, numbers))
        return f"{self._log / more[0]} is there, but {self._folder} tells of no such shard. {_RESTORE}" if more else ""

    def _check_no_gap(self) -> None:
        names = self._disk.names(self._folder) if self._disk.exists(self._folder) else []
        there = sorted(int(name) for name in names if name.isdigit())
        if there != list(range(1, len(there) + 1)):
            raise CorruptLog(f"{self._folder} has lost a file: it has those of the numbers {there}. {_RESTORE}")

    def _read(self, path: Path, before: Sequence[int]) -> tuple[int, ...]:
        content = self._disk.read(path)
        try:
            numbers = tuple(msgspec.json.decode(content, type=_Signed).numbers)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CorruptLog(f"{path} is damaged: {error}. {_RESTORE}") from error
        if content != _encoded(numbers):
            raise CorruptLog(f"{path} is damaged: wrong checksum. {_RESTORE}")
        if numbers[:-1] != tuple(before):
            raise CorruptLog(f"{path} does not follow the file before it: it is of another store. {_RESTORE}")
        return numbers

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}"


_RESTORE = "Nothing was changed; restore the folder from a backup."


class MemoryShardNumbers:
    """The numbers of a store in memory."""

    def __init__(self, first: int) -> None:
        self._numbers = [first]

    def all(self) -> Sequence[int]:
        """Return all numbers; see `ShardNumbers.all`."""
        return tuple(self._numbers)

    def change(self, number: int) -> bool:
        """Change the number; see `ShardNumbers.change`."""
        check_number(number)
        if self._numbers[-1] == number:
            return False
        self._numbers.append(number)
        return True
