"""Reading one agent of a shared partition: the same results, at the cost of the agent's own records."""

import random
from pathlib import Path

import pytest

from everlog.events import CorruptLog
from everlog.store import Append, FileLog, FileStore, Log, LogReader, MemoryStore, RealDisk, Store, partition_of
from everlog.store.sealed import parquet_file
from tests.contract.log_contract import Drafts
from tests.contract.seal_contract import all_reads
from tests.store.conftest import now
from tests.store.sealed.test_seal_pass import Counting
from tests.support.seeds import split

NAMES = ["ann", "bob", "sam", "zoe"]


class WeighingDisk(RealDisk):
    """A disk that counts reads and their bytes."""

    def __init__(self) -> None:
        self.bytes = 0
        self.reads: list[str] = []

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        content = super().read(path, offset, length)
        self.bytes += len(content)
        self.reads.append(path.name)
        return content


def shared(root: Path, disk: RealDisk | None = None, segment_bytes_max: int = 10**6) -> FileLog:
    """Return the log of the only shard of a new store; all NAMES are in the shard."""
    store = FileStore.create(root, now, "s", shards=1, disk=disk, segment_bytes_max=segment_bytes_max)
    store.register_many(NAMES, shared=True)
    return store.open_partition("shard-000", "test")


def group(log: Log, names: list[str], drafts: Drafts, count: int = 2, text: str = "word") -> None:
    """Append one frame with a commit of each of `names`."""
    ahead: dict[str, int] = {}
    appends = []
    for name in names:
        seq = ahead.get(name, log.head(name).seq)
        appends.append(Append(name, seq, [drafts.one(f"{text} {number}") for number in range(count)]))
        ahead[name] = seq + count
    log.append_group(appends)


@pytest.mark.parametrize("seed", split(range(6), 2, label="shared reads", part="storage"))
def test_a_writer_reads_what_a_reader_reads(tmp_path: Path, seed: int) -> None:
    """After any appends, seals and openings, the owner's reads equal those of a reader that scans the files."""
    chance = random.Random(seed)
    drafts = Drafts()
    log = shared(tmp_path, segment_bytes_max=chance.choice([1, 4000, 10**6]))
    store = FileStore(tmp_path, now, segment_bytes_max=4000)
    for _ in range(40):
        group(log, chance.choices(NAMES, k=chance.randint(1, 6)), drafts, chance.randint(1, 3))
        if chance.random() < 0.1:
            log.seal(Counting())
        if chance.random() < 0.1:
            log.close()
            log = store.open_partition("shard-000", "test")
        reader = store.reader("sam")
        if chance.random() < 0.2:
            assert all_reads(log) == all_reads(reader)
        name, start = chance.choice(NAMES), chance.randint(1, 30)
        end = chance.choice([None, start + chance.randint(0, 20)])
        assert list(log.read(name, start, end)) == list(reader.read(name, start, end))
        assert log.table(name, start).equals(reader.table(name, start))
    log.close()


def test_a_writer_reads_the_frames_of_the_agent_only(tmp_path: Path) -> None:
    """An agent with two small commits in a large open file costs two small reads, also after the log is opened
    again.
    """
    disk, drafts = WeighingDisk(), Drafts()
    log = shared(tmp_path, disk)
    for names in (["sam"], ["ann"], ["sam"], ["ann"]):
        group(log, names, drafts, text="x" * (100_000 if names == ["ann"] else 10))
    for again in (log, FileStore(tmp_path, now, disk=disk)):
        if isinstance(again, FileStore):
            log.close()
            log = again.open_partition("shard-000", "test")
        disk.bytes, disk.reads = 0, []
        assert [record.seq for record in log.read("sam")] == [1, 2, 3, 4]
        assert disk.bytes < 3000 and len(disk.reads) == 2
        disk.bytes = 0
        assert log.table("sam", 5).num_rows == 0 == disk.bytes
    log.close()


def test_damage_in_a_frame_of_the_agent_is_found_by_its_writer(tmp_path: Path) -> None:
    """Records before the damage are returned, then CorruptLog names file and byte; other agents can be read."""
    log, drafts = shared(tmp_path), Drafts()
    for names in (["sam"], ["ann"], ["sam"], ["ann"]):
        group(log, names, drafts)
    path = max((tmp_path / "log" / "shard-000").glob("*.open"))
    content = path.read_bytes()
    second = log._file.index.runs("sam", 3, None, len(content))[0]
    path.write_bytes(content[: second.offset + 60] + bytes(8) + content[second.offset + 68 :])
    found = []
    with pytest.raises(CorruptLog, match=f"{path.name} is damaged at byte {second.offset}"):
        found.extend(record.seq for record in log.read("sam"))
    assert found == [1, 2]
    assert [record.seq for record in log.read("ann")] == [1, 2, 3, 4]
    log.close()


