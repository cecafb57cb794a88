"""Laws of records that wait for the next query, and of the two ways in which they are inserted."""

from collections.abc import Callable

import duckdb
import msgspec
import pytest

from everlog.events import Record
from everlog.projections import Projections
from everlog.projections.hot.record_insert import RecordInsert
from everlog.projections.projection_constants import FEW_RECORDS, PENDING_BYTES_MAX
from tests.laws.test_projections import BIRTH, STREAMS, place_again, small_life
from tests.support import event_strategies
from tests.support.law import law

LIFE = small_life()
TURN = [record for record in LIFE if record.turn == LIFE[-1].turn]


def filled() -> Projections:
    """Return an engine with all records of an agent but those of its last turn."""
    made = Projections()
    made.add(LIFE[: -len(TURN)])
    made.rows("standing", "sam")
    return made


def test_commits_between_two_queries_are_one_insert(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that change no older row are inserted together by the next query, which sees all of them."""
    inserts: list[RecordInsert] = []
    run: Callable[[RecordInsert], None] = RecordInsert.run
    monkeypatch.setattr(RecordInsert, "run", lambda insert: (inserts.append(insert), run(insert)))
    with filled() as made:
        before = len(inserts)
        for record in TURN:
            made.add([record])
        assert (len(inserts) - before, made.pending) == (0, {"sam"})
        assert made.rows("standing", "sam")[0]["head"] == LIFE[-1].seq
        assert (len(inserts) - before, made.pending) == (1, set())


def test_long_records_do_not_wait() -> None:
    """Records of many bytes are inserted without a query, so that those that wait take little memory."""
    with filled() as made:
        made.add([msgspec.structs.replace(TURN[0], text="a" * (PENDING_BYTES_MAX // 2))])
        assert made.pending == {"sam"}
        made.add([msgspec.structs.replace(TURN[1], text="a" * (PENDING_BYTES_MAX // 2))])
        assert made.pending == set()


def test_an_agent_that_is_forgotten_leaves_no_waiting_record() -> None:
    """Records of a forgotten agent are not inserted later; those of others are."""
    with filled() as made:
        made.add(TURN)
        made.add([place_again(LIFE[0], "ann")])
        made.forget("sam")
        assert not made.rows("standing", "sam")
        assert made.rows("standing", "ann")[0]["head"] == 1


def test_records_whose_insert_failed_wait_and_each_query_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """No query answers without the records that could not be inserted; when the fault is over they are there."""

    def fail(_: RecordInsert) -> None:
        raise duckdb.OutOfMemoryException("no room")

    with filled() as made:
        made.add(TURN)
        with monkeypatch.context() as broken:
            broken.setattr(RecordInsert, "run", fail)
            for _ in range(2):
                with pytest.raises(duckdb.OutOfMemoryException):
                    made.rows("standing", "sam")
        assert made.rows("standing", "sam")[0]["head"] == LIFE[-1].seq


@law(STREAMS | event_strategies.lives(BIRTH), few=2, many=60)
def test_both_ways_of_inserting_give_the_same_rows(records: list[Record]) -> None:
    """Records that are read from the function and from Arrow make the same rows of `records`, also after the macros
    of people's queries were made.
    """
    found = []
    for few, asked in ((0, False), (FEW_RECORDS, False), (FEW_RECORDS, True)):
        with pytest.MonkeyPatch.context() as patch, Projections() as made:
            patch.setattr(made._hot.insert, "_few", few)
            if asked:
                made.sql("SELECT 1")
            for record in records:
                made.add([record])
            found.append(
                made.query("SELECT * EXCLUDE (event_id, cause), event_id::VARCHAR AS id FROM records ORDER BY seq")
            )
    assert found[0] == found[1] == found[2]
