"""Checkpoints and chain marks in files: their positions, their loss, and their erasure."""

from collections.abc import Iterator
from unittest.mock import patch

import pyarrow as pa
import pytest
from msgspec.structs import replace

from everlog.store import FileStore, Partition, check
from everlog.store.partition.manifest import load, succeed
from everlog.store.sealed.parquet_file import save
from everlog.store.sealed.sealed_reader import checkpoints_in
from tests.contract.log_contract import Drafts
from tests.contract.moment_contract import Tally, assert_moments
from tests.contract.seal_contract import erasing, saying

CANARY = b"the canary"


@pytest.fixture(autouse=True)
def close() -> Iterator[None]:
    """Use checkpoint intervals for short streams."""
    with patch.multiple("everlog.store.sealed.checkpoints", CHECKPOINT_RECORDS=4, MARK_RECORDS=2):
        yield


def fill(store: FileStore, drafts: Drafts, rounds: int) -> None:
    log = store.open("sam", "fill")
    for _ in range(rounds):
        for agent_id in ("ann", "sam"):
            log.append(agent_id, log.head(agent_id).seq, saying(drafts, 3))
    log.seal(Tally())
    log.close()


@pytest.mark.parametrize(
    "sealed",
    [
        (10, 1, 1, 4, 1),
        pytest.param((10, 1, 1, 1, 1, 1, 1, 4, 20, 1, 1, 1, 1), marks=[pytest.mark.long, pytest.mark.storage]),
    ],
    ids=["short", "long"],
)
def test_a_long_stream_has_a_state_near_every_moment_however_it_was_sealed(
    store: FileStore, where: Partition, drafts: Drafts, sealed: tuple[int, ...]
) -> None:
    """Sealed at once, step by step, or merged: no moment is further than three intervals from the state before it."""
    for rounds in sealed:
        fill(store, drafts, rounds)
        for agent_id in ("sam", "ann"):
            assert_moments(store.reader("sam"), agent_id)
    reader = store.reader("sam")
    for seq in range(12, reader.head("sam").seq):
        state = reader.state("sam", Tally.maker, seq)
        assert state is not None and seq - state.seq < 12
    marks = [seq for entry in load(where).files for seq, _ in entry.marks.get("sam", [])]
    assert marks == sorted(set(marks)) and len(marks) >= reader.head("sam").seq // 4
    assert check(where, deep=True, derive=Tally()).ok


def test_checkpoints_are_losable(store: FileStore, where: Partition, drafts: Drafts) -> None:
    """Checkpoints that are damaged, missing or of another maker are skipped; the check notes them, and every read is
    unchanged.
    """
    fill(store, drafts, 10)
    reader = store.reader("sam")
    assert reader.state("sam", Tally.maker, 12) is not None
    assert reader.state("sam", "another", 12) is None
    (path,) = where.path.glob("*.checkpoints")
    content = path.read_bytes()
    path.write_bytes(content[:-40] + bytes(40))
    assert reader.state("sam", Tally.maker, 12) is None
    report = check(where)
    assert report.ok and any(str(path) in note for note in report.notes)
    path.unlink()
    assert_moments(reader)
    assert reader.state("sam", Tally.maker, 12) is None
    fill(store, drafts, 10)
    assert_moments(store.reader("sam"))
    state = store.reader("sam").state("sam", Tally.maker, 12)
    assert state is not None and state.seq == 12


def test_the_deep_check_makes_every_checkpoint_again(store: FileStore, where: Partition, drafts: Drafts) -> None:
    """A checkpoint that differs from its records is an error that names the agent and the seq."""
    fill(store, drafts, 10)
    assert check(where, deep=True, derive=Tally()).ok
    manifest = load(where)
    (entry,) = [entry for entry in manifest.files if entry.checkpoints is not None]
    rows = checkpoints_in(where, entry, Tally.maker)
    assert rows is not None
    wrong = rows.set_column(rows.column_names.index("said"), "said", pa.array(["no"] * rows.num_rows))
    saved, _ = save(where, "000000000001-000000000020-e000009-000009.checkpoints", wrong, Tally.maker)
    forged = [replace(e, checkpoints=saved) if e.name == entry.name else e for e in manifest.files]
    assert succeed(where, manifest, manifest.epoch, forged) is not None
    report = check(where, deep=True, derive=Tally())
    assert not report.ok and "'ann' at seq 4" in report.errors[0]


def test_p18_no_checkpoint_quotes_what_was_erased(store: FileStore, where: Partition, drafts: Drafts) -> None:
    """After an erasure no file has the words; checkpoints of other agents stay, and the chain is unchanged."""
    fill(store, drafts, 10)
    fill(store, drafts, 3)
    log = store.open("sam", "erase")
    chains = [log.chain("sam", seq) for seq in range(log.head("sam").seq)]
    log.append("sam", log.head("sam").seq, [erasing(1, log.head("sam").seq)])
    log.seal(Tally())
    assert [log.chain("sam", seq) for seq in range(len(chains))] == chains
    for agent_id in ("sam", "ann"):
        assert_moments(log, agent_id)
    assert log.state("ann", Tally.maker, 12) is not None
    for seq in range(1, len(chains)):
        state = log.state("sam", Tally.maker, seq)
        assert state is None or state.rows.column("said").to_pylist() == [None]
    log.close()


def test_files_that_no_manifest_names_are_swept(store: FileStore, where: Partition, drafts: Drafts) -> None:
    """A file of checkpoints that was replaced, or left by a dead owner, is removed like other unnamed files."""
    for rounds in (10, 10, 10):
        fill(store, drafts, rounds)
    (where.path / "000000000001-000000000009-e000001-000002.checkpoints").write_bytes(CANARY)
    fill(store, drafts, 1)
    named = load(where).names()
    assert {path.name for path in where.path.glob("*.checkpoints")} == {n for n in named if n.endswith(".checkpoints")}
