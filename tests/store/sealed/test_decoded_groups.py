"""A reader that keeps decoded row groups reads what any reader reads, decodes less, and keeps few of them."""

import random
from pathlib import Path
from typing import Any

import pytest

from everlog.events import CorruptLog
from everlog.store import FileStore, LogReader, keeping_decoded_groups
from everlog.store.sealed import parquet_file
from tests.contract.log_contract import Drafts
from tests.store.conftest import now
from tests.store.log.test_shared_reads import NAMES, group, shared
from tests.store.sealed.test_seal_pass import Counting
from tests.support.seeds import split

MAKER = Counting().maker


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Make row groups small, and return the number and the rows of each that is decoded, as it happens."""
    found: list[tuple[int, int]] = []

    def counted(real: Any) -> Any:
        def decode(self: Any, number: int, *args: Any) -> Any:
            table = real(self, number, *args)
            found.append((number, table.num_rows))
            return table

        return decode

    monkeypatch.setattr(parquet_file, "ROW_GROUP_ROWS", 8)
    monkeypatch.setattr(parquet_file, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(parquet_file._Source, "_decoded", counted(parquet_file._Source._decoded))
    return found


def sealed(folder: Path, chance: random.Random, groups: int) -> LogReader:
    """Return a reader of a shard whose records are in several sealed files, and the last of them in none."""
    log, drafts = shared(folder), Drafts()
    for number in range(groups):
        group(log, chance.choices(NAMES, k=chance.randint(1, 6)), drafts, chance.randint(1, 3))
        if number % 15 == 14:
            log.seal(Counting())
    log.close()
    return FileStore(folder, now).reader("sam")


def ask(reader: LogReader, question: tuple[str, str, int, int]) -> Any:
    """Return what a reader says."""
    kind, name, start, end = question
    if kind == "read":
        return list(reader.read(name, start, end or None))
    if kind == "events":
        return list(reader.events(name, start, end or None))
    if kind == "table":
        return reader.table(name, start, end or None).to_pylist()
    if kind == "time":
        return reader.seq_at(name, now())
    found = reader.state(name, MAKER, end or None)
    return None if found is None else (found.seq, found.rows.to_pylist())


@pytest.mark.parametrize("seed", split(range(40), 2, label="decoded groups", part="storage"))
def test_what_is_kept_changes_no_answer(tmp_path: Path, decoded: list[tuple[int, int]], seed: int) -> None:
    """In any order of questions about any agents and moments, each answer is that of a reader that keeps nothing."""
    chance = random.Random(seed)
    reader = sealed(tmp_path, chance, 50)
    questions = []
    for _ in range(60):
        start = chance.randint(1, 30)
        end = chance.choice([0, start + chance.randint(0, 12)])
        questions.append(
            (chance.choice(["read", "events", "table", "time", "state"]), chance.choice(NAMES), start, end)
        )
    expected = [ask(reader, question) for question in questions]
    alone = len(decoded)
    with keeping_decoded_groups():
        assert [ask(reader, question) for question in questions] == expected
    assert len(decoded) - alone < alone


def test_a_row_group_is_decoded_once_and_further_when_more_of_it_is_needed(
    tmp_path: Path, decoded: list[tuple[int, int]]
) -> None:
    """The same records cost nothing a second time; later records of the group are decoded with those before; without
    the block, or after it, each question decodes.
    """
    log, drafts = shared(tmp_path), Drafts()
    for _ in range(4):
        group(log, ["sam"], drafts)
    log.seal(Counting())
    log.close()
    reader = FileStore(tmp_path, now).reader("sam")
    decoded.clear()  # the seal has read its file
    with keeping_decoded_groups():
        for _ in range(3):
            assert [record.seq for record in reader.read("sam", 1, 2)] == [1, 2]
        assert decoded == [(0, 3)]
        assert [record.seq for record in reader.read("sam", 1, 7)] == [*range(1, 8)]
        assert [record.seq for record in reader.read("sam", 2, 3)] == [2, 3]
        assert [record.seq for record in reader.read("sam")] == [*range(1, 9)]
        assert decoded == [(0, 3), (0, 8)]
    decoded.clear()
    for _ in range(2):
        assert len(list(reader.read("sam"))) == 8
    assert len(decoded) == 2


def test_few_row_groups_are_kept(tmp_path: Path, decoded: list[tuple[int, int]]) -> None:
    """Two of records and two of states stay in memory, of many that are read."""
    reader = sealed(tmp_path, random.Random(1), 60)
    with keeping_decoded_groups():
        for _ in range(2):
            for name in NAMES:
                assert list(reader.read(name))
                reader.state(name, MAKER)
        kept = parquet_file._kept.get()
        assert kept is not None and len(decoded) > 20
        assert len(kept.records._kept) == parquet_file.GROUPS_MAX >= len(kept.states._kept) > 0
    assert parquet_file._kept.get() is None


def test_damage_is_found_when_a_row_group_is_decoded(tmp_path: Path, decoded: list[tuple[int, int]]) -> None:
    """Row groups that were kept were verified; one that is decoded is verified then, inside the block too."""
    reader = sealed(tmp_path, random.Random(2), 15)
    (path,) = (tmp_path / "log" / "shard-000").glob("*.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with keeping_decoded_groups(), pytest.raises(CorruptLog, match=r"is damaged (between|after) byte"):
        for name in NAMES:
            list(reader.read(name))
