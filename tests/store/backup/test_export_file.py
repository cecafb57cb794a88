"""The file of an export: standard tools read it, and any damage is detected."""

import errno
import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import msgspec
import pyarrow.parquet as pq
import pytest

from everlog.events import BadInput, CorruptLog, NewerFormat, StoreError
from everlog.store import MemoryStore, partition_of
from everlog.store.backup.export_file import CHECKSUM, MARK, ExportReader, ExportWriter
from tests.contract.draft_builders import NOW, Drafts
from tests.store.conftest import now
from tests.store.streams.test_fork_reader import fork, say
from tests.support.store.export_helpers import save


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(2, now)


def test_other_tools_read_an_export_and_check_it(store: MemoryStore, tmp_path: Path) -> None:
    """DuckDB and pyarrow read the file under its own name; the checksum needs only hashlib."""
    say(store, "sam", Drafts(), 4)
    fork(store, "sam", 3, "tom")
    path = tmp_path / "tom.everlog"
    save(store, "tom", path)
    rows = duckdb.sql(f"SELECT agent_id, seq, type, text FROM read_parquet('{path}') ORDER BY seq").fetchall()
    assert [(row[0], row[1]) for row in rows] == [("sam", 1), ("sam", 2), ("sam", 3), ("tom", 4)]
    assert rows[3][2] == "agent_forked" and rows[0][3].startswith("sam said")
    ids = duckdb.sql(f"SELECT event_id::VARCHAR, epoch_us(recorded_at) FROM read_parquet('{path}') ORDER BY seq")
    assert ids.fetchall() == [(record.event_id, record.recorded_at) for record in store.reader("tom").read("tom")]
    assert pq.read_table(path).column("seq").to_pylist() == [1, 2, 3, 4]
    header = json.loads(pq.read_metadata(path).metadata[b"everlog"])
    assert [stream["agent_id"] for stream in header["streams"]] == ["sam", "tom"]


