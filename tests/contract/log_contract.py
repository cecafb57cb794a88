"""The contract of the log (P5 to P9, P18, P19, and reads), as a suite for any implementation.

To test a new backend, write a test file in this folder and run `pytest tests/contract`:

    class TestMyLog(LogContract):
        @pytest.fixture
        def store(self) -> Store:                                   # empty, and new for each test
            return MyStore()

        def stand_at(self, store, agent_id, seq, commit) -> None:   # so that no test must append 2**32 times
            ...

This suite does not depend on files; `test_logs.py` runs it for the logs that everlog ships. P5 is tested here, P5 to P8
under threads in `race_contract.py`, P9 in `width_contract.py`, P18 and P19 in `seal_contract.py`, and reads of any
moment in `moment_contract.py`. Properties that no caller can see (P1 to P4: the log after a crash; P10: a disk that
fails) are tested by code that knows the backend, in `tests/store` for files.
"""

import threading

import pyarrow as pa
import pytest

from everlog.events import (
    GENESIS,
    BadInput,
    Draft,
    DuplicateId,
    Fenced,
    PartitionBusy,
    StaleId,
    StoreError,
    UnknownAgent,
    WrongSequence,
    extend,
    uuid7,
)
from everlog.store import APPEND_BYTES_MAX, SCHEMA, Append, Commit, Log, Store
from tests.contract.draft_builders import DAY, NOW, Drafts, content
from tests.contract.moment_contract import MomentContract
from tests.contract.race_contract import RaceContract
from tests.contract.seal_contract import SealContract
from tests.contract.width_contract import WidthContract

__all__ = ["DAY", "NOW", "Drafts", "LogContract", "content"]


