"""The functions for workspace files: they read and append a few lines, and touch nothing outside the workspace."""

import errno
import fcntl
import os
import resource
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from everlog.actors.functions import workspace
from everlog.actors.functions.extras import Grants, extras, no_helper
from everlog.actors.functions.workspace import LIMIT_REACHED, Workspace
from everlog.events import FunctionError

SECRET = "the secret\n"


class Place:
    """A workspace with a few files, next to a file outside of it."""

    def __init__(self, root: Path) -> None:
        self.outside = root / "outside"
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text(SECRET)
        self.folder = root / "workspace"
        (self.folder / "notes").mkdir(parents=True)
        (self.folder / "notes" / "plan.txt").write_text("one\ntwo\nthree\n")
        self.files = Workspace(str(self.folder))
        self.read = self.files.read_from_text_file
        self.append = self.files.append_to_text_file

    def refuses(self, filename: str, says: str = "") -> None:
        """Check that neither function accepts the file, and that nothing changes."""
        before = self.snapshot()
        for call in (lambda: self.read(filename, 1), lambda: self.append(filename, "more")):
            with pytest.raises(FunctionError) as refused:
                call()
            assert says in str(refused.value)
            assert "secret" not in str(refused.value) or "secret" in filename
        assert self.snapshot() == before

    def snapshot(self) -> dict[str, bytes]:
        """Return the name and content of every plain file of both folders."""
        found = [*self.folder.rglob("*"), *self.outside.rglob("*")]
        return {str(path): path.read_bytes() for path in found if path.is_file() and not path.is_symlink()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("line", "count", "text"),
    [(1, 1, "one"), (2, 1, "two"), (2, 2, "two\nthree"), (1, 99, "one\ntwo\nthree"), (3, 10**15, "three")],
)
def test_lines_are_counted_from_one(place: Place, line: int, count: int, text: str) -> None:
    """Reading returns the requested lines, or as many as exist."""
    assert place.read("notes/plan.txt", line, count) == text


@pytest.mark.parametrize(("line", "count"), [(0, 1), (-1, 1), (1, 0), (1, -5), (4, 1), (10**15, 1)])
def test_invalid_line_ranges_are_refused(place: Place, line: int, count: int) -> None:
    """A line before the first or after the last, and a range without lines, are refused."""
    with pytest.raises(FunctionError, match="line"):
        place.read("notes/plan.txt", line, count)


def test_a_reading_ends_at_500_characters_and_says_so(place: Place) -> None:
    """500 characters are returned whole; of a longer text, 500 characters and a line that says so. Characters are
    counted, not bytes.
    """
    for letter in ("x", "é", "水", "🙂"):
        (place.folder / "long.txt").write_text(letter * 500)
        assert place.read("long.txt", 1) == letter * 500
        (place.folder / "long.txt").write_text(letter * 501 + "\n" + letter)
        assert place.read("long.txt", 1) == letter * 500 + "\n" + LIMIT_REACHED
        (place.folder / "long.txt").write_text("".join(f"{letter}\n" for _ in range(400)))
        assert place.read("long.txt", 1, 250) == "\n".join([letter] * 250)
        assert place.read("long.txt", 1, 251).endswith(LIMIT_REACHED)


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072])
def test_lines_are_found_across_block_boundaries(place: Place, size: int) -> None:
    """Lines are found although the file is read in blocks that may end inside a character."""
    (place.folder / "big.txt").write_bytes(b"a" * (size - 2) + "🙂\nlast\n\n🙂".encode())
    assert place.read("big.txt", 2) == "last"
    assert place.read("big.txt", 3) == ""
    assert place.read("big.txt", 4) == "🙂"
    assert place.read("big.txt", 1) == "a" * 500 + "\n" + LIMIT_REACHED


def test_a_huge_file_costs_no_memory_and_no_endless_time(place: Place) -> None:
    """A file of a terabyte and a line without an end are read in little memory; a line far into the file is refused."""
    with (place.folder / "huge.txt").open("wb") as file:
        file.write(b"first\n")
        file.truncate(1 << 40)
    tracemalloc.start()
    assert place.read("huge.txt", 1) == "first"
    assert place.read("huge.txt", 2).endswith(LIMIT_REACHED)
    with pytest.raises(FunctionError, match="64 MiB"):
        place.read("huge.txt", 3)
    place.append("huge.txt", "last")
    assert tracemalloc.get_traced_memory()[1] < 2 << 20
    tracemalloc.stop()
    assert (place.folder / "huge.txt").stat().st_size == (1 << 40) + 5


def test_adding_puts_a_line_at_the_end(place: Place) -> None:
    """Appended text is at the end, with a line break, and the text before it is unchanged."""
    assert place.append("./notes/plan.txt", "vier é") is None
    assert (place.folder / "notes" / "plan.txt").read_text() == "one\ntwo\nthree\nvier é\n"


