"""A process to be killed: its threads append to one shared partition, and announce each append before and report it
after.

    python -m tests.soak.killed_appender FOLDER PARTITION LIFE SEED

Standard input is one line of JSON: the groups that earlier processes announced and that were not acknowledged; they are
sent again first. A group is a list of [agent, expected seq, [ids]]. Standard output, each line written at once:

    start                             before the partition is opened
    open EPOCH CUT                    it is open; bytes of a torn tail that were cut
    > GROUP                           about to be appended, as one group
    < [[agent, commit, first seq, [ids], repeated], ...]      acknowledged
    sealing                           about to seal
    sealed FILES                      done; number of files that were sealed into one
"""

import itertools
import json
import os
import random
import sys
import threading
from pathlib import Path

from everlog.events import Draft, StoreError, uuid7
from everlog.store import Append, FileLog, FileStore

START = 1_800_000_000_000_000
LIFE_US = 2 * 60 * 60 * 1_000_000
"""Step of the clock between two processes in microseconds: the log has forgotten an id after twelve."""
SEGMENT_BYTES_MAX = 48 * 1024
WORDS_MAX = 900
LONERS = 2
TEAM = 4
SEAL_CHANCE = 1 / 40

Group = list[tuple[str, int, list[str]]]


def text_of(event_id: str) -> str:
    """Return the text of the event of this id: always the same, so that the checker needs no copy."""
    return f"{event_id} " + "word " * (int(event_id[-6:], 16) % (WORDS_MAX // 5))


def payload_of(event_id: str) -> str:
    """Return the payload of the event of this id."""
    return json.dumps({"tail": event_id[-8:]}, separators=(",", ":"))


def say(line: str) -> None:
    """Write one line in one system call, so that it is never cut short."""
    os.write(1, f"{line}\n".encode())


class Clock:
    """A clock that advances by a millisecond at each reading and by hours for each process, so that no two read the
    same time.
    """

    def __init__(self, life: int) -> None:
        self._begin = START + life * LIFE_US
        self._looks = itertools.count()

    def now(self) -> int:
        return self._begin + next(self._looks) * 1000


class Life:
    """One process's work on the partition, until it is killed."""

    def __init__(self, log: FileLog, clock: Clock, life: int, seed: int) -> None:
        self.log = log
        self.clock = clock
        self.life = life
        self.seed = seed
        self._ids = itertools.count()
        self._seal = threading.Event()

    def new_id(self) -> str:
        """Return an id that no other process and no other thread makes."""
        return uuid7(self.clock.now(), self.life << 40 | next(self._ids))

    def append(self, group: Group, *, alone: bool = False) -> None:
        """Announce a group, append it, and report the acknowledged commits. A refusal ends the process: none may
        happen.
        """
        say(f"> {json.dumps(group)}")
        appends = [Append(agent_id, expected, [self.draft(i) for i in ids]) for agent_id, expected, ids in group]
        if alone:
            (one,) = appends
            results = [self.log.append(one.agent_id, one.expected_seq, one.drafts)]
        else:
            results = self.log.append_group(appends)
        told = []
        for result in results:
            if isinstance(result, StoreError):
                raise result
            ids = [record.event_id for record in result.records]
            told.append([result.agent_id, result.number, result.records[0].seq, ids, result.repeated])
        say(f"< {json.dumps(told)}")

    def draft(self, event_id: str) -> Draft:
        return Draft(event_id=event_id, recorded_at=self.clock.now(), type="user_message", turn=1, step=0, version=1,
                     text=text_of(event_id), payload=payload_of(event_id))  # fmt: skip

    def group_of(self, agents: list[str], chance: random.Random) -> Group:
        """Return a group with the next events of each of `agents`."""
        return [
            (agent_id, self.log.head(agent_id).seq, [self.new_id() for _ in range(chance.randint(1, 3))])
            for agent_id in agents
        ]

    def loner(self, number: int) -> None:
        """Append commit after commit for one agent, and request sealing now and then."""
        chance = random.Random(f"{self.seed} {self.life} {number}")
        while True:
            self.append(self.group_of([f"loner {number}"], chance), alone=True)
            if chance.random() < SEAL_CHANCE:
                self._seal.set()

    def team(self) -> None:
        """Append groups of several agents."""
        chance = random.Random(f"{self.seed} {self.life} team")
        while True:
            agents = [f"team {number}" for number in range(TEAM)]
            self.append(self.group_of(chance.sample(agents, chance.randint(1, TEAM)), chance))

    def sealer(self) -> None:
        """Seal on request while the other threads append."""
        while hasattr(self.log, "seal"):
            self._seal.wait()
            self._seal.clear()
            say("sealing")
            say(f"sealed {self.log.seal().files}")


def guarded(work, *arguments) -> None:
    """Run `work`; print any exception and end the process."""
    try:
        work(*arguments)
    finally:
        error = sys.exc_info()[1]
        if error is not None:
            say(f"error {type(error).__name__}: {error}")
            os._exit(1)


def main(folder: str, partition: str, life: int, seed: int) -> None:
    """Open the partition, send the unacknowledged groups again, then work until the process is killed."""
    unknown: list[Group] = json.loads(sys.stdin.readline())
    clock = Clock(life)
    say("start")
    store = FileStore.create(Path(folder), clock.now, f"soak {seed}", segment_bytes_max=SEGMENT_BYTES_MAX)
    log = store.open_partition(partition, "soak")
    say(f"open {log.epoch} {log.cut.bytes if log.cut else 0}")
    working = Life(log, clock, life, seed)
    for group in unknown:
        working.append(group)
    jobs = [(working.loner, number) for number in range(LONERS)] + [(working.team,), (working.sealer,)]
    threads = [threading.Thread(target=guarded, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    guarded(main, sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
