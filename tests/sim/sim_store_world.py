"""One seed, one world: a disk, a clock, and processes of which one runs at a time.

Each process is a thread that needs a baton to run. At every call of the disk the seed may take the baton away: another
process runs, the process is killed, interrupted or stopped for long, the call fails, the power fails, or the clock
jumps. So a seed reproduces exactly.
"""

import errno
import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol
from unittest.mock import patch

from everlog.store import Disk
from everlog.store.partition import epoch, partition
from tests.sim.checkers import History
from tests.sim.sim_disk import Inode, Platter, SimDisk
from tests.sim.trouble_mix import FAULTS, HURTS, STORMS, Change, Habits, habits

START = 1_800_000_000_000_000
"""Microseconds UTC at which every simulation begins."""
HOUR = 3_600_000_000
THREADS_MAX = 16
HANG_S = 60
"""Seconds after which a process that has not returned the baton counts as hanging: a bug of the simulation, or of the
store.
"""


class Killed(BaseException):
    """kill -9: the process does nothing after this exception."""


class Interrupted(BaseException):
    """An interruption by Ctrl-C: the call does not return, and the process continues."""


class Hardware(Protocol):
    """Storage that all processes of a world share, as its checkers see it."""

    folders: Mapping[Path, object]

    def paths(self, folder: Path) -> list[Path]:
        """Return the files in a folder, sorted."""
        ...

    def inode(self, path: Path) -> Inode:
        """Return an existing file."""
        ...

    def power_loss(self) -> None:
        """Lose what the storage loses when the power fails."""
        ...

    def write_back(self) -> None:
        """Write what the storage may write at any time."""
        ...

    def evict(self) -> None:
        """Drop what the storage may drop at any time."""
        ...


class MortalDisk(Disk, Protocol):
    """Access of one process to the storage."""

    def die(self) -> None:
        """End the access with the process."""
        ...


class Process:
    """A simulated process: the gate of its disk, and its thread."""

    def __init__(self, world: "World", name: str, host: str, pid: int) -> None:
        self.name = name
        self.host = host
        self.pid = pid
        self.world = world
        self.disk = world.disk_of(self)
        self.skew = world.chance.randrange(-HOUR, HOUR) if world.jumped else 0
        self.baton = threading.Lock()
        self.baton.acquire()
        self.future: Future[None] | None = None
        self.born = world.calls
        self.done = False
        self.killed = False
        self.stopped_until = 0
        self.holds = 0
        """Epoch of the log that the process has open and locked; 0 if none."""
        self.troubles = 0
        """Number of calls of this process that failed or were interrupted."""

    def __call__(self, operation: str, path: Path) -> "Call":
        return Call(self, operation, path)

    def torn(self, operation: str) -> bool:
        return self.world.chance.random() < self.world.habits.torn

    def now(self) -> int:
        """Return the time of this process's machine."""
        return self.world.clock + self.skew

    def pause(self, operation: str, path: Path) -> None:
        """Let other processes run; return when this process has the baton again."""
        if self.killed:
            raise Killed
        world = self.world
        world.note(self.name, operation, path.name)
        restless = world.restless * HURTS.get(operation, 1)
        if world.chance.random() < restless and self.future is not None:
            world.baton.release()
            self.baton.acquire()
            if self.killed:
                raise Killed
        world.running = self

    def trouble(self, operation: str) -> OSError | None:
        """Return the error of this call, or None if it succeeds."""
        world = self.world
        chance, habits = world.chance, world.habits
        if chance.random() < habits.interrupt:
            self.troubles += 1
            world.note(self.name, "Ctrl-C", "")
            raise Interrupted
        code = 0
        if world.storm and operation in STORMS[world.storm]:
            code = world.storm
        elif operation in FAULTS and chance.random() < habits.fault * HURTS.get(operation, 1):
            code = chance.choice(FAULTS[operation])
        if not code:
            return None
        self.troubles += 1
        return OSError(code, os.strerror(code))

    def live(self, life: Callable[[], None]) -> None:
        """Wait for the baton, run the process, and return the baton for the last time."""
        self.baton.acquire()
        try:
            if not self.killed:
                self.world.running = self
                life()
        except Killed:
            pass
        finally:
            self.disk.die()
            self.done = True
            self.world.baton.release()


class Call:
    """One call of the disk, around its effect."""

    __slots__ = ("_error", "_late", "_operation", "_path", "_process")

    def __init__(self, process: Process, operation: str, path: Path) -> None:
        self._process = process
        self._operation = operation
        self._path = path
        self._late = False
        self._error: OSError | None = None

    def __enter__(self) -> None:
        process = self._process
        process.pause(self._operation, self._path)
        self._error = process.trouble(self._operation)
        if self._error is None:
            return
        # A network file system may answer EEXIST to our own link if the request was sent twice.
        exclusive = self._error.errno == errno.EEXIST
        self._late = exclusive or process.world.chance.random() < 0.2
        process.world.note(process.name, f"  {errno.errorcode[self._error.errno or 0]}", "late" if self._late else "")
        if not self._late:
            raise self._error

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None and self._error is not None:
            raise self._error


