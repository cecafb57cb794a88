"""Exports that `everlog export` never writes: valid by checksum and chain, and refused nevertheless."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from everlog.events import GENESIS, AgentForked, CorruptLog, Draft, Record, draft, extend, place, uuid7
from everlog.store import ExportHeader, FileStore, partition_of
from everlog.store.backup.export_file import ExportWriter
from everlog.store.base.contract import Append, Head
from everlog.store.base.export_types import ExportedStream
from everlog.store.base.move_records import arrival, departure
from tests.contract.draft_builders import NOW, Drafts
from tests.store.conftest import now

OUTSIDE = "../../outside/deep"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore.create(tmp_path / "store", now, "sim", shards=2)


Stream = tuple[list[Record], ExportedStream]


def stream(name: str, drafts: Sequence[Draft], parent: str = "", cut: int = 0, chain: bytes = GENESIS) -> Stream:
    """Return records in one chain, and their header."""
    records = []
    for seq, one in enumerate(drafts, cut + 1):
        records.append(place(one, name, seq, seq - cut))
        chain = extend(chain, records[-1])
    return records, ExportedStream(name, cut + 1, cut + len(drafts), chain.hex(), parent, cut)


def crafted(path: Path, *streams: Stream) -> Path:
    """Write an export of the last of these streams."""
    with path.open("wb") as file, ExportWriter(file) as writer:
        for records, _ in streams:
            writer.write(records)
        writer.finish(ExportHeader(1, streams[-1][1].agent_id, "x", NOW, [header for _, header in streams]))
    return path


def moved(name: str, to: str, before: str = "", seq: int = 1) -> list[Draft]:
    """Return the events of an agent that moved away; with `before` also the event of its arrival."""
    records, header = stream(name, Drafts().some(seq))
    head = Head(len(records), bytes.fromhex(header.chain))
    drafts = [*Drafts().some(seq), *_drafts(departure(name, head, to, 2, NOW))]
    if before:
        _, header = stream(name, drafts)
        drafts += _drafts(arrival(name, Head(len(drafts), bytes.fromhex(header.chain)), before, 2, NOW))
    return drafts


def _drafts(append: Append) -> Sequence[Draft]:
    return append.drafts


def refused(store: FileStore, path: Path, words: str) -> None:
    """Check that the export is refused as damaged, and that no file was written, in the store or next to it."""
    before = sorted(store.root.parent.rglob("*"))
    with pytest.raises(CorruptLog, match=words):
        store.restore(path)
    assert sorted(store.root.parent.rglob("*")) == before and store.agents() == []


@pytest.mark.parametrize("to", [OUTSIDE, "/tmp/outside", "shard-0001", "shard-000/../../..", partition_of("ann")])
def test_a_move_to_where_no_store_has_a_partition_is_refused(store: FileStore, tmp_path: Path, to: str) -> None:
    """A stream with one half of a move to an impossible partition is refused, whether the stream continues or not."""
    own = partition_of("eve")
    for number, drafts in enumerate((moved("eve", to), moved("eve", to, own), moved("eve", own, to))):
        path = crafted(tmp_path / f"{number}.everlog", stream("eve", drafts))
        refused(store, path, "no store has such a partition")


def test_a_stream_that_ends_on_its_way_is_refused(store: FileStore, tmp_path: Path) -> None:
    """A stream that continues after a departure without an arrival is refused: no export has such a stream."""
    refused(store, crafted(tmp_path / "a.everlog", stream("eve", moved("eve", "shard-001"))), "records are missing")
    drafts = [*moved("eve", "shard-001"), Drafts(NOW + 5_000).one()]
    refused(store, crafted(tmp_path / "b.everlog", stream("eve", drafts)), "does not end it")


def test_a_move_that_is_over_is_taken_in(store: FileStore, tmp_path: Path) -> None:
    """A finished move is restored, also from a shard that this store does not have."""
    drafts = moved("eve", partition_of("eve"), "shard-700")
    assert store.restore(crafted(tmp_path / "a.everlog", stream("eve", drafts))).written == 3


def test_a_log_never_sends_its_agent_out_of_the_store(store: FileStore) -> None:
    """If the last record of a log names a partition outside the store, the partition is not looked up, and no folder is
    made.
    """
    store.register("eve")
    log = store.open("eve", "test")
    for one in moved("eve", OUTSIDE):
        log.append("eve", log.head("eve").seq, [one])
    log.close()
    before = sorted(store.root.parent.rglob("*"))
    with pytest.raises(CorruptLog, match="this store has no such partition"):
        store.open("eve", "test")
    assert not (store.root.parent / "outside").exists() and not (store.root / "../../outside").resolve().exists()
    assert store.partition_of("eve") == partition_of("eve")
    assert [path for path in before if "agents" in path.parts] == [
        path for path in sorted(store.root.parent.rglob("*")) if "agents" in path.parts
    ]


def forking(parent: str, cut: int, chain: bytes) -> Draft:
    event = AgentForked(parent=parent, parent_seq=cut, chain=chain.hex())
    return draft(event, event_id=uuid7(NOW, 999), recorded_at=NOW, turn=0, step=0)


def family(parent: str, said: str, *others: str) -> list[Stream]:
    """Return a parent, unrelated agents, and a fork whose header names `parent` and whose first record names `said`."""
    before = stream(parent, Drafts().some(1))
    chain = bytes.fromhex(before[1].chain)
    more = [stream(other, Drafts(NOW + at).some(1)) for at, other in enumerate(others, 1)]
    return [before, *more, stream("kid", [forking(said, 1, chain)], parent, 1, chain)]


@pytest.mark.parametrize("name", [unicodedata.normalize("NFD", "\u00e9"), "x" * 256, ""])
def test_a_name_that_no_log_has_is_refused(store: FileStore, tmp_path: Path, name: str) -> None:
    """A name of an agent or of a parent is refused if it is decomposed, too long or empty."""
    refused(store, crafted(tmp_path / "a.everlog", stream(name, Drafts().some(1))), "name")
    if name:
        refused(store, crafted(tmp_path / "b.everlog", *family(name, name)), "not a valid stream name")


def test_a_fork_of_a_source_is_refused(store: FileStore, tmp_path: Path) -> None:
    refused(store, crafted(tmp_path / "a.everlog", *family("source:x", "source:x")), "only agents have forks")
    chain = bytes.fromhex(stream("sam", Drafts().some(1))[1].chain)
    fork = stream("source:x", [forking("sam", 1, chain)], "sam", 1, chain)
    refused(store, crafted(tmp_path / "b.everlog", stream("sam", Drafts().some(1)), fork), "only agents have forks")


def test_a_fork_of_another_parent_than_its_first_record_names_is_refused(store: FileStore, tmp_path: Path) -> None:
    """The header may name another parent than the first record only if the parent of the record is not in the
    export.
    """
    refused(store, crafted(tmp_path / "a.everlog", *family("sam", "ann", "ann")), "is a fork of 'ann', and the header")
    drafts = [forking("sam", 0, GENESIS), *Drafts().some(1)]
    refused(store, crafted(tmp_path / "b.everlog", stream("kid", drafts)), "but the header has none")
    assert store.restore(crafted(tmp_path / "c.everlog", *family("sam", "passed over"))).written == 2


def test_a_header_with_a_name_twice_is_refused(store: FileStore, tmp_path: Path) -> None:
    twice = stream("sam", Drafts().some(1))
    refused(store, crafted(tmp_path / "a.everlog", twice, ([], twice[1])), "a name twice")


def test_a_row_group_that_would_fill_the_memory_is_refused(store: FileStore, tmp_path: Path) -> None:
    """The row group is small in the file, and larger than any row group of an export; nothing of it is read."""
    records, header = stream("sam", [Drafts(NOW + at).one("a" * 9_000_000) for at in range(24)])
    path = crafted(tmp_path / "a.everlog", (records, header))
    assert path.stat().st_size < 100_000
    refused(store, path, "row group 0 has 216,")


def conversation(at: int, **change: object) -> Stream:
    """Return 20 records, of which the one at index `at` is changed."""
    drafts = [Drafts(NOW + 10_000 * seq).one(f"word {seq}") for seq in range(1, 21)]
    drafts[at] = msgspec.structs.replace(drafts[at], **change)
    return stream("eve", drafts)


@pytest.mark.parametrize("at", [0, 19])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"event_id": "00000000-0000-0000-0000-000000000000"}, "must be a UUIDv7"),
        ({"event_id": uuid7(NOW + 50_000, 1)}, "has the event id of an earlier record"),
        ({"event_id": uuid7(NOW, 77), "cause": uuid7(NOW, 77)}, "names itself as its cause"),
        ({"turn": -1}, "turn must be a whole number"),
        ({"step": -1}, "step must be a whole number"),
        ({"version": 0}, "is a 'user_message' of version 0"),
        ({"recorded_at": -(2**63)}, "recorded_at -9223372036854775808, which is no time"),
        ({"recorded_at": 2**63 - 1}, "recorded_at 9223372036854775807, which is no time"),
        ({"said_at": 2**62}, "said_at 4611686018427387904, which is no time"),
        ({"type": ""}, "has the type ''"),
        ({"type": "user\x1b[31m"}, "which no event has"),
        ({"type": "x" * 101}, "which no event has"),
        ({"payload": ""}, "its payload is no such event"),
        ({"payload": "hello"}, "its payload is no such event"),
        ({"payload": "[1]"}, "its payload is no such event"),
        ({"payload": '{"a":' * 50_000 + "1" + "}" * 50_000}, "its payload is no such event"),
        ({"payload": '{"imported":"perhaps"}'}, "its payload is no such event"),
        ({"type": "timer_set", "payload": '{"due":5}'}, "its payload is no such event"),
        ({"type": "model_reply", "payload": '{"calls":3}'}, "its payload is no such event"),
        ({"type": "heartbeats_paused", "version": 1, "payload": "{}"}, "its payload is no such event"),
        ({"type": "dreamt", "payload": "hello"}, "its payload is no such event"),
        ({"payload": '{"erased":true,"digest":"%s"}' % ("0" * 64)}, "neither a valid tombstone nor a record"),
    ],
)  # fmt: skip
def test_a_record_that_no_log_can_have_is_refused_before_anything_is_written(
    store: FileStore, tmp_path: Path, at: int, change: dict[str, object], words: str
) -> None:
    """A lying envelope, an impossible time and a payload of another shape are refused, at the first and at the last
    record.
    """
    if at == 0 and words == "has the event id of an earlier record":
        at = 10  # the id of the fifth record is not that of an earlier one before it
    refused(store, crafted(tmp_path / "a.everlog", conversation(at, **change)), words)


def test_records_of_a_newer_everlog_are_taken_in(store: FileStore, tmp_path: Path) -> None:
    """An unknown type, and a newer version of a known one, are restored if their payload is a JSON object."""
    for name, change in (("a", {"type": "dreamt"}), ("b", {"version": 99, "payload": '{"calls":3}'})):
        records, header = conversation(7, **change)
        other = FileStore.create(tmp_path / name / "store", now, name)
        assert other.restore(crafted(tmp_path / f"{name}.everlog", (records, header))).written == 20


def test_a_header_that_lies_about_tombstones_or_its_format_is_refused(store: FileStore, tmp_path: Path) -> None:
    records, header = stream("sam", Drafts().some(1))
    lying = msgspec.structs.replace(header, erased=5)
    refused(store, crafted(tmp_path / "a.everlog", (records, lying)), "records are missing")
    path = tmp_path / "b.everlog"
    with path.open("wb") as file, ExportWriter(file) as writer:
        writer.write(records)
        writer.finish(ExportHeader(0, "sam", "x", NOW, [header]))
    refused(store, path, "its header names the format 0")
