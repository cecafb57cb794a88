"""Failures around the index cause clear errors, no wrong results and no loss."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import lancedb
import msgspec
import numpy as np
import pytest

from everlog.events import ArchiveError, EmbedderError, ForeignRows, StoreError
from everlog.store.archive import Archive
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata
from everlog.store.archive.embedding_cache import key_of
from everlog.store.embedding.tokenizer import pack_numbers, query_numbers
from tests.support.store.archive_world import Chance, Hashed, World, found, rows_of


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    yield world
    world.close()


@pytest.fixture
def archive(world: World) -> Iterator[Archive]:
    """Return an archive that has indexed three memories of sam."""
    for text in ("a cat by the river", "the whale sings", "bread and coffee"):
        world.insert("sam", text)
    archive = world.archive()
    archive.follow()
    yield archive
    archive.close()


def table_in(world: World) -> Path:
    (path,) = (world.root / "archive").glob("*.lance")
    return path


def files_with(folder: Path, word: str) -> list[str]:
    """Return the names of all files below a folder that contain a word."""
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def test_a_table_with_foreign_rows_is_refused(world: World, archive: Archive) -> None:
    """Following and searching fail with the expected and the found version and the cure; no row is changed, and a
    rebuild cures it.
    """
    rows = rows_of(archive)
    table = lancedb.connect(str(world.root / "archive")).open_table(table_in(world).stem)
    table.delete("text LIKE '%whale%'")
    world.insert("sam", "one more")
    with pytest.raises(ForeignRows, match=r"expected version \d+, found \d+.*everlog archive rebuild"):
        archive.follow()
    other = world.archive()
    with pytest.raises(ForeignRows, match="everlog archive rebuild"):
        found(other, "cat", "sam")
    assert len(rows_of(archive)) == len(rows) - 1
    archive.rebuild()
    assert len(rows_of(archive)) == len(rows) + 1
    assert found(archive, "whale", "sam")[0] == "the whale sings"
    assert found(other, "whale", "sam")[0] == "the whale sings"
    other.close()


@pytest.mark.parametrize("stranger", [Hashed("hashed", 8), Hashed("other", 16)], ids=["dimension", "name"])
def test_another_embedder_is_refused_until_a_rebuild(world: World, archive: Archive, stranger: Hashed) -> None:
    """Vectors of two models are never mixed: the error names the cure, the old embedder still works, and a rebuild
    changes to the new one.
    """
    world.insert("sam", "one more")
    other = world.archive(stranger)
    with pytest.raises(EmbedderError, match=f"archive rebuild --embedder {stranger.name}"):
        other.follow()
    with pytest.raises(EmbedderError, match="Nothing was written"):
        found(other, "cat", "sam")
    archive.follow()
    assert len(found(archive, "", "sam")) == 4
    other.rebuild()
    assert len(found(other, "", "sam")) == 4 and other.check() == []
    assert other.status().dimension == stranger.dimension
    with pytest.raises(EmbedderError):
        found(archive, "cat", "sam")
    archive.rebuild(stranger)
    assert found(archive, "cat", "sam")[0] == "a cat by the river"
    other.close()


class Bad(Hashed):
    """An embedder that returns wrong vectors, or fails on a later call."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = super().embed(texts)
        if self.how == "dimension":
            return rows[:, :-1]
        if self.how == "rows":
            return rows[1:]
        if self.how == "nan":
            rows[-1, 0] = np.nan
        if self.how == "fails" and len(self.asked) > 3:
            raise EmbedderError("the endpoint is down")
        return rows


@pytest.mark.parametrize("how", ["dimension", "rows", "nan"])
def test_vectors_that_are_not_what_was_promised_are_not_written(world: World, archive: Archive, how: str) -> None:
    """The error states the expected and the found length; table and position are unchanged, and a correct embedder
    continues.
    """
    rows = rows_of(archive)
    world.insert("sam", "one more")
    other = world.archive(Bad(how))
    with pytest.raises(EmbedderError, match=r"expected .* found .* Nothing was written"):
        other.follow()
    assert rows_of(archive) == rows
    other.close()
    assert archive.follow().rows == 1
    assert archive.check() == []


