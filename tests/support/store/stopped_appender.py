"""A process that stops itself, with SIGSTOP, at a given operation on a real disk; `test_stopped_owner` resumes it.

    python -m tests.support.store.stopped_appender STORE

Each line of standard input is an order, [scenario, agent, stop]: `stop` is the operation before which to stop, counted
from 0; if there are fewer the process stops nowhere; [scenario, agent, stop, "after"] stops after it. Answers, by line:
`stopping` right before the stop, and at the end the outcome, as JSON.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from everlog.events import StoreError
from everlog.store import FileLog, FileStore, RealDisk
from everlog.store.base.disk import RealFile
from tests.contract.log_contract import NOW, Drafts

OF_DISKS = ("create", "open", "read", "names", "exists", "make_dirs", "link", "remove", "sync_dir", "is_locked")
OF_FILES = ("write", "sync", "truncate")
LATER_APPENDS = 2


def say(line: str) -> None:
    print(line, flush=True)


class StoppingDisk(RealDisk):
    """The real disk, which records its operations while it is armed, and stops the process at one of them."""

    def __init__(self) -> None:
        self.armed = False
        self.stop = -1
        self.after = False
        self.seen: list[str] = []
        for name in OF_DISKS:
            setattr(self, name, self._watched(name, getattr(self, name)))

    def _watched(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            here = self._begin(name)
            result = work(*arguments)
            if here and self.after:
                stop_here()
            if isinstance(result, RealFile):
                for operation in OF_FILES:
                    setattr(result, operation, self._watched(operation, getattr(result, operation)))
            return result

        return watched

    def _begin(self, name: str) -> bool:
        """Record an operation. Return True if this is the operation to stop at."""
        if not self.armed:
            return False
        self.seen.append(name)
        here = len(self.seen) == self.stop + 1
        if here and not self.after:
            stop_here()
        return here


def stop_here() -> None:
    """Stop the process until a SIGCONT."""
    say("stopping")
    os.kill(os.getpid(), signal.SIGSTOP)


class Owner:
    """The owner of one agent's partition, and the answers that it got."""

    def __init__(self, root: Path, scenario: str, agent: str) -> None:
        self.disk = StoppingDisk()
        limit = 1 if scenario == "roll" else 10**6
        self.store = FileStore(root, lambda: NOW, disk=self.disk, segment_bytes_max=limit)
        self.agent = agent
        self.drafts = Drafts()
        self.log: FileLog | None = None
        self.sent: list[str] = []

    def open(self) -> str:
        try:
            self.log = self.store.open(self.agent, "owner")
        except StoreError as error:
            return f"{type(error).__name__}: {error}"
        return "open"

    def append(self) -> str:
        """Append one event. Return `acknowledged`, or the error as text."""
        assert self.log is not None
        drafts = self.drafts.some(1)
        self.sent = [draft.event_id for draft in drafts]
        try:
            self.log.append(self.agent, self.log.head(self.agent).seq, drafts)
        except StoreError as error:
            return f"{type(error).__name__}: {error}"
        return "acknowledged"

    def live(self, scenario: str, stop: int, *, after: bool) -> dict[str, Any]:
        """Append one commit, then run the scenario with the stop, then append again. Return what happened."""
        assert (self.open(), self.append()) == ("open", "acknowledged")
        kept = self.sent
        if scenario == "open":
            assert self.log is not None
            self.log.close()
            self.log = None
        self.disk.stop, self.disk.after, self.disk.armed = stop, after, True
        outcome = self.open() if scenario == "open" else self.append()
        self.disk.armed = False
        tried = self.sent
        later = [self.append() for _ in range(LATER_APPENDS)] if self.log else []
        if self.log:
            self.log.close()
        return {
            "kept": kept,
            "seen": self.disk.seen,
            "outcome": outcome,
            "tried": tried,
            "later": later,
        }


def main(root: str, orders: Iterable[str]) -> None:
    for order in orders:
        scenario, agent, stop, *after = json.loads(order)
        say(json.dumps(Owner(Path(root), scenario, agent).live(scenario, stop, after=bool(after))))


if __name__ == "__main__":
    main(sys.argv[1], sys.stdin)
