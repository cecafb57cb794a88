"""P5 to P8 of the contract, under threads: overlapping calls have the effects of some sequence of calls."""

import itertools
import random
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from everlog.events import Draft, Fenced, WrongSequence
from everlog.store import Append, Commit, Log, Store
from tests.contract.draft_builders import NOW, Drafts

THREADS = 6
SECOND = 1_000_000


class Seen(NamedTuple):
    """The result of one call: the stream was at `seq` at some moment between `begin` and `end`."""

    begin: int
    end: int
    seq: int
    made: bool
    """True if the call brought the stream to `seq`; False if the call only read it."""


def together(works: Iterable[Callable[[], None]]) -> None:
    """Run all works in threads to their ends, and raise the first exception."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except (Exception, AssertionError) as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def assert_linearizable(history: list[Seen]) -> None:
    """Check that one order of all calls respects their times and explains their results.

    A stream only grows, so the order can only be by seq, with the call that made a seq before those that read it. The
    order is possible unless a call that ended before another began comes after it.
    """
    assert len({seen.seq for seen in history if seen.made}) == sum(seen.made for seen in history)
    order = sorted(history, key=lambda seen: (seen.seq, not seen.made))
    for place, later in enumerate(order):
        for earlier in order[:place]:
            same = earlier.seq == later.seq and not earlier.made
            assert same or later.end > earlier.begin, f"{later} ended before {earlier} began"


class RaceContract:
    """Tests that every implementation must pass with any interleaving."""

    def test_p5_racing_appends_are_linearizable(self, log: Log) -> None:
        """For appends with right and stale expectations and reads of the head, one order explains every result."""
        clock = itertools.count()
        history: list[Seen] = []
        sizes = {0: 0}

        def work(number: int) -> None:
            chance = random.Random(number)
            drafts = Drafts(NOW + number * SECOND)
            for _ in range(25):
                begin = next(clock)
                seq = log.head("sam").seq
                history.append(Seen(begin, next(clock), seq, made=False))
                mine = drafts.some(chance.randint(1, 3))
                begin = next(clock)
                try:
                    commit = log.append("sam", max(0, seq - chance.choice([0, 0, 0, 1])), mine)
                except WrongSequence as error:
                    history.append(Seen(begin, next(clock), error.actual, made=False))
                else:
                    history.append(Seen(begin, next(clock), commit.records[-1].seq, made=True))
                    sizes[commit.records[-1].seq] = len(commit.records)

        together([lambda n=number: work(n) for number in range(THREADS)])
        assert_linearizable(history)
        assert {seen.seq for seen in history} <= sizes.keys(), "somebody saw half a commit"
        assert sum(sizes.values()) == log.head("sam").seq == len(list(log.read("sam")))

    def test_p5_a_reader_never_sees_half_a_commit(self, store: Store, log: Log, drafts: Drafts) -> None:
        """While commits of three records are appended, every read returns whole commits, and never fewer than the read
        before.
        """
        done = threading.Event()

        def write() -> None:
            try:
                for number in range(60):
                    log.append("sam", 3 * number, drafts.some(3))
            finally:
                done.set()

        def read() -> None:
            rows = 0
            while not done.is_set():
                commits = store.reader("sam").table().column("commit").to_pylist()
                assert commits == [number for number in range(1, len(commits) // 3 + 1) for _ in range(3)]
                assert len(commits) >= rows
                rows = len(commits)

        together([write, read])

    def test_p6_the_same_append_from_many_threads_is_one_commit(self, log: Log, drafts: Drafts) -> None:
        """A repeat may be faster than the first append: all callers get the same commit, and one of them as new."""
        for number in range(5):
            mine = drafts.some(2)
            commits: list[Commit] = []

            def send(mine: list[Draft] = mine, seq: int = 2 * number, commits: list[Commit] = commits) -> None:
                commits.append(log.append("sam", seq, mine))

            together([send] * THREADS)
            assert {commit.number for commit in commits} == {number + 1}
            assert sorted(commit.repeated for commit in commits) == [False] + [True] * (THREADS - 1)
        assert log.head("sam").seq == 10

    def test_p6_the_log_is_the_ids_in_the_order_first_seen(self, log: Log, drafts: Drafts) -> None:
        """An append that is repeated any number of times has its records in the log once, at their first place."""
        chance = random.Random(6)
        appends = [("sam" if chance.random() < 0.6 else "ann", drafts.some(chance.randint(1, 3))) for _ in range(20)]
        first_seen: list[list[Draft]] = []
        for _ in range(80):
            agent_id, mine = chance.choice(appends)
            commit = log.append(agent_id, log.head(agent_id).seq, mine)
            assert commit.repeated == (mine in first_seen)
            if not commit.repeated:
                first_seen.append(mine)
            assert commit.number == first_seen.index(mine) + 1
        everything = [record.event_id for mine in first_seen for record in mine]
        kept = {(record.commit, record.seq): record.event_id for name in ("sam", "ann") for record in log.read(name)}
        assert [kept[place] for place in sorted(kept)] == everything

    def test_p7_of_appends_that_race_with_a_take_over_none_is_lost(self, store: Store, log: Log) -> None:
        """The new owner has all records that the old owner acknowledged, and all threads end."""
        acknowledged: dict[str, list[str]] = {}
        working = threading.Semaphore(0)

        def work(name: str) -> None:
            drafts = Drafts(NOW + int(name[-1]) * SECOND)
            acknowledged[name] = []
            for seq in itertools.count():
                try:
                    commit = log.append(name, seq, drafts.some(1))
                except Fenced:
                    return
                acknowledged[name] += [record.event_id for record in commit.records]
                working.release()

        names = [f"agent {number}" for number in range(4)]
        second: list[Log] = []

        def take_over() -> None:
            for _ in range(10 * len(names)):
                working.acquire()
            second.append(store.open("sam", "second", take_over=True))

        together([*(lambda n=name: work(n) for name in names), take_over])
        for name in names:
            found = [record.event_id for record in second[0].read(name)]
            assert found[: len(acknowledged[name])] == acknowledged[name]
            assert len(found) <= len(acknowledged[name]) + 1, "more than one append of a thread was never acknowledged"

    def test_p8_threads_leave_an_order_without_gaps(self, store: Store, log: Log) -> None:
        """Each thread's events are in the log once and in order, seqs and commits have no gap, and all readers read the
        same.
        """
        sent: dict[str, list[str]] = {}

        def work(number: int) -> None:
            drafts = Drafts(NOW + number * SECOND)
            mine = sent.setdefault(f"agent {number}", [])
            for _ in range(20):
                one = drafts.some(1)
                group = [
                    Append(f"agent {number}", len(mine), one),
                    Append(f"shadow {number}", len(mine), drafts.some(1)),
                ]
                log.append_group(group)
                mine += [draft.event_id for draft in one]

        together([lambda n=number: work(n) for number in range(THREADS)])
        for name, ids in sent.items():
            assert [(record.seq, record.event_id) for record in log.read(name)] == list(enumerate(ids, 1))
        table = log.table()
        assert table.column("commit").to_pylist() == list(range(1, 40 * THREADS + 1))
        assert store.reader("sam").table().equals(table)
