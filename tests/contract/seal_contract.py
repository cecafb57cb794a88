"""P18 and P19 of the contract: sealing does not change any read, and erasure leaves a tombstone only."""

import threading

import pytest

from everlog.events import (
    ERASED_PREFIX,
    GENESIS,
    BadInput,
    Draft,
    RecordsErased,
    digest,
    draft,
    extend,
    is_erased,
    uuid7,
)
from everlog.store import Log, LogReader, Store
from tests.contract.draft_builders import NOW, Drafts

CANARY = "the canary sings at dawn"


def erasing(from_seq: int, to_seq: int, number: int = 1) -> Draft:
    """Return a draft of the event that asks for an erasure."""
    event = RecordsErased(from_seq=from_seq, to_seq=to_seq)
    return draft(event, event_id=uuid7(NOW + 9_000_000, number), recorded_at=NOW, turn=0, step=0)


def saying(drafts: Drafts, count: int) -> list[Draft]:
    """Return drafts whose text is the canary."""
    return [drafts.one(text=f"{CANARY} {number}") for number in range(count)]


def all_reads(reader: LogReader) -> list[object]:
    """Return the results of all reads for two agents."""
    answers: list[object] = [reader.agents(), reader.table().to_pylist()]
    for agent_id in ("sam", "ann", "nobody"):
        answers += [
            reader.head(agent_id),
            list(reader.read(agent_id)),
            list(reader.read(agent_id, 3, 7)),
            reader.table(agent_id).to_pylist(),
            reader.table(agent_id, 5).to_pylist(),
        ]
    return answers


class SealContract:
    """Tests that every implementation must pass; sealing may have no effect."""

    def fill(self, log: Log, drafts: Drafts, rounds: int = 5) -> None:
        for _ in range(rounds):
            for agent_id in ("sam", "ann"):
                log.append(agent_id, log.head(agent_id).seq, saying(drafts, 2))

    def test_p19_reads_are_equal_before_and_after_sealing(self, store: Store, log: Log, drafts: Drafts) -> None:
        """After sealing, sealing again with more records, and opening again, every read returns the same records in the
        same order.
        """
        for rounds in (5, 1, 3):
            self.fill(log, drafts, rounds)
            before = all_reads(log)
            log.seal()
            assert log.unsealed_bytes == 0
            assert all_reads(log) == before
            assert all_reads(store.reader("sam")) == before
            log.seal()
        log.close()
        log = store.open("sam", "again")
        assert all_reads(log) == before
        log.close()

    def test_p19_sealing_nothing_is_nothing(self, log: Log) -> None:
        """An empty log can be sealed, and continues."""
        assert log.seal().files == 0
        assert log.append("sam", 0, Drafts().some(1)).number == 1

    def test_p19_appends_continue_while_the_log_is_sealed(self, log: Log, drafts: Drafts) -> None:
        """With a thread that seals all the time, no append fails and no record is missing or doubled."""
        done = threading.Event()

        def sealing() -> None:
            while not done.is_set():
                log.seal()

        thread = threading.Thread(target=sealing)
        thread.start()
        try:
            for seq in range(20):
                log.append("sam", seq, drafts.some(1))
                assert [record.seq for record in log.read("sam")] == list(range(1, seq + 2))
        finally:
            done.set()
            thread.join()

    def test_p6_a_repeat_is_known_after_sealing(self, store: Store, log: Log, drafts: Drafts) -> None:
        """Ids of sealed records are known to the writer that sealed them and to the next one."""
        mine = drafts.some(3)
        first = log.append("sam", 0, mine)
        log.append("sam", 3, drafts.some(1))
        log.seal()
        assert log.append("sam", 0, mine).records == first.records
        log.close()
        log = store.open("sam", "again")
        again = log.append("sam", 0, mine)
        assert (again.number, again.repeated) == (first.number, True)
        assert log.append("sam", 4, drafts.some(1)).number == 3
        log.close()

    @pytest.mark.parametrize("sealed_before", [False, True])
    @pytest.mark.parametrize(("from_seq", "to_seq"), [(1, 10), (4, 4), (3, 99)])
    def test_p18_what_is_erased_leaves_a_tombstone(
        self, log: Log, drafts: Drafts, sealed_before: bool, from_seq: int, to_seq: int
    ) -> None:
        """Text and payload are gone, all other fields stay; the chain and every other record are unchanged."""
        self.fill(log, drafts)
        if sealed_before:
            log.seal()
        was = list(log.read("sam"))
        others = list(log.read("ann"))
        log.append("sam", 10, [erasing(from_seq, to_seq)])
        head = log.head("sam")
        assert log.seal().erased == min(to_seq, 10) - from_seq + 1
        now = list(log.read("sam"))
        assert len(now) == 11
        for before, after in zip(was, now[:10], strict=True):
            if from_seq <= before.seq <= to_seq:
                assert is_erased(after.payload) and after.payload.startswith(ERASED_PREFIX)
                assert after.text is None
                assert digest(after) == digest(before)
                assert (after.seq, after.event_id, after.type) == (before.seq, before.event_id, before.type)
            else:
                assert after == before
        assert list(log.read("ann")) == others
        chain = GENESIS
        for record in now:
            chain = extend(chain, record)
        assert (log.head("sam"), chain) == (head, head.chain)

    def test_p18_erasing_twice_is_erasing_once(self, log: Log, drafts: Drafts) -> None:
        """An existing tombstone is not counted again and keeps its digest."""
        self.fill(log, drafts, 2)
        log.append("sam", 4, [erasing(1, 3)])
        assert log.seal().erased == 3
        once = list(log.read("sam", 1, 4))
        log.append("sam", 5, [erasing(1, 4, 2)])
        assert log.seal().erased == 1
        assert list(log.read("sam", 1, 3)) == once[:3]

    def test_p18_a_repeat_of_what_was_erased_writes_nothing(self, log: Log, drafts: Drafts) -> None:
        """A command that is repeated after its records were erased does not write them again."""
        mine = saying(drafts, 2)
        log.append("sam", 0, mine)
        log.append("sam", 2, [erasing(1, 2)])
        log.seal()
        again = log.append("sam", 0, mine)
        assert again.repeated and all(is_erased(record.payload) for record in again.records)
        assert log.head("sam").seq == 3

    def test_p18_an_erasure_that_was_not_carried_out_is_when_the_log_is_opened(
        self, store: Store, log: Log, drafts: Drafts
    ) -> None:
        """The recorded event is the intent: if an owner dies before it seals, the next owner carries the erasure
        out.
        """
        self.fill(log, drafts, 2)
        log.append("sam", 4, [erasing(2, 3)])
        log.close()
        log = store.open("sam", "next")
        log.seal()
        assert [is_erased(record.payload) for record in log.read("sam")] == [False, True, True, False, False]
        log.close()

    def test_p18_only_an_erasure_makes_tombstones(self, log: Log, drafts: Drafts) -> None:
        """A draft that looks like a tombstone is refused, because its digest could be false."""
        with pytest.raises(BadInput, match="tombstone"):
            log.append("sam", 0, [drafts.one(text=None, payload='{"erased":true,"digest":"00"}')])
        assert log.head("sam").seq == 0
