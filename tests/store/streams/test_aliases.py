"""Other names of agents: found, refused where they are taken, kept durably, and never in the way of an agent."""

from pathlib import Path

import pytest

from everlog.events import BadInput, CorruptLog, UnknownAgent
from everlog.store import FileStore, check_register
from everlog.store.base.disk import RealDisk
from everlog.store.base.names import hash_of
from tests.store.conftest import now
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    made = FileStore.create(tmp_path, now, "names", shards=2)
    made.register("sam")
    made.register("ann", shared=True)
    return made


def file_of(store: FileStore) -> Path:
    (path,) = (store.root / "names").iterdir()
    return path


def test_every_name_that_an_agent_had_means_it(store: FileStore) -> None:
    """The name of the log, the newest name and the ones between are the same agent; the newest is shown."""
    store.aliases.give("sam", "samuel", 1)
    store.aliases.give("samuel", "Zoë", 2)
    assert [store.aliases.resolve(name) for name in ("sam", "samuel", "Zoë", "Zoe\u0308", "nobody")] == [
        "sam", "sam", "sam", "sam", "nobody",
    ]  # fmt: skip
    assert store.aliases.of("sam") == ["samuel", "Zoë"] and store.aliases.of("ann") == []
    assert store.aliases.shown() == {"sam": "Zoë"}
    store.aliases.give("sam", "samuel", 3)
    assert store.aliases.shown() == {"sam": "samuel"}
    store.aliases.give("samuel", "sam", 4)
    assert store.aliases.shown() == {"sam": "sam"} and store.aliases.resolve("samuel") == "sam"


@pytest.mark.parametrize(
    ("agent", "name", "error", "words"),
    [
        ("sam", "ann", BadInput, "there is an agent of that name"),
        ("ann", "samuel", BadInput, "it is a name of 'sam' already"),
        ("sam", "block:x", BadInput, "block:"),
        ("sam", "-x", BadInput, "begins with `-`"),
        ("sam", "a\nb", BadInput, "control character"),
        ("sam", "", BadInput, "name of an agent is empty"),
        ("bob", "rob", UnknownAgent, "there is no agent 'bob'"),
        ("block:x", "rob", BadInput, "block:"),
    ],
)
def test_a_name_that_is_taken_or_unusable_changes_nothing(
    store: FileStore, agent: str, name: str, error: type[Exception], words: str
) -> None:
    """The refusal says who has the name, and the names are those from before."""
    store.aliases.give("sam", "samuel", 1)
    with pytest.raises(error, match=words):
        store.aliases.give(agent, name, 2)
    assert store.aliases.shown() == {"sam": "samuel"}


def test_no_agent_is_made_under_another_name(store: FileStore) -> None:
    """Registering, alone or among many, and forking are refused, and nothing is registered."""
    store.aliases.give("sam", "samuel", 1)
    before = store.assigned()
    for make in (
        lambda: store.register("samuel"),
        lambda: store.register("samuel", shared=True),
        lambda: store.register_many(["bob", "samuel"]),
    ):
        with pytest.raises(BadInput, match="'samuel' is another name of 'sam'"):
            make()
    assert store.assigned() == before


def test_an_agent_wins_over_another_name(store: FileStore) -> None:
    """If two processes take a name at once, as an agent and as another name, it means the agent, and the check names
    the file.
    """
    store.aliases.give("sam", "samuel", 1)
    held = file_of(store).read_bytes()
    file_of(store).unlink()
    store.register("samuel")
    (store.root / "names" / hash_of("samuel")).write_bytes(held)
    assert store.aliases.resolve("samuel") == "samuel"
    assert any("also an agent, which it means" in error for error in check_register(store).errors)


def test_each_flipped_bit_of_a_name_is_found(store: FileStore) -> None:
    """A damaged file is an error for its name and in the check; other names and agents do not need it."""
    store.aliases.give("sam", "samuel", 1)
    path = file_of(store)
    sound = path.read_bytes()
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        with pytest.raises(CorruptLog, match="another name of an agent, is damaged"):
            store.aliases.resolve("samuel")
        assert store.aliases.resolve("sam") == "sam" and store.aliases.shown() == {}
        assert any(str(path) in error for error in store.aliases.faults())
    path.write_bytes(sound)
    assert list(store.aliases.faults()) == []


def test_names_are_freed_with_their_agent(store: FileStore) -> None:
    """The names that were given are free again; the name of the log stays."""
    store.aliases.give("sam", "samuel", 1)
    store.aliases.give("sam", "sammy", 2)
    assert store.aliases.remove_of("sam") == ["samuel", "sammy"]
    assert store.aliases.resolve("samuel") == "samuel" and store.aliases.shown() == {}
    assert store.register("samuel")
    assert list((store.root / "names").iterdir()) == []


def test_a_name_is_whole_or_not_there_after_a_crash() -> None:
    """After a crash at any step of a rename the new name is usable or unknown, and the same rename then succeeds. A
    rename that has returned survives a loss of power.
    """
    whole = FaultyDisk()
    store = FileStore.create(ROOT, now, "names", disk=whole)
    store.register("sam")
    begun = len(whole.log)
    store.aliases.give("sam", "samuel", 1)
    assert FileStore(ROOT, now, disk=whole.power_loss()).aliases.resolve("samuel") == "sam"
    assert len(whole.log) - begun > 3
    for step in range(begun, len(whole.log)):
        disk = FaultyDisk()
        store = FileStore.create(ROOT, now, "names", disk=disk)
        store.register("sam")
        disk.crash_at = step
        with pytest.raises(Crash):
            store.aliases.give("sam", "samuel", 1)
        for left in (disk.killed(), disk.power_loss()):
            after = FileStore(ROOT, now, disk=left)
            assert after.aliases.resolve("samuel") in ("sam", "samuel")
            assert list(after.aliases.faults()) == []
            after.aliases.give("sam", "samuel", 2)
            assert after.aliases.shown() == {"sam": "samuel"}


class _CountingDisk(RealDisk):
    """Disk of this machine that counts what is looked for, listed and read."""

    def __init__(self) -> None:
        self.looks = self.reads = 0

    def exists(self, path: Path) -> bool:
        self.looks += 1
        return super().exists(path)

    def names(self, path: Path) -> list[str]:
        self.reads += 1
        return super().names(path)

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        self.reads += 1
        return super().read(path, offset, length)


def test_a_name_that_was_resolved_takes_its_new_meaning_from_another_process(store: FileStore) -> None:
    """A store that knows names as those of their agents sees at once that one was given to another agent, or that a
    fork took it.
    """
    other = FileStore(store.root, now)
    for name in ("bob", "sam", "ann"):
        assert [store.stream_of(name) for _ in range(3)] == [name] * 3
    other.aliases.give("ann", "bob", 1)
    other.register("sam@gen2")
    assert [store.stream_of(name) for name in ("bob", "sam", "ann")] == ["ann", "sam@gen2", "ann"]


def test_a_known_name_costs_three_looks_at_the_disk(store: FileStore) -> None:
    """Nothing is read for it, and nothing is listed."""
    disk = _CountingDisk()
    again = FileStore(store.root, now, disk=disk)
    assert again.stream_of("ann") == "ann"
    disk.looks = disk.reads = 0
    assert again.stream_of("ann") == "ann"
    assert (disk.looks, disk.reads) == (3, 0)