def test_a_footer_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner reads the footer of a state file once for all agents, and forgets the footer with the file."""
    log, drafts = shared(tmp_path), Drafts()
    group(log, NAMES, drafts)
    log.seal(Counting())
    fetched = []
    fetch = parquet_file._fetch_footer
    monkeypatch.setattr(parquet_file, "_fetch_footer", lambda where, entry, content: (
        fetched.append(entry.name), fetch(where, entry, content)))  # fmt: skip
    for name in NAMES * 2:
        assert log.state(name, "counting") is not None
    assert len(fetched) == 1
    group(log, NAMES, drafts)
    log.seal(Counting())
    state = log.state("sam", "counting")
    assert state is not None and state.seq == 4
    assert log._reader._footers is not None and len(log._reader._footers._found) == 1
    log.close()


def together(reader: LogReader, agents: list[str] | None) -> dict[str, tuple[list[object], list[object]]]:
    """Return the result of `states`, by agent."""
    found: dict[str, tuple[list[object], list[object]]] = {}
    for states in reader.states("counting", agents):
        for name in states.agents:
            rows = [] if states.rows is None else [r for r in states.rows.to_pylist() if r["agent_id"] == name]
            found[name] = (rows, [r for r in states.after.to_pylist() if r["agent_id"] == name])
    return found


@pytest.mark.parametrize("seed", split(range(6), 2, label="shared reads", part="storage"))
@pytest.mark.parametrize("kind", ["memory", "files"])
def test_states_of_many_are_the_states_of_each(
    tmp_path: Path, kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`states` of several agents returns the states and later records that `state` returns for each agent."""
    monkeypatch.setattr("everlog.store.log.partition_reader.AGENTS_AT_ONCE", 3)
    monkeypatch.setattr("everlog.store.sealed.parquet_file.ROW_GROUP_ROWS", 4)
    chance = random.Random(seed)
    store: Store = MemoryStore(1) if kind == "memory" else FileStore.create(tmp_path, now, "s", shards=1)
    store.register_many(NAMES, shared=True)
    log = store.open_partition("shard-000", "test")
    drafts = Drafts()
    for _ in range(12):
        group(log, chance.choices(NAMES, k=chance.randint(1, 3)), drafts, chance.randint(1, 3))
        if chance.random() < 0.4:
            log.seal(chance.choice([Counting(), Counting(), None]))
        readers: list[LogReader] = [log, store.reader("sam")]
        for reader in readers:
            for agents in (None, ["zoe", "ann", "nobody"]):
                expected = {}
                for name in reader.agents() if agents is None else agents:
                    state = reader.state(name, "counting")
                    after = reader.table(name, 1 if state is None else state.seq + 1).to_pylist()
                    expected[name] = ([] if state is None else state.rows.to_pylist(), after)
                assert together(reader, agents) == expected
    log.close()


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_one_reader_reads_each_agent_of_its_group(tmp_path: Path, kind: str) -> None:
    """Agents of a shard are one group; a fork and an agent that moved are alone; each agent is in one group. Heads and
    records of many are those of each.
    """
    store: Store = MemoryStore(1) if kind == "memory" else FileStore.create(tmp_path, now, "s", shards=1)
    store.register_many(NAMES, shared=True)
    log = store.open_partition("shard-000", "test")
    drafts = Drafts()
    group(log, NAMES, drafts, 3)
    store.begin_move(log, NAMES[0], partition_of(NAMES[0]))
    log.close()
    store.open(NAMES[0], "test").close()
    store.fork(NAMES[1], 2, "kid", event_id=drafts.some(1)[0].event_id)
    store.register("unborn", shared=True)
    groups = sorted(store.reader_groups(), key=len)
    assert sorted(groups[:2]) == sorted([[NAMES[0]], ["kid"]])
    assert groups[2:] == [sorted([*NAMES[1:], "unborn"])]
    for names in groups:
        reader = store.reader(names[0])
        assert reader.heads(names) == {name: store.reader(name).head(name) for name in names}
        for states in reader.states(None, names):
            assert states.rows is None
            for name in states.agents:
                after = [row for row in states.after.to_pylist() if row["agent_id"] == name]
                assert after == store.reader(name).table(name).to_pylist()