def test_a_file_must_exist(place: Place) -> None:
    """Appending creates no file, and a missing folder gives the same error as a missing file."""
    place.refuses("new.txt", "There is no file")
    place.refuses("nowhere/new.txt", "There is no file")


@pytest.mark.parametrize(
    "filename",
    ["../outside/secret.txt", "notes/../../outside/secret.txt", "..", "notes/..", "/etc/passwd", "//etc/passwd", "",
     ".",
     "/", "./", "notes/plan.txt\0.png", "a/" * 3000 + "..", "notes/./../notes/plan.txt"],
)  # fmt: skip
def test_a_path_stays_inside(place: Place, filename: str) -> None:
    """Absolute paths, `..` at any place, and empty or special names are refused."""
    place.refuses(filename, "no file of the workspace")


@pytest.mark.parametrize("filename", ["notes", "notes/plan.txt/x", "n" * 5000, "notes/" * 2000 + "x"])
def test_errors_of_the_system_are_reported(place: Place, filename: str) -> None:
    """Folders, paths through a plain file and names that are too long raise FunctionError with a plain text."""
    place.refuses(filename)


def test_links_are_refused(place: Place) -> None:
    """A symbolic link is refused as a file and in the middle of a path, whether it leads outside or not."""
    (place.folder / "link.txt").symlink_to(place.outside / "secret.txt")
    (place.folder / "inner.txt").symlink_to(place.folder / "notes" / "plan.txt")
    (place.folder / "dangling.txt").symlink_to(place.outside / "new.txt")
    (place.folder / "loop.txt").symlink_to(place.folder / "loop.txt")
    (place.folder / "away").symlink_to(place.outside)
    (place.folder / "notes" / "up").symlink_to("../../outside")
    for name in ("link.txt", "inner.txt", "dangling.txt", "loop.txt"):
        place.refuses(name, "symbolic link")
    for name in ("away/secret.txt", "notes/up/secret.txt"):
        place.refuses(name)
    assert not (place.outside / "new.txt").exists()


@contextmanager
def before(
    monkeypatch: pytest.MonkeyPatch, when: Callable[[str], bool], then: Callable[[], None]
) -> Iterator[list[str]]:
    """Run an action once, just before a part of a path is opened."""
    real, done = os.open, []

    def opening(path: str, *args: int, **kwargs: int) -> int:
        if not done and when(str(path)):
            done.append(str(path))
            then()
        return real(path, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(workspace.os, "open", opening)
        yield done


@pytest.mark.parametrize("verb", ["read", "append"])
@pytest.mark.parametrize("part", ["plan.txt", "notes"])
def test_a_link_that_is_swapped_in_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch, part: str, verb: str
) -> None:
    """A file or folder that is replaced by a link between check and opening is refused."""
    (place.outside / "plan.txt").write_text(SECRET)
    whole = place.folder / ("notes/plan.txt" if part == "plan.txt" else "notes")

    def swap() -> None:
        whole.rename(place.folder / "old")
        whole.symlink_to(place.outside / "plan.txt" if part == "plan.txt" else place.outside)

    with before(monkeypatch, lambda path: path == part, swap) as done, pytest.raises(FunctionError, match="cannot be"):
        place.read("notes/plan.txt", 1) if verb == "read" else place.append("notes/plan.txt", "more")
    assert done == [part]
    assert (place.outside / "plan.txt").read_text() == SECRET


def test_a_folder_replaced_by_a_link_after_opening_is_still_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is opened relative to the folder that was opened, even if a link has taken the folder's name since."""
    (place.outside / "plan.txt").write_text(SECRET)

    def swap() -> None:
        (place.folder / "notes").rename(place.folder / "old")
        (place.folder / "notes").symlink_to(place.outside)

    with before(monkeypatch, lambda path: path == "plan.txt", swap) as done:
        assert place.read("notes/plan.txt", 1) == "one"
    assert done == ["plan.txt"]


def test_only_plain_files(place: Place) -> None:
    """A fifo and a device are refused without blocking."""
    os.mkfifo(place.folder / "fifo")
    place.refuses("fifo", "no plain file")
    files = Workspace("/dev")
    for call in (lambda: files.read_from_text_file("null", 1), lambda: files.append_to_text_file("null", "x")):
        with pytest.raises(FunctionError, match="no plain file"):
            call()


