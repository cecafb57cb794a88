"""P7 with two real processes: the owner is stopped with SIGSTOP at each of its operations, fenced, and resumed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everlog.store import FileStore, check
from tests.contract.log_contract import NOW, Drafts
from tests.support.store.memory_disk_store import append

CWD = Path(__file__).parents[3]
SECOND = 1_000_000

"""A time after the ids of the other process."""


class Owners:
    """The other process, and the store that both processes use."""

    def __init__(self, root: Path) -> None:
        self.store = FileStore.create(root, lambda: NOW, "stopped")
        command = [sys.executable, "-m", "tests.support.store.stopped_appender", str(root)]
        self.process = subprocess.Popen(command, cwd=CWD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rounds = 0

    def order(self, scenario: str, stop: int, *after: str) -> str:
        """Begin a round with a new agent. Return the agent's name."""
        assert self.process.stdin
        self.rounds += 1
        agent = f"{scenario} {self.rounds}"
        self.store.register(agent)
        self.process.stdin.write(json.dumps([scenario, agent, stop, *after]) + "\n")
        self.process.stdin.flush()
        return agent

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def until_stopped(self) -> None:
        """Wait until the process has stopped."""
        assert self.line() == "stopping"
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def go_on(self) -> dict[str, Any]:
        """Resume the process. Return its outcome."""
        os.kill(self.process.pid, signal.SIGCONT)
        return json.loads(self.line())


@pytest.fixture
def owners(tmp_path: Path) -> Iterator[Owners]:
    running = Owners(tmp_path)
    yield running
    running.process.kill()
    running.process.communicate()


def fence(owners: Owners, scenario: str, stop: int, *after: str) -> dict[str, Any]:
    """Run one round: stop the owner, take over, append, resume the owner. Return its outcome; no acknowledged record is
    lost.
    """
    agent = owners.order(scenario, stop, *after)
    owners.until_stopped()
    taker = owners.store.open(agent, "taker", take_over=True)
    drafts = Drafts(NOW + SECOND)
    mine = [record.event_id for record in append(taker, agent, drafts.some(1))]
    told = owners.go_on()
    mine += [record.event_id for record in append(taker, agent, drafts.some(1))]
    taker.close()
    found = [record.event_id for record in owners.store.reader(agent).read(agent)]
    owed = told["kept"] + (told["tried"] if told["outcome"] == "acknowledged" else [])
    assert found in (told["kept"] + mine, told["kept"] + told["tried"] + mine)
    assert found[: len(owed)] == owed
    assert check(owners.store.partition(taker.partition)).ok
    assert all(outcome.startswith("Fenced: epoch ") and "must stop" in outcome for outcome in told["later"])
    return told


def steps(owners: Owners, scenario: str) -> list[str]:
    """Return the operations of an undisturbed scenario."""
    owners.order(scenario, -1)
    told = json.loads(owners.line())
    assert told["outcome"] in ("acknowledged", "open")
    assert told["later"] == ["acknowledged"] * 2
    return told["seen"]


@pytest.mark.parametrize("scenario", ["append", "roll"])
def test_p7_an_owner_stopped_inside_an_append_is_never_acknowledged_again(owners: Owners, scenario: str) -> None:
    """An owner stopped before any operation, fenced and resumed, reports Fenced; stopped after the last one, its record
    is in the log.
    """
    seen = steps(owners, scenario)
    synced = len(seen) - seen[::-1].index("sync")
    assert ("link" in seen) == (scenario == "roll")
    for stop in range(len(seen)):
        told = fence(owners, scenario, stop)
        if stop < synced:
            assert told["outcome"].startswith("Fenced: epoch 1 of "), (stop, seen)
            assert "must stop" in told["outcome"]
        else:
            assert told["outcome"].partition(":")[0] in ("Fenced", "acknowledged"), (stop, seen)
    assert fence(owners, scenario, len(seen) - 1, "after")["outcome"] == "acknowledged"


def test_p7_an_owner_stopped_while_it_opens_harms_no_other(owners: Owners) -> None:
    """An owner stopped before any operation of an opening is refused, or opens and is fenced; the other owner's records
    stay.
    """
    seen = steps(owners, "open")
    for stop in range(len(seen)):
        told = fence(owners, "open", stop)
        assert told["outcome"].partition(":")[0] in ("open", "Fenced", "PartitionBusy"), (stop, seen, told)
        assert bool(told["later"]) == (told["outcome"] == "open")
    assert fence(owners, "open", len(seen) - 1, "after")["outcome"] == "open"