def test_what_the_page_says_of_the_file_is_so(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query and the check of docs/backup.md work exactly as printed; the check fails for a changed file."""
    say(store, "sam", Drafts(), 4)
    save(store, "sam", tmp_path / "sam.everlog")
    page = (Path(__file__).parents[3] / "docs" / "reference" / "export_file.md").read_text()
    (query,), (code,) = (re.findall(f"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("sql", "python"))
    monkeypatch.chdir(tmp_path)
    assert duckdb.sql(query).count("seq").fetchall() == [(4,)]
    exec(code)
    data = (tmp_path / "sam.everlog").read_bytes()
    (tmp_path / "sam.everlog").write_bytes(data.replace(b"sam", b"tim", 1))
    with pytest.raises(AssertionError):
        exec(code)


def forged(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file, and correct its checksum."""
    data = change(path.read_bytes())
    at = data.rindex(MARK) + len(MARK)
    bare = data[:at] + b"0" * 64 + data[at + 64 :]
    path.write_bytes(data[:at] + hashlib.sha256(bare).hexdigest().encode() + data[at + 64 :])


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Return an export of a fork."""
    store = MemoryStore(0, now)
    say(store, "sam", Drafts(), 20)
    fork(store, "sam", 10, "tom")
    say(store, "tom", Drafts(NOW + 5_000_000), 5)
    save(store, "tom", tmp_path / "tom.everlog")
    return tmp_path / "tom.everlog"


def refused(path: Path) -> Exception:
    """Return the error for a file that is not restored; check that no agent was added."""
    other = MemoryStore(0, now)
    with pytest.raises((CorruptLog, BadInput)) as caught:
        other.restore(path)
    assert other.agents() == []
    return caught.value


def test_any_flipped_bit_is_found(exported: Path) -> None:
    """A flipped bit is detected anywhere, including the first and last bytes and every bit of the last bytes of the
    footer.
    """
    whole = exported.read_bytes()
    chance = random.Random(7)
    bits = {chance.randrange(8 * len(whole)) for _ in range(600)}
    bits.update(range(32), range(8 * (len(whole) - 40), 8 * len(whole)))
    at = 8 * whole.rindex(CHECKSUM.encode())
    bits.update(range(at, at + 8 * (len(MARK) + 64)))
    for bit in sorted(bits):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        exported.write_bytes(data)
        assert isinstance(refused(exported), CorruptLog), bit
    exported.write_bytes(whole)
    assert MemoryStore(0, now).restore(exported).written == 16


def test_a_file_that_was_cut_short_is_found(exported: Path) -> None:
    whole = exported.read_bytes()
    for length in (*range(0, len(whole), 97), *range(len(whole) - 20, len(whole))):
        exported.write_bytes(whole[:length])
        assert isinstance(refused(exported), CorruptLog) or length < 4
    exported.write_bytes(whole + b"more")
    assert "damaged" in str(refused(exported))


def test_a_file_that_is_no_export_is_reported_so(tmp_path: Path) -> None:
    path = tmp_path / "x.everlog"
    with pytest.raises(BadInput, match="There is no file"):
        MemoryStore().restore(path)
    for content in (b"", b"hello", b"\0" * 1000):
        path.write_bytes(content)
        assert "no export of everlog" in str(refused(path))
    duckdb.sql(f"COPY (SELECT 1 AS one) TO '{path}' (FORMAT parquet)")
    assert "Parquet, but no export" in str(refused(path))
    with pytest.raises(StoreError, match="cannot be read"):
        MemoryStore().restore(tmp_path)


def test_a_newer_format_is_refused_as_such(exported: Path) -> None:
    forged(exported, lambda data: data.replace(b'{"format":1,', b'{"format":2,'))
    with pytest.raises(NewerFormat, match="has format 2, but this everlog knows formats up to 1"):
        MemoryStore().restore(exported)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"to_seq":16', b'"to_seq":15', "records are missing"),
        (b'"to_seq":16', b'"to_seq":17', "records are missing"),
        (b'"parent_seq":10', b'"parent_seq":11', "are not in the export"),
        (b'"parent":"sam"', b'"parent":"tim"', "are not in the export"),
        (b'"agent_id":"tom","store_id"', b'"agent_id":"tim","store_id"', "no records of 'tim'"),
        (b'"agent_id":"sam"', b'"agent_id":"tim"', "header does not name"),
        (b'"streams":[', b'"streamz":[', "header cannot be read"),
        (b'"chain":"', b'"chain":_', "header cannot be read"),
        (b'"erased":0}]', b'"chain":""}]', "records are missing"),
    ],
)
def test_a_header_that_does_not_fit_its_records_is_damage(exported: Path, old: bytes, new: bytes, said: str) -> None:
    """Even with a right checksum, the chain of each stream and its seqs are checked against the records."""
    whole = exported.read_bytes()
    assert old in whole
    forged(exported, lambda data: data.replace(old, new, 1))
    error = refused(exported)
    assert isinstance(error, CorruptLog)
    assert said in str(error)


def test_a_file_that_is_there_is_not_overwritten_unasked(store: MemoryStore, tmp_path: Path) -> None:
    say(store, "sam", Drafts(), 1)
    path = tmp_path / "sam.everlog"
    path.write_text("mine")
    with pytest.raises(BadInput, match="--force"):
        save(store, "sam", path)
    assert path.read_text() == "mine"
    save(store, "sam", path, replace=True)
    assert ExportReader(path).contents.records == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["sam.everlog"]


def without_links(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_was_made_meanwhile_is_not_overwritten_unasked(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """A file that appears during the export is kept, and the export leaves no other file. The same holds on a disk
    without hard links, such as many removable disks.
    """
    say(store, "sam", Drafts(), 2)
    path = tmp_path / "sam.everlog"
    if not links:
        monkeypatch.setattr("os.link", without_links)
    save(store, "sam", path)
    assert path.read_bytes().startswith(b"PAR1") and list(tmp_path.iterdir()) == [path]
    path.unlink()

    def somebody(_done: int, _all: int) -> None:
        path.write_text("mine")

    with pytest.raises(BadInput, match=r"There is a file .* already.*--force"):
        save(store, "sam", path, progress=somebody)
    assert path.read_text() == "mine" and list(tmp_path.iterdir()) == [path]
    save(store, "sam", path, progress=somebody, replace=True)
    assert path.read_bytes().startswith(b"PAR1")


def test_a_log_that_is_not_in_its_chain_is_not_exported(store: MemoryStore, tmp_path: Path) -> None:
    """If a record was changed or is missing, the error names the seq, and no file is written."""
    say(store, "sam", Drafts(), 5)
    records = store._opener.at(partition_of("sam")).records
    whole = list(records)
    for damaged in ([*whole[:2], msgspec.structs.replace(whole[2], text="else"), *whole[3:]], whole[:2] + whole[3:]):
        records[:] = damaged
        with pytest.raises(CorruptLog, match="has a broken chain at seq"):
            save(store, "sam", tmp_path / "sam.everlog")
        assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_leaves_no_file(store: MemoryStore, tmp_path: Path) -> None:
    say(store, "sam", Drafts(), 1)
    with pytest.raises(StoreError, match="No such file or directory"):
        save(store, "sam", tmp_path / "no" / "sam.everlog")
    store.register("ann")
    with pytest.raises(BadInput, match="no records yet"):
        save(store, "ann", tmp_path / "ann.everlog")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"text": "never said"}, {"seq": 4}, {"commit": 9}, {"payload": '{"erased":true}'}])
def test_records_that_are_not_in_the_chain_are_damage(exported: Path, change: dict[str, object]) -> None:
    """One record differs from the original, in a file whose checksum is right."""
    reader = ExportReader(exported)
    records, contents = list(reader.records()), reader.contents
    reader.close()
    records[4] = msgspec.structs.replace(records[4], **change)
    with exported.open("wb") as file, ExportWriter(file) as writer:
        writer.write(records)
        writer.finish(contents)
    assert isinstance(refused(exported), CorruptLog)