class World:
    """The disk, clock, processes and chances of a seed."""

    def __init__(self, seed: int, change: Change = lambda habits: habits) -> None:
        """Make the world of a seed; `change` adjusts its chances for a scenario."""
        self.chance = random.Random(seed)
        self.habits: Habits = change(habits(self.chance))
        self.platter: Hardware = self.hardware()
        self.history = History()
        self.clock = START
        self.restless = self.habits.restless
        """Chance that a process loses its baton at a call."""
        self.jumped = self.habits.jump > 0
        """True if clocks are wrong in this world."""
        self.storm = 0
        self.calls = 0
        self.trace: list[tuple[str, str, str]] = []
        self.processes: list[Process] = []
        self.guests: list[Process] = []
        """Processes that run on the world's own thread and are never interrupted."""
        self.running: Process | None = None
        self.baton = threading.Lock()
        self.baton.acquire()
        self._born = 0
        self._departed = -1
        self._pool: ThreadPoolExecutor | None = None

    def hardware(self) -> Hardware:
        """Return the storage that all processes share."""
        return Platter(self.chance, locks=self.habits.locks)

    def disk_of(self, process: Process) -> MortalDisk:
        """Return the access of one process to the storage."""
        assert isinstance(self.platter, Platter)
        return SimDisk(self.platter, process)

    def excused(self) -> set[Path]:
        """Return the files that a request which was sent long ago has created, which cannot be known before."""
        return set()

    def grow_calm(self) -> None:
        """End the troubles of the storage that last longer than their processes."""

    def note(self, who: str, what: str, about: str) -> None:
        """Add a line to the trace."""
        self.calls += 1
        self.trace.append((who, what, about))

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Let the store get hosts and process numbers from this world; at the end, kill all processes."""
        machine = SimpleNamespace(uname=lambda: SimpleNamespace(nodename=self._host()), getpid=self._pid)
        with (
            patch.object(epoch, "os", machine),
            patch.object(partition, "os", machine),
            patch.object(epoch, "start_of", self._start_of),
            ThreadPoolExecutor(THREADS_MAX) as self._pool,
        ):
            try:
                yield
            finally:
                self.kill_all()

    def born(self, kind: str) -> Process:
        """Return a new process that does not run yet. Process numbers are reused."""
        self._born += 1
        host = f"host-{self.chance.randrange(self.habits.hosts)}"
        taken = {process.pid for process in self.processes if not process.done}
        pid = self.chance.choice([number for number in range(1, THREADS_MAX + 1) if number not in taken])
        return Process(self, f"{kind} {self._born}", host, pid)

    def start(self, process: Process, life: Callable[[], None]) -> None:
        """Queue `process`: it runs `life` when it gets the baton."""
        assert self._pool is not None
        self.processes.append(process)
        process.future = self._pool.submit(process.live, life)

    def met_others(self, process: Process) -> bool:
        """Return True if another process that might hold a lock has lived at any time since `process` began."""
        others = (*self.processes, *self.guests)
        return self._departed >= process.born or any(other is not process and not other.done for other in others)

    def go_on(self, process: Process) -> None:
        """Give the baton to `process`, and wait until the process returns it. Raise the exception that ended its
        thread.
        """
        process.baton.release()
        if not self.baton.acquire(timeout=HANG_S):
            raise TimeoutError(f"{process.name} hangs")
        if process.done:
            self.processes.remove(process)
            self._departed = self.calls
            assert process.future is not None
            process.future.result()

    def kill(self, process: Process) -> None:
        """End a process as kill -9 does."""
        self.note(process.name, "is killed", "")
        process.killed = True
        self.go_on(process)

    def kill_all(self) -> None:
        """Kill every remaining process."""
        for process in list(self.processes):
            self.kill(process)

    def lose_power(self) -> None:
        """Kill every process, and let the disk lose unsynced data."""
        self.kill_all()
        self.note("the world", "loses power", "")
        self.platter.power_loss()

    def turn(self) -> None:
        """Cause one trouble, or resume one process, while none runs."""
        habits = self.habits
        events: list[tuple[Callable[[], object], float]] = [
            (self._someone_goes_on, habits.switch),
            (self._someone_dies, habits.kill),
            (self._someone_stops, habits.stop),
            (self.lose_power, habits.power_loss),
            (self._weather_changes, habits.storm),
            (self.platter.write_back, habits.write_back),
            (self.platter.evict, habits.evict),
            (self._clock_jumps, habits.jump),
        ]
        (event,) = self.chance.choices([event for event, _ in events], [rate for _, rate in events])
        event()
        self.clock += self.chance.randrange(1, 1000)

    def _someone_goes_on(self) -> None:
        able = [process for process in self.processes if process.stopped_until <= self.calls]
        if able or self.processes:
            self.go_on(self.chance.choice(able or self.processes))

    def _someone_dies(self) -> None:
        if self.processes:
            self.kill(self.chance.choice(self.processes))

    def _someone_stops(self) -> None:
        if self.processes:
            process = self.chance.choice(self.processes)
            process.stopped_until = self.calls + self.chance.choice([20, 100, 10**6])
            self.note(process.name, "is stopped", f"until call {process.stopped_until}")

    def _weather_changes(self) -> None:
        self.storm = 0 if self.storm else self.chance.choice(list(STORMS))
        self.note("the world", "storm", errno.errorcode.get(self.storm, "over"))

    def _clock_jumps(self) -> None:
        self.clock += self.chance.choice([-HOUR, HOUR, 25 * HOUR])
        self.note("the world", "clock", str(self.clock))

    def published(self, folder: Path) -> int:
        """Return the newest epoch in a partition's folder."""
        names = (path.name for path in self.platter.paths(folder))
        return max((int(name[6:]) for name in names if name.startswith("epoch-") and name[6:].isdigit()), default=0)

    def _host(self) -> str:
        return self.running.host if self.running else "nobody"

    def _pid(self) -> int:
        return self.running.pid if self.running else 0

    def _start_of(self, pid: int) -> int:
        """Return the start time of a process of the asking machine: any number that distinguishes the process from
        others.
        """
        for process in self.processes:
            if process.pid == pid and process.host == self._host() and not process.done:
                return int(process.name.split()[-1])
        return 0