class LogContract(RaceContract, WidthContract, SealContract, MomentContract):
    """Tests that every implementation of the log must pass."""

    @pytest.fixture
    def drafts(self) -> Drafts:
        return Drafts()

    @pytest.fixture
    def log(self, store: Store) -> Log:
        store.register("sam")
        return store.open("sam", "test")

    def test_p5_an_append_becomes_one_commit(self, log: Log, drafts: Drafts) -> None:
        """All drafts of an append are in the log, in order, as one commit."""
        commit = log.append("sam", 0, drafts.some(3))
        assert [record.seq for record in commit.records] == [1, 2, 3]
        assert {record.commit for record in commit.records} == {commit.number} == {1}
        assert list(log.read("sam")) == list(commit.records)
        assert not commit.repeated

    @pytest.mark.parametrize("expected", [0, 1, 3, 2**62])
    def test_p5_a_wrong_sequence_names_the_actual_one(self, log: Log, drafts: Drafts, expected: int) -> None:
        """An append with a wrong expected head writes nothing, and the error has the actual head."""
        log.append("sam", 0, drafts.some(2))
        with pytest.raises(WrongSequence) as caught:
            log.append("sam", expected, drafts.some(2))
        assert (caught.value.expected, caught.value.actual) == (expected, 2)
        assert len(list(log.read("sam"))) == 2

    def test_p5_threads_that_race_for_a_seq_have_one_winner(self, log: Log, drafts: Drafts) -> None:
        """Of many threads that expect the same head exactly one is acknowledged."""
        outcomes: list[bool] = []
        pairs = [drafts.some(2) for _ in range(8)]

        def race(mine: list[Draft]) -> None:
            try:
                log.append("sam", 0, mine)
                outcomes.append(True)
            except WrongSequence:
                outcomes.append(False)

        threads = [threading.Thread(target=race, args=(pair,)) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == [False] * 7 + [True]
        assert log.head("sam").seq == 2

    def test_p5_a_group_accepts_and_refuses_each_append_by_itself(self, log: Log, drafts: Drafts) -> None:
        """In a group, a later append may follow an earlier one, and a refused append does not affect the others."""
        first, second = drafts.some(2), drafts.some(1)
        results = log.append_group(
            [
                Append("sam", 0, first),
                Append("sam", 2, second),
                Append("sam", 2, drafts.some(1)),
                Append("ann", 0, drafts.some(1)),
                Append("sam", 0, first),
            ]
        )
        assert [type(result) for result in results] == [Commit, Commit, WrongSequence, Commit, Commit]
        commits = [result for result in results if isinstance(result, Commit)]
        assert [commit.number for commit in commits] == [1, 2, 3, 1]
        assert [commit.repeated for commit in commits] == [False, False, False, True]
        assert (log.head("sam").seq, log.head("ann").seq) == (3, 1)

    def test_p6_the_same_append_again_returns_the_first_commit(self, log: Log, drafts: Drafts) -> None:
        """A repeated append, even with a stale expected_seq and another recorded_at, writes nothing and returns the
        first commit.
        """
        first = drafts.some(2)
        commit = log.append("sam", 0, first)
        log.append("sam", 2, drafts.some(1))
        again = log.append("sam", 7, first)
        assert (again.number, list(again.records), again.repeated) == (commit.number, list(commit.records), True)
        assert log.head("sam").seq == 3

    def test_p6_a_part_of_a_commit_again_is_an_error(self, log: Log, drafts: Drafts) -> None:
        """An append with known and new ids, with a part of a commit's ids, or for another agent raises DuplicateId."""
        first = drafts.some(2)
        log.append("sam", 0, first)
        for agent_id, mixed in [
            ("sam", [*first, drafts.one()]),
            ("sam", [first[1], drafts.one()]),
            ("sam", first[:1]),
            ("sam", first[::-1]),
            ("ann", first),
        ]:
            with pytest.raises(DuplicateId):
                log.append(agent_id, log.head(agent_id).seq, mixed)
        assert log.head("sam").seq == 2

    @pytest.mark.parametrize(
        "change", [{"text": "other"}, {"payload": '{"a":1}'}, {"said_at": 1}, {"type": "x"}, {"version": 2}]
    )
    def test_p6_other_content_under_a_known_id_is_an_error(
        self, log: Log, drafts: Drafts, change: dict[str, object]
    ) -> None:
        """A known id with another content is refused."""
        first = drafts.one()
        log.append("sam", 0, [first])
        with pytest.raises(DuplicateId):
            log.append("sam", 1, [drafts.one(**{"event_id": first.event_id, **change})])  # type: ignore[arg-type]
        assert log.head("sam").seq == 1

    def test_p6_an_id_older_than_the_memory_is_stale(self, log: Log, drafts: Drafts) -> None:
        """An unknown id from more than 24 hours before the record's time is refused; a slightly younger id is
        accepted.
        """
        with pytest.raises(StaleId):
            log.append("sam", 0, [drafts.one(event_id=uuid7(NOW - DAY - 1000, 1))])
        log.append("sam", 0, [drafts.one(event_id=uuid7(NOW - DAY, 1))])

    @pytest.mark.parametrize(
        "event_id",
        ["", "x", "018bcfe5-6800-4000-8000-000000000001", "018BCFE5-6800-7000-8000-00000000000A", "+" * 36],
    )
    def test_p6_an_id_that_is_no_uuidv7_is_refused(self, log: Log, drafts: Drafts, event_id: str) -> None:
        """An id must be a UUIDv7 in the lower-case form of 36 characters."""
        with pytest.raises(BadInput):
            log.append("sam", 0, [drafts.one(event_id=event_id)])

    def test_p6_an_append_with_an_id_twice_is_refused(self, log: Log, drafts: Drafts) -> None:
        """One append cannot hold an id twice."""
        one = drafts.one()
        with pytest.raises(BadInput):
            log.append("sam", 0, [one, one])

    def test_p7_an_open_partition_is_busy(self, store: Store, log: Log) -> None:
        """A second owner is refused, with the first owner's name, until the first has closed the partition."""
        with pytest.raises(PartitionBusy, match=r"test.*--take-over"):
            store.open("sam", "second")
        log.close()
        log.close()
        assert store.open("sam", "second").epoch == log.epoch + 1

    def test_p7_a_taken_over_writer_is_never_acknowledged_again(self, store: Store, log: Log, drafts: Drafts) -> None:
        """After a take-over the old writer gets Fenced for every append, and the new one has all acknowledged
        records.
        """
        log.append("sam", 0, drafts.some(2))
        second = store.open("sam", "second", take_over=True)
        assert second.head("sam") == log.head("sam")
        for _ in range(2):
            with pytest.raises(Fenced):
                log.append("sam", 2, drafts.some(1))
        second.append("sam", 2, [drafts.one("mine")])
        assert [record.text for record in store.reader("sam").read("sam")] == ["word 0", "word 1", "mine"]

    def test_p8_streams_and_commits_have_no_gaps(self, log: Log, drafts: Drafts) -> None:
        """Seqs run from 1 in each stream and commits from 1 in the partition, also after refused appends."""
        for agent_id in ["a", "b", "a", "c", "b"]:
            log.append(agent_id, log.head(agent_id).seq, drafts.some(2))
            with pytest.raises(WrongSequence):
                log.append(agent_id, 99, drafts.some(1))
        assert log.table().column("commit").to_pylist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
        assert [record.seq for record in log.read("a")] == [1, 2, 3, 4]
        assert log.agents() == ["a", "b", "c"]

    def test_p8_the_head_is_the_chain_of_what_is_read(self, store: Store, log: Log, drafts: Drafts) -> None:
        """Writer and reader return the same head: the last seq, and the chain over every record."""
        assert log.head("sam").chain == GENESIS
        log.append("sam", 0, drafts.some(2))
        log.append("sam", 2, drafts.some(1))
        chain = GENESIS
        for record in log.read("sam"):
            chain = extend(chain, record)
        assert (log.head("sam").seq, log.head("sam").chain) == (3, chain)
        assert store.reader("sam").head("sam") == log.head("sam")
        assert store.reader("sam").head("nobody").seq == 0

    def test_p8_a_read_is_bounded_on_both_sides(self, log: Log, drafts: Drafts) -> None:
        """from_seq and to_seq are inclusive; beyond the head there are no records."""
        log.append("sam", 0, drafts.some(3))
        log.append("sam", 3, drafts.some(3))
        for start, end, expected in [(1, None, [1, 2, 3, 4, 5, 6]), (2, 4, [2, 3, 4]), (5, 99, [5, 6]), (7, None, [])]:
            assert [record.seq for record in log.read("sam", start, end)] == expected

    def test_p8_a_table_has_the_envelope_as_its_schema(self, log: Log, drafts: Drafts) -> None:
        """A table has the log's schema even when it is empty, and holds one agent or all."""
        assert log.table().schema == SCHEMA and log.table("sam").num_rows == 0
        log.append("sam", 0, drafts.some(2))
        log.append("ann", 0, drafts.some(1))
        assert log.table().schema == SCHEMA and log.table().num_rows == 3
        assert isinstance(log.table("ann"), pa.Table) and log.table("ann").column("agent_id").to_pylist() == ["ann"]

    def test_p9_every_field_comes_back_as_it_was(self, log: Log, drafts: Drafts) -> None:
        """The widest numbers, empty, null, long and foreign text, NUL and quotes are read back unchanged."""
        wide = drafts.one("\0\"'\\ Ünïcode 🦉\n", '{"k":"\\u0000"}', turn=2**63 - 1, step=2**31 - 1, version=2**31 - 1,
                          said_at=-(2**62), cause=uuid7(1, 1), type="ü" * 300)  # fmt: skip
        odd = [wide, drafts.one(None), drafts.one(""), drafts.one("x" * 3_000_000, recorded_at=2**40)]
        commit = log.append("sam", 0, odd)
        read = list(log.read("sam"))
        assert read == list(commit.records)
        for record, draft in zip(read, odd, strict=True):
            assert (record.text, record.turn, record.said_at) == (draft.text, draft.turn, draft.said_at)
            assert (record.cause, record.event_id, record.type) == (draft.cause, draft.event_id, draft.type)

    @pytest.mark.parametrize(
        "change",
        [{"turn": 2**63}, {"turn": -1}, {"step": 2**31}, {"version": 0}, {"recorded_at": 2**63}, {"text": "\ud800"},
         {"cause": "no id"}, {"payload": None}, {"step": 1.5}],
    )  # fmt: skip
    def test_p9_what_cannot_be_kept_is_refused(self, log: Log, drafts: Drafts, change: dict[str, object]) -> None:
        """A field with a value that no record can have raises BadInput, and the writer continues."""
        with pytest.raises(BadInput):
            log.append("sam", 0, [drafts.one(**change)])  # type: ignore[arg-type]
        with pytest.raises(BadInput):
            good = Append("sam", 0, drafts.some(1))
            bad = Append("sam", 1, [drafts.one(**change)])  # type: ignore[arg-type]
            log.append_group([good, bad])
        assert log.append("sam", 0, drafts.some(1)).number == 1

    def test_p9_an_empty_or_too_large_append_is_refused(self, log: Log, drafts: Drafts) -> None:
        """A commit has at least one event and at most APPEND_BYTES_MAX bytes of text and payload."""
        with pytest.raises(BadInput):
            log.append("sam", 0, [])
        with pytest.raises(BadInput):
            log.append("sam", 0, [drafts.one("x" * (APPEND_BYTES_MAX - 1))])
        with pytest.raises(BadInput):
            log.append("sam", -1, drafts.some(1))

    @pytest.mark.parametrize("name", ["a/../b", "..", ".", "é" * 127 + "x", "x" * 255, "\n", "\0", "🦉", " ", "CON"])
    def test_p9_any_name_of_1_to_255_bytes_is_an_agent(self, store: Store, drafts: Drafts, name: str) -> None:
        """A name with any characters can be registered, written, read and listed."""
        assert store.register(name) and not store.register(name)
        store.open(name, "test").append(name, 0, drafts.some(1))
        assert content(list(store.reader(name).read(name))) == [(name, 1, "word 0")]
        assert store.agents() == [name]

    @pytest.mark.parametrize("name", ["", "x" * 256, "é" * 128, "\ud800"])
    def test_p9_an_impossible_name_is_refused(self, store: Store, name: str) -> None:
        """A name of no bytes, of more than 255, or with half a character raises BadInput."""
        with pytest.raises(BadInput):
            store.register(name)

    def test_p9_names_are_compared_in_nfc(self, store: Store, drafts: Drafts) -> None:
        """Two Unicode spellings of one name are one agent."""
        assert store.register("é") and not store.register("e\u0301")
        log = store.open("e\u0301", "test")
        log.append("e\u0301", 0, drafts.some(1))
        assert log.agents() == ["é"] == store.agents()
        assert log.head("é") == log.head("e\u0301")
        assert len(list(log.read("e\u0301"))) == len(list(log.read("é"))) == 1

    def test_an_unknown_agent_is_named_with_those_near(self, store: Store) -> None:
        """Opening an unregistered name raises UnknownAgent with similar names."""
        store.register("samantha")
        for ask in (store.reader, lambda name: store.open(name, "test")):
            with pytest.raises(UnknownAgent, match="samantha"):
                ask("samanta")

    def test_a_closed_log_refuses_and_can_be_opened_again(self, store: Store, log: Log, drafts: Drafts) -> None:
        """A closed log refuses appends; the next owner continues after the last record and knows its ids."""
        first = drafts.some(2)
        log.append("sam", 0, first)
        log.close()
        with pytest.raises(StoreError):
            log.append("sam", 2, drafts.some(1))
        after = store.open("sam", "test")
        assert after.append("sam", 0, first).repeated
        assert after.append("sam", 2, drafts.some(1)).number == 2