def test_a_fifo_that_is_swapped_in_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The opened file is checked again: a fifo that replaced the file is not read and does not block."""
    plan = place.folder / "notes" / "plan.txt"

    def swap() -> None:
        plan.unlink()
        os.mkfifo(plan)

    with before(monkeypatch, lambda path: path == "plan.txt", swap), pytest.raises(FunctionError, match="plain file"):
        place.read("notes/plan.txt", 1)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"caf\xe9\n", "é".encode()[:1], b"ok " * 30_000 + b"\xff"])
def test_only_text_in_utf_8(place: Place, data: bytes) -> None:
    """A file that is not UTF-8 is not read, and nothing is appended to it."""
    (place.folder / "odd.bin").write_bytes(data)
    with pytest.raises(FunctionError, match="UTF-8"):
        place.append("odd.bin", "more")
    assert (place.folder / "odd.bin").read_bytes() == data
    if len(data) < 1000:
        place.refuses("odd.bin", "UTF-8")


def test_the_end_of_a_long_text_may_begin_within_a_character(place: Place) -> None:
    """A long UTF-8 file of four-byte characters is accepted wherever the checked block at its end begins."""
    for shift in range(4):
        (place.folder / "long.txt").write_text("x" * shift + "🙂" * 20_000)
        place.append("long.txt", "!")
        assert (place.folder / "long.txt").read_text().endswith("🙂!\n")


def test_a_disk_that_is_full_loses_nothing(place: Place) -> None:
    """If a text cannot be written completely, none of it stays in the file, and the model is informed."""
    plan = place.folder / "notes" / "plan.txt"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limit[1]))
    try:
        with pytest.raises(FunctionError, match="Nothing was changed"):
            place.append("notes/plan.txt", "x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert plan.read_text() == "one\ntwo\nthree\n"


@contextmanager
def half_written(then: Callable[[], None]) -> Iterator[None]:
    """Return a disk that writes a text in two halves: after the first half it calls `then`, and the second half
    fails.
    """
    write, done = os.write, []

    def half(file: int, data: bytes) -> int:
        if done:
            raise OSError(errno.ENOSPC, "No space left on device")
        done.append(write(file, data[: len(data) // 2]))
        then()
        return done[0]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(workspace.os, "write", half)
        yield


def test_an_agent_that_fails_takes_back_nothing_of_another(place: Place) -> None:
    """Of two agents that append to one file, the second waits, so that removing the first agent's partial text removes
    nothing of the second's.
    """
    plan = place.folder / "notes" / "plan.txt"
    added: list[bool] = []

    def other() -> None:
        with plan.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                added.append(False)
            else:
                added.append(True)
                file.write(b"of another\n")

    with half_written(other), pytest.raises(FunctionError, match="Nothing was changed"):
        place.append("notes/plan.txt", "mine, too long")
    other()
    assert plan.read_text() == "one\ntwo\nthree\n" + "of another\n" * sum(added)
    assert added[-1], "nobody is kept waiting after it"


def test_text_added_by_another_process_is_kept(place: Place) -> None:
    """A process that ignores the lock may append at the same time: then nothing is removed, and the model is
    informed.
    """
    plan = place.folder / "notes" / "plan.txt"

    def editor() -> None:
        with plan.open("ab") as file:
            file.write(b"of a person\n")

    with half_written(editor), pytest.raises(FunctionError, match="some of the text may stand there"):
        place.append("notes/plan.txt", "mine")
    assert plan.read_text().endswith("of a person\n")


def test_an_appended_text_is_synced(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that could not be synced is reported as not added."""
    plan = place.folder / "notes" / "plan.txt"
    found: list[str] = []

    def fail(_: int) -> None:
        found.append(plan.read_text())
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(workspace.os, "fsync", fail)
    with pytest.raises(FunctionError, match=r"Input/output error. Nothing was changed"):
        place.append("notes/plan.txt", "four")
    assert found == ["one\ntwo\nthree\nfour\n"]
    assert plan.read_text() == "one\ntwo\nthree\n"


def test_missing_rights_are_reported(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without permissions gives a FunctionError with the system's reason."""

    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    for call in (lambda: place.read("notes/plan.txt", 1), lambda: place.append("notes/plan.txt", "x")):
        with before(monkeypatch, lambda path: path == "plan.txt", refuse), pytest.raises(FunctionError, match="denied"):
            call()


def test_no_file_stays_open(place: Place) -> None:
    """No call leaves a descriptor open, successful or not."""
    os.mkfifo(place.folder / "fifo")
    names = ("notes/plan.txt", "notes", "fifo", "nowhere/x", "notes/plan.txt/x", "../x")
    opened = len(list(Path("/dev/fd").iterdir()))
    for name in names:
        try:
            place.read(name, 9)
        except FunctionError:
            continue
    assert len(list(Path("/dev/fd").iterdir())) == opened


def test_without_a_workspace_the_functions_say_which_flag_gives_one() -> None:
    """Without a workspace the error names the flag that gives one."""
    tools = {tool.name: tool.function for tool in extras(Grants(), no_helper)}
    for call in (
        lambda: tools["read_from_text_file"]("x", 1),
        lambda: tools["append_to_text_file"]("x", "y"),
    ):
        with pytest.raises(FunctionError, match="--workspace DIR"):
            call()
