"""The probabilities of a seed's troubles: each simulation has its own mixture, so that each trouble also occurs
alone.
"""

import errno
import random
from collections.abc import Callable
from typing import NamedTuple

FAULTS = {
    "create": (errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EROFS),
    "open": (errno.EIO, errno.EMFILE, errno.EROFS),
    "read": (errno.EIO, errno.EMFILE),
    "read on": (errno.EIO,),
    "names": (errno.EIO, errno.EMFILE),
    "names on": (errno.EIO,),
    "exists": (errno.EIO,),
    "make_dirs": (errno.ENOSPC, errno.EROFS),
    "link": (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EEXIST),
    "remove": (errno.EIO, errno.EROFS),
    "sync_dir": (errno.EIO, errno.EMFILE),
    "is_locked": (errno.EIO, errno.EMFILE),
    "write": (errno.EIO, errno.ENOSPC),
    "truncate": (errno.EIO, errno.EROFS),
    "sync": (errno.EIO, errno.ENOSPC),
    "put_new": (errno.EIO,),
    "put": (errno.EIO,),
    "get": (errno.EIO,),
    "size": (errno.EIO,),
    "objects": (errno.EIO,),
    "delete": (errno.EIO,),
}
"""Possible errors of each call."""

STORMS = {
    errno.ENOSPC: ("create", "make_dirs", "link", "write", "sync"),
    errno.EROFS: ("create", "open", "make_dirs", "link", "remove", "truncate", "write"),
    errno.EMFILE: ("create", "open", "read", "names", "sync_dir", "is_locked"),
}
"""Calls that fail while the disk is full, the file system read-only, or the process out of file descriptors."""


HURTS = {
    "write": 6,
    "sync": 6,
    "sync_dir": 6,
    "create": 3,
    "truncate": 6,
    "link": 3,
    "remove": 3,
    "answer": 3,
    "sealed": 3,
    "put_new": 6,
    "delete": 3,
}
"""Factors of the chance of trouble at calls where work is half done."""


class Habits(NamedTuple):
    """Probabilities, most of them for each call of the disk; 0 means never."""

    calls: int
    """Number of calls of the run before the troubles end."""
    segment_bytes_max: int
    hosts: int
    """1: all processes are on one machine; 2: they share the disk over a network."""
    locks: bool
    """True if the file system has locks."""
    live_max: int
    """Maximum number of processes at the same time."""
    seals: bool
    """True if writers seal and erase."""
    ending: str
    switch: float
    """Chance that another process runs."""
    take_over: float
    """Chance, for each opening, that a writer fences the living owner."""
    readers: float
    """Chance that a new process is a reader."""
    kill: float
    interrupt: float
    stop: float
    power_loss: float
    fault: float
    storm: float
    torn: float
    write_back: float
    evict: float
    jump: float

    @property
    def disturbed(self) -> bool:
        """True if a call can fail."""
        return self.fault > 0 or self.storm > 0

    @property
    def restless(self) -> float:
        """Chance that a process loses its baton at a call."""
        return (
            self.switch
            + self.kill
            + self.stop
            + self.power_loss
            + self.storm
            + self.write_back
            + self.evict
            + self.jump
        )

    def calm(self) -> "Habits":
        """Return these habits without troubles."""
        return self._replace(kill=0, interrupt=0, stop=0, power_loss=0, fault=0, storm=0, evict=0, jump=0)


Change = Callable[[Habits], Habits]


def habits(chance: random.Random) -> Habits:
    """Draw the habits of a simulation."""

    def at_times(most: float, never: float = 0.4) -> float:
        return 0.0 if chance.random() < never else chance.uniform(most / 10, most)

    return Habits(
        calls=chance.randint(200, 600),
        segment_bytes_max=chance.choice([1, 4000, 10_000, 10**6]),
        hosts=chance.choice([1, 1, 1, 2]),
        locks=chance.random() < 0.85,
        live_max=chance.choice([1, 2, 3, 4]),
        seals=chance.random() < 0.4,
        ending=chance.choice(["power loss", "kill", "finish", "take over"]),
        switch=chance.choice([0.02, 0.1, 0.3, 0.6]),
        take_over=chance.choice([0, 0.3, 0.7, 1]),
        readers=chance.choice([0, 0.2, 0.5]),
        kill=at_times(0.008),
        interrupt=at_times(0.005, 0.7),
        stop=at_times(0.02),
        power_loss=at_times(0.004),
        fault=at_times(0.012),
        storm=at_times(0.002, 0.7),
        torn=at_times(0.5),
        write_back=at_times(0.05),
        evict=at_times(0.03),
        jump=at_times(0.005, 0.6),
    )
