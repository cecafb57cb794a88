"""A simulated bucket, and the world in which all processes keep their store there.

A request may fail before or after it took effect. A request that failed, or whose process was killed, may still be on
its way, and takes effect at any later moment: a put of a part, for example, that was repeated with success, when its
frames are sealed and deleted.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from everlog.store.object.bucket import ListedObject, UnknownOutcome, missing, taken
from everlog.store.object.object_disk import FOLDER, ObjectDisk
from tests.sim.sim_disk import Inode
from tests.sim.sim_processes import ROOT
from tests.sim.sim_store_world import Hardware, Killed, MortalDisk, Process, World
from tests.sim.simulation import simulate
from tests.sim.trouble_mix import Habits

RECORDS = (".parquet", ".state", ".checkpoints")
"""Endings of the objects that hold records, besides parts. Each name is used once."""
ARRIVES = 0.1
"""Chance, at each turn of the world, that a request of a dead process arrives."""


class Objects:
    """The objects of the bucket, shared by all processes."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.on_their_way: list[tuple[str, bytes]] = []
        """Puts of dead processes, and puts that failed and were repeated."""
        self.late: set[str] = set()
        """Keys of the objects of records that have arrived late and were not deleted since."""

    @property
    def folders(self) -> Mapping[Path, object]:
        return {(ROOT / key).parent: None for key in sorted(self.held) if key != FOLDER}

    def paths(self, folder: Path) -> list[Path]:
        """Return the files in a folder, sorted, and the objects of frames of that folder."""
        paths = [ROOT / key for key in sorted(self.held)]
        parts = ROOT / "parts" / folder.relative_to(ROOT)
        return [path for path in paths if path.parent == folder or parts in path.parents]

    def inode(self, path: Path) -> Inode:
        """Return the content of an object."""
        inode = Inode()
        inode.cache.extend(self.held[path.relative_to(ROOT).as_posix()])
        return inode

    def power_loss(self) -> None:
        """Do nothing: a bucket has no power to lose."""

    def write_back(self) -> None:
        """Do nothing: an object is durable when it exists."""

    def evict(self) -> None:
        """Do nothing."""

    def arrive(self, number: int) -> str:
        """Carry out a put that was on its way. Return its key."""
        key, content = self.on_their_way.pop(number)
        if self.held.setdefault(key, content) is content and content:
            self.late.add(key)
        return key


class SimBucket:
    """A `Bucket`: the requests of one process."""

    url = "sim://bucket"

    def __init__(self, objects: Objects, process: Process) -> None:
        self._objects = objects
        self._process = process

    @contextmanager
    def _request(self, operation: str, key: str) -> Iterator[None]:
        """Enclose the effect of a request: it may fail before or after."""
        try:
            with self._process(operation, Path(key)):
                yield
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError as error:
            raise UnknownOutcome("the service did not answer", "Try again.") from error

    def put_new(self, key: str, content: bytes | memoryview) -> None:
        held = self._objects.held
        try:
            with self._request("put_new", key):
                if key in held:
                    raise taken(key)
                held[key] = bytes(content)
        except UnknownOutcome:
            if key.endswith(RECORDS) or key.startswith("parts/"):
                self._objects.on_their_way.append((key, bytes(content)))
            raise
        except Killed:
            if key not in held and self._process.world.chance.random() < 0.7:
                self._objects.on_their_way.append((key, bytes(content)))
            raise

    def put(self, key: str, content: bytes | memoryview) -> None:
        with self._request("put", key):
            self._objects.held[key] = bytes(content)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        with self._request("get", key):
            if key not in self._objects.held:
                raise missing(key)
            return self._objects.held[key][start : None if length is None else start + length]

    def get_all(self, keys: Sequence[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def size(self, key: str) -> int | None:
        with self._request("size", key):
            content = self._objects.held.get(key)
            return None if content is None else len(content)

    def objects(self, folder: str) -> list[ListedObject]:
        with self._request("objects", folder):
            start = f"{folder}/" if folder else ""
            held = sorted(self._objects.held.items())
            return [ListedObject(key, len(content)) for key, content in held if key.startswith(start)]

    def children(self, folder: str) -> list[str]:
        start = len(folder) + 1 if folder else 0
        return sorted({found.key[start:].partition("/")[0] for found in self.objects(folder)})

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            with self._request("delete", key):
                self._objects.held.pop(key, None)
                self._objects.late.discard(key)


class BucketAccess(ObjectDisk):
    """Disk of one process in the simulated bucket."""

    def die(self) -> None:
        """Do nothing: a bucket does not know of processes."""


class BucketWorld(World):
    """A world in which the store is in a bucket."""

    def hardware(self) -> Hardware:
        self.objects = Objects()
        return self.objects

    def disk_of(self, process: Process) -> MortalDisk:
        return BucketAccess(
            SimBucket(self.objects, process), ROOT, pause=lambda _: None, threads=False, pauses_s=(0, 0)
        )

    def excused(self) -> set[Path]:
        return {ROOT / key for key in self.objects.late}

    def grow_calm(self) -> None:
        """Let all requests arrive that are on their way."""
        while self.objects.on_their_way:
            self.note("the bucket", "gets late", self.objects.arrive(0))

    def turn(self) -> None:
        """Let a request of a dead process arrive, at times, then do as other worlds do."""
        waiting = self.objects.on_their_way
        if waiting and self.chance.random() < ARRIVES:
            self.note("the bucket", "gets late", self.objects.arrive(self.chance.randrange(len(waiting))))
        super().turn()


def in_bucket(seed: int) -> World:
    """Let processes of one machine keep their store in a bucket."""

    def reachable(habits: Habits) -> Habits:
        return habits._replace(hosts=1, locks=True, storm=0, power_loss=0, write_back=0, evict=0)

    return simulate(seed, reachable, "bucket", BucketWorld)


def meeting_in_bucket(seed: int) -> World:
    """Stop owners in a bucket at every step, fence them, let new owners seal, and resume them."""

    def stopping(habits: Habits) -> Habits:
        quiet = habits.calm()._replace(hosts=1, locks=True, segment_bytes_max=10**6, live_max=4, switch=0.1, stop=0.05)
        return quiet._replace(take_over=0.8, readers=0.1, kill=0.004, seals=True, ending="take over")

    return simulate(seed, stopping, "bucket meeting", BucketWorld)


def late_in_bucket(seed: int) -> World:
    """Send many puts twice, of which one arrives when the frames were sealed, erased and deleted."""

    def stammering(habits: Habits) -> Habits:
        quiet = habits.calm()._replace(hosts=1, locks=True, segment_bytes_max=10**6, live_max=1, switch=0.1, readers=0)
        return quiet._replace(take_over=0.5, kill=0.001, fault=0.02, seals=True, ending="finish")

    return simulate(seed, stammering, "bucket late", BucketWorld)