def test_an_embedder_that_fails_half_way_continues_where_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts embedded before the failure are not embedded again."""
    monkeypatch.setattr("everlog.store.archive.embedding_cache.EMBED_TEXTS", 2)
    for number in range(6):
        world.insert("sam", f"memory number {number}")
    bad = Bad("fails")
    archive = world.archive(bad)
    with pytest.raises(EmbedderError, match="the endpoint is down"):
        archive.follow()
    assert rows_of(archive) == []
    bad.how = ""
    assert archive.follow().embedded == 4
    assert archive.check() == [] and len(rows_of(archive)) == 6
    archive.close()


@pytest.mark.parametrize("lost", ["table", "versions", "notes", "folder", "older"])
def test_what_is_lost_is_made_again(world: World, archive: Archive, lost: str, tmp_path: Path) -> None:
    """If the table is missing or old, the index is made from the log, so searches never miss results."""
    folder = world.root / "archive"
    shutil.copytree(table_in(world), tmp_path / "older")
    world.insert("sam", "a later memory")
    archive.follow()
    rows = rows_of(archive)
    archive.close()
    if lost == "older":
        shutil.rmtree(table_in(world))
        shutil.copytree(tmp_path / "older", folder / "memories-000001.lance")
    elif lost == "notes":
        for path in folder.glob(f"{NOTES}*"):
            path.unlink()
    else:
        shutil.rmtree({"table": table_in(world), "versions": table_in(world) / "_versions", "folder": folder}[lost])
    again = world.archive()
    again.follow()
    assert rows_of(again) == rows and again.check() == []
    assert len(found(again, "", "sam")) == 4
    again.close()


def test_damaged_rows_are_an_error_and_a_rebuild_cures_it(world: World, archive: Archive) -> None:
    """A table with damaged files raises ArchiveError with the cure, instead of returning fewer results."""
    archive.close()
    for path in (table_in(world) / "data").glob("*"):
        path.write_bytes(b"x" * path.stat().st_size)
    other = world.archive()
    with pytest.raises(ArchiveError, match="everlog archive rebuild"):
        found(other, "cat", "sam")
    other.rebuild()
    assert found(other, "cat", "sam")[0] == "a cat by the river"
    other.close()


def test_damaged_notes_are_an_error_that_names_the_cure(world: World, archive: Archive) -> None:
    """The SQLite file is derived from the logs too: after its removal the whole index is made again."""
    archive.close()
    for path in (world.root / "archive").glob(f"{NOTES}*"):
        path.write_bytes(b"nonsense" * 1000)
    other = world.archive()
    with pytest.raises(ArchiveError, match="remove the folder"):
        other.follow()
    shutil.rmtree(world.root / "archive")
    other.follow()
    assert len(found(other, "", "sam")) == 3
    other.close()


def test_check_names_what_differs(world: World, archive: Archive) -> None:
    """A missing row, a superfluous row and a changed row are each named."""
    table = lancedb.connect(str(world.root / "archive")).open_table(table_in(world).stem)
    table.update("text LIKE '%whale%'", {"text": "the whale is silent"})
    table.delete("text LIKE '%bread%'")
    problems = archive.check()
    assert len(problems) == 2
    assert any("text is 'the whale is silent', not 'the whale sings'" in problem for problem in problems)
    assert any("is missing: seq 3 of the log" in problem for problem in problems)


def test_what_was_erased_is_in_no_file(world: World, archive: Archive) -> None:
    """Neither old versions, indices nor the cache hold content that `records_erased` names; other agents keep their
    rows.
    """
    memory = world.insert("sam", "my password is xyzzyplugh")
    world.update("sam", memory, "my password was xyzzyplugh until noon")
    world.insert("ann", "ann keeps frobnicate")
    archive.follow()
    archive.rebuild()
    world.insert("sam", "and again xyzzyplugh, in another file")
    archive.follow()
    folder = world.root / "archive"
    assert files_with(folder, "xyzzyplugh") and files_with(folder, "frobnicate")
    world.erase("sam", 4, 6)
    archive.follow()
    assert files_with(folder, "xyzzyplugh") == []
    notes = ArchiveMetadata(folder / NOTES)
    gone = ["my password is xyzzyplugh", "and again xyzzyplugh, in another file"]
    assert notes.vectors("hashed", [key_of(text) for text in gone]) == {}
    assert notes.vectors("hashed", [key_of("ann keeps frobnicate")])
    notes.close()
    assert len(found(archive, "", "sam")) == 3 and len(found(archive, "", "ann")) == 1
    assert archive.check() == []


def test_an_erasure_is_carried_out_by_the_next_follower(world: World, archive: Archive) -> None:
    """A log with an erasure that was never followed leaves no erased content in the index."""
    world.insert("ann", "the secret is xyzzyplugh")
    world.erase("ann", 1, 1)
    archive.follow()
    assert files_with(world.root / "archive", "xyzzyplugh") == []
    world.seal()
    archive.rebuild()
    assert found(archive, "", "ann") == [] and archive.check() == []


def test_an_erasure_that_was_erased_itself_was_carried_out(world: World, archive: Archive) -> None:
    """If a `records_erased` is a tombstone itself, the content that it named is gone from index and log too."""
    world.insert("sam", "the secret is xyzzyplugh")
    archive.follow()
    world.erase("sam", 4, 4)
    world.erase("sam", 5, 5)
    world.seal()
    archive.follow()
    assert files_with(world.root / "archive", "xyzzyplugh") == []
    assert archive.check() == [] and len(found(archive, "", "sam")) == 3


def test_searches_are_right_while_it_compacts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Automatic compaction changes no row and no result, in this process or in another one."""
    monkeypatch.setattr("everlog.store.archive.archive_writer.COMPACT_WRITES", 3)
    chance = Chance(world, 41, ["sam"])
    archive, other = world.archive(), world.archive()
    for _ in range(12):
        chance.act(rarely=False)
        archive.follow()
        assert found(archive, "", "sam", count=100) == found(other, "", "sam", count=100)
    assert archive.check() == []
    archive.close()
    other.close()


