"""A process that takes a resource from itself, appends until the system refuses, gets the resource back, and continues.

    python -m tests.support.store.starved_appender WHAT STORE

WHAT is `space` or `remount` (STORE is on a file system of its own), `size` (maximum file size) or `files` (maximum open
files). Prints one line of JSON: the errors, whether all acknowledged records are in the log, and the faults that a
check finds.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from everlog.events import StoreError
from everlog.store import FileLog, FileStore, check
from tests.contract.log_contract import NOW, Drafts

APPENDS_MAX = 5000
BALLAST_LEFT_BYTES = 200_000


def fill(folder: Path) -> Callable[[], None]:
    """Fill the file system except for a few bytes. Return a function that makes room again."""
    ballast = folder / "ballast"
    left = os.statvfs(folder)
    with ballast.open("wb", buffering=0) as file:
        file.write(bytes(left.f_bavail * left.f_frsize - BALLAST_LEFT_BYTES))
    return ballast.unlink


def remount(folder: Path) -> Callable[[], None]:
    """Make the file system read-only. Return a function that makes it writable again."""

    def mode(options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)

    mode("ro")
    return lambda: mode("rw")


def limit(what: int, value: int) -> Callable[[], None]:
    """Set a limit of this process. Return a function that restores the old limit."""
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (value, hard))
    return lambda: resource.setrlimit(what, (soft, hard))


def longest(folder: Path) -> Callable[[], None]:
    """Limit files to 100,000 bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    return limit(resource.RLIMIT_FSIZE, 100_000)


def files(folder: Path) -> Callable[[], None]:
    """Prevent the opening of further files."""
    lowest = os.dup(0)
    os.close(lowest)
    return limit(resource.RLIMIT_NOFILE, lowest)


TAKE = {"space": fill, "remount": remount, "size": longest, "files": files}


class User:
    """A user who appends, and stores the ids of sent events and all errors."""

    def __init__(self, root: Path) -> None:
        self.store = FileStore.create(root / "store", lambda: NOW, "starving", segment_bytes_max=150_000)
        self.store.register("sam")
        self.drafts = Drafts()
        self.sent: list[str] = []
        self.errors: list[str] = []

    def tried(self, work: Callable[[], object]) -> bool:
        """Return True if `work` was done, and not refused."""
        try:
            work()
        except StoreError as error:
            self.errors.append(f"{type(error).__name__}: {error}")
            return False
        return True

    def starve(self, log: FileLog) -> list:
        """Append until an append is refused. Return the drafts of that append."""
        for _ in range(APPENDS_MAX):
            mine = [self.drafts.one("x" * 300)]
            self.sent.append(mine[0].event_id)
            if not self.tried(lambda: log.append("sam", log.head("sam").seq, mine)):  # noqa: B023
                return mine
        raise AssertionError(f"{APPENDS_MAX} appends, and no refusal")


def main(what: str, root: Path) -> None:
    """Starve, recover, and print the result."""
    user = User(root)
    log = user.store.open("sam", "starving")
    log.append("sam", 0, [user.drafts.one()])
    if what == "remount":  # the system refuses a remount while a file is open for writing
        log.close()
    give_back = TAKE[what](root)
    last = user.drafts.some(1)
    if what != "remount":
        last = user.starve(log)
        user.tried(lambda: log.append("sam", log.head("sam").seq, last))
        log.close()
    for _ in range(2):
        user.tried(lambda: user.store.open("sam", "starving").close())
    give_back()
    log = user.store.open("sam", "healed")
    log.append("sam", log.head("sam").seq, last)
    log.append("sam", log.head("sam").seq, user.drafts.some(1))
    held = [record.event_id for record in log.read("sam")]
    log.close()
    report = check(user.store.partition(log.partition))
    sent = list(dict.fromkeys([*user.sent, last[0].event_id]))
    print(json.dumps({"errors": user.errors, "kept": held[1:-1] == sent, "check": report.errors}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