def test_a_rebuild_continues_beside_searches_and_other_followers(world: World, archive: Archive) -> None:
    """During a rebuild the old table still serves searches and is followed; a second rebuild is refused; no record is
    missed.
    """
    seen: list[int] = []

    def during(step: str) -> None:
        if step == "built" and not seen:
            world.insert("sam", "said meanwhile")
            archive.follow()
            seen.append(len(found(archive, "", "sam")))
            with pytest.raises(ArchiveError, match="another process"):
                archive.rebuild()

    other = world.archive(step=during)
    other.rebuild()
    assert seen == [4]
    other.follow()
    assert len(found(other, "", "sam")) == 4 == len(found(archive, "", "sam"))
    assert other.check() == []
    other.close()


@pytest.mark.parametrize("again", ["another", "none", "sealed"])
def test_a_commit_that_a_crash_took_from_the_log_leaves_the_index(world: World, archive: Archive, again: str) -> None:
    """Records that were indexed before they were durable, and that a power loss removed from the log, are not found."""
    log = world.log("sam")
    path = max(world.store.partition(log.partition).path.glob("*.open"))
    before = path.read_bytes()
    world.insert("sam", "a ghost")
    archive.follow()
    archive.close()
    world.close()
    for newer in path.parent.glob("*.open"):
        newer.unlink() if newer != path else newer.write_bytes(before)
    if again != "none":
        world.insert("sam", "what came instead")
    if again == "sealed":
        world.seal()
        world.insert("sam", "and one more")
    other = world.archive()
    other.follow()
    assert other.check() == []
    assert "a ghost" not in found(other, "", "sam")
    assert len(found(other, "", "sam")) == {"none": 3, "another": 4, "sealed": 5}[again]
    other.close()


def test_two_agents_may_have_events_of_the_same_id(world: World, archive: Archive) -> None:
    """Callers choose ids: a message of one agent does not affect another agent's memory with the same id."""
    kept = world.draft("archival_inserted", "mine alone")
    world.append("alone-a", kept)
    archive.follow()
    world.append("alone-b", msgspec.structs.replace(kept, type="user_message", text="hello"))
    archive.follow()
    assert found(archive, "mine", "alone-a") == ["mine alone"]
    before = rows_of(archive)
    archive.rebuild()
    assert [row["memory_id"] for row in rows_of(archive)] == [row["memory_id"] for row in before]
    assert archive.check() == []


def test_what_was_embedded_and_never_written_is_erased_as_well(world: World) -> None:
    """A process that dies between embedding and writing leaves no vector of a text that is erased later."""
    secret = "my password is xyzzyplugh"

    def die(step: str) -> None:
        if step == "embedded":
            raise KeyboardInterrupt

    world.insert("sam", secret)
    dying = world.archive(step=die)
    with pytest.raises(KeyboardInterrupt):
        dying.follow()
    dying.close()
    archive = world.archive()
    world.erase("sam", 1, 1)
    archive.follow()
    archive.close()
    notes = ArchiveMetadata(world.root / "archive" / NOTES)
    assert notes.vectors("hashed", [key_of(secret)]) == {}
    notes.close()


def test_an_erasure_during_a_rebuild_holds(world: World, archive: Archive) -> None:
    """Content that a rebuild has read before its erasure is gone when the rebuild is done."""
    world.insert("sam", "my password is xyzzyplugh")
    archive.follow()

    def erase(step: str) -> None:
        if step == "built":
            world.erase("sam", 4, 4)

    building = world.archive(step=erase)
    building.rebuild()
    assert files_with(world.root / "archive", "xyzzyplugh") == []
    assert "my password is xyzzyplugh" not in found(building, "", "sam")
    building.close()


def test_a_damaged_log_holds_up_no_other(world: World, archive: Archive) -> None:
    """The readable logs are followed, and the error is raised at the end."""
    world.insert("alone-a", "the first")
    world.insert("alone-b", "the second")
    world.insert("alone-b", "the third")
    path = max(world.store.partition(world.store.partition_of("alone-a")).path.glob("*.open"))
    data = bytearray(path.read_bytes())
    world.insert("alone-a", "a later one")
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError):
        archive.follow()
    assert found(archive, "second", "alone-b")[0] == "the second"


@pytest.mark.parametrize("text", ["x" * 100_000 + " y", "seq=" + "a" * 100_000 + "+b", "a-" * 50_000])
def test_no_text_takes_long_to_be_cut_into_words(text: str) -> None:
    """For a very long run of letters the work grows linearly with the text."""
    assert len(pack_numbers(text)) <= 4 * len(text)
    assert query_numbers(text) is not None


def test_a_stream_of_a_source_shows_documents_only(world: World, archive: Archive) -> None:
    """Memories that an agent of an old store recorded under a source's name are visible to no other agent."""
    world.insert("source:foo", "private")
    world.load("foo", "a.md", "a public page")
    archive.follow()
    assert found(archive, "", "sam", sources=["foo"]).count("private") == 0
    assert "a public page" in found(archive, "", "sam", sources=["foo"])
    assert archive.check() == []
