"""`everlog export --all DIR` and `everlog restore DIR`: a whole store into a folder and back, also after a crash."""

import json
import shutil
from pathlib import Path

import pytest

from everlog.actors.reports import store_backup
from everlog.store import FileStore
from tests.support.cli.command_line import Line

NAMES = ["ann", "kid", "old", "sam"]


@pytest.fixture
def other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """Return the command line over another empty store."""
    return Line(tmp_path / "other", capsys)


@pytest.fixture
def folder(cli: Line, tmp_path: Path) -> Path:
    """Fill the store with agents of every kind, and return the folder of a backup that does not exist yet."""

    def make(line: Line) -> None:
        line.ok("create", "sam", "--placement", "dedicated")
        line.ok("send", "sam", "I sail")
        line.ok("fork", "sam", "--new-name", "kid")
        line.ok("send", "kid", "I sail too")
        line.ok("send", "sam", "And I row")
        line.ok("create", "ann", "--placement", "shared")
        line.ok("shared", "create", "notes", "Be kind")
        line.ok("shared", "attach", "ann", "notes")
        text = tmp_path / "tides.txt"
        text.write_text("Twice a day.")
        line.ok("load", "ann", str(text), "--source", "handbook")
        line.ok("create", "old")
        line.ok("delete", "old", "--yes")

    cli.begin("backed up", make)
    return tmp_path / "backup"


def envelopes(cli: Line, name: str) -> list[object]:
    """Return the records of an agent without the numbers of their commits."""
    return [{**record, "commit": 0} for record in cli.lines("events", name)]


def test_a_store_comes_back_as_it_was(cli: Line, other: Line, folder: Path) -> None:
    """Every agent has its records, forks and their parents, deleted agents, sources and shared blocks too."""
    out = cli.ok("export", "--all", str(folder))
    assert f"{folder} holds 6 files" in out and "6 written, 0 unchanged" in out
    assert "Not in the folder: models.toml; mcp.toml; a2a.toml; everlog.toml; keys" in out
    said = other.ok("restore", str(folder))
    assert said.startswith("6 files of 6 restored: ")
    for name in NAMES:
        assert envelopes(other, name) == envelopes(cli, name), name
    assert other.json("sources") == cli.json("sources")
    assert [block["block"] for block in other.json("shared", "list")] == ["notes"]
    assert [row["agent"] for row in other.json("agents")] == [row["agent"] for row in cli.json("agents")]
    other.ok("log", "check", "--all", "--deep")
    other.ok("verify", "--all")
    assert other.ok("send", "sam", "Hello again")
    again = other.json("restore", str(folder))
    assert (set(again["restored"].values()), again["failed"]) == ({0}, {})


def test_a_second_export_writes_what_has_changed(cli: Line, other: Line, folder: Path) -> None:
    """The file of a stream without new records is kept to the byte; a damaged file is written again."""
    cli.ok("export", "--all", str(folder))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    damaged = next(path for path in folder.iterdir() if path.name.startswith("kid-"))
    damaged.write_bytes(before[damaged.name][:-1] + b"x")
    cli.ok("send", "sam", "One more")
    shape = cli.json("export", "--all", str(folder))
    written = sorted(stream for stream, became in shape["streams"].items() if became == "exported")
    assert written == ["kid", "sam"]
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.keys() == before.keys()
    assert after[damaged.name][-4:] == before[damaged.name][-4:]
    other.ok("restore", str(folder))
    assert envelopes(other, "sam") == envelopes(cli, "sam")


def test_an_interrupted_export_continues(cli: Line, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C keeps the finished files. Without its list the folder is not restored; the next run completes it."""
    whole, done = store_backup.export, []

    def interrupted(store: FileStore, stream: str, *args: object, **options: object) -> object:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(stream)
        return whole(store, stream, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store_backup, "export", interrupted)
    code, _, err = cli("export", "--all", str(folder))
    assert code == 130
    assert "run the same command again to continue; finished files are kept" in err
    assert "has no manifest.json" in cli.fails("restore", str(folder))
    monkeypatch.setattr(store_backup, "export", whole)
    shape = cli.json("export", "--all", str(folder))
    assert sorted(stream for stream, became in shape["streams"].items() if became == "unchanged") == sorted(done)
    assert len(shape["files"]) == 6


def test_ancestors_come_before_their_forks(cli: Line, folder: Path) -> None:
    """A fork that is restored first would bring an ancestor that has ended: the list has the other order."""
    cli.ok("fork", "kid", "--new-name", "aaa")
    cli.ok("export", "--all", str(folder))
    order = [one["stream"] for one in json.loads((folder / store_backup.MANIFEST).read_text())["files"]]
    assert order.index("sam") < order.index("kid") < order.index("aaa")


def test_a_stream_that_cannot_be_read_is_left_out_and_named(cli: Line, other: Line, folder: Path) -> None:
    """The others are exported, the exit code is 1, and the list says what is missing and why."""
    store = FileStore(cli.root, cli.clock.now)
    segment = next((cli.root / "log" / store.partition_of("old")).glob("*.open"), None)
    files = [segment] if segment else sorted((cli.root / "log" / store.partition_of("old")).glob("open-*"))
    content = bytearray(files[0].read_bytes())
    content[len(content) // 2] ^= 0xFF
    files[0].write_bytes(bytes(content))
    code, _, err = cli("export", "--all", str(folder))
    assert code == 1
    assert "'old' was left out: " in err
    code, out, _ = other("restore", str(folder))
    assert code == 0
    assert "Not in the backup: old, which could not be exported." in out


def test_an_agent_that_never_began_is_not_missed(cli: Line, other: Line, folder: Path) -> None:
    """A name that was registered and has no record yet is no reason to call a backup incomplete: nothing is lost."""
    FileStore(cli.root, cli.clock.now).register("new")
    shape = cli.json("export", "--all", str(folder))
    assert shape["left_out"] == {} and shape["streams"]["new"] == "empty"
    assert len(shape["files"]) == 6
    assert cli.ok("export", "--all", str(folder)).startswith(f"{folder} holds 6 files")
    other.ok("restore", str(folder))


def test_an_agent_whose_log_is_gone_is_missed(cli: Line, folder: Path) -> None:
    """A stream without records that has had some is left out by name, with exit code 1."""
    store = FileStore(cli.root, cli.clock.now)
    shutil.rmtree(cli.root / "log" / store.partition_of("old"))
    code, _, err = cli("export", "--all", str(folder))
    assert code == 1 and "'old' was left out: " in err


@pytest.mark.parametrize(
    "given",
    [
        ("--window", "5"),
        ("--zone", "Nowhere/None"),
        ("--group", "round-robin", "--member", "nosuch"),
        ("--group", "supervisor", "--member", "sam"),
    ],
)
def test_a_refused_create_registers_nothing(cli: Line, given: tuple[str, ...]) -> None:
    """Settings that no agent can have are refused before the name is in the store."""
    cli.ok("create", "sam")
    cli.fails("create", "new", *given)
    assert FileStore(cli.root, cli.clock.now).agents() == ["sam"]


def test_a_file_that_fails_does_not_stop_the_others(cli: Line, other: Line, folder: Path) -> None:
    """A missing and a damaged file are reported, the rest is restored; a second try completes it."""
    cli.ok("export", "--all", str(folder))
    paths = {path.name.split("-")[0]: path for path in folder.glob("*.everlog")}
    kept = {name: paths[name].read_bytes() for name in ("ann", "old")}
    paths["ann"].unlink()
    paths["old"].write_bytes(kept["old"][:-1])
    code, out, err = other("restore", str(folder))
    assert code == 1
    assert out.startswith("4 files of 6 restored: ")
    assert "The backup has no file 'ann-" in err and f"{paths['old'].name} was not restored: " in err
    for name, content in kept.items():
        paths[name].write_bytes(content)
    assert other.ok("restore", str(folder)).startswith("6 files of 6 restored: ")
    assert envelopes(other, "ann") == envelopes(cli, "ann")


def test_a_folder_of_something_else_is_refused(cli: Line, folder: Path, tmp_path: Path) -> None:
    """Neither the files of another program nor the backup of another store is written over."""
    cli.ok("export", "--all", str(folder))
    manifest = folder / store_backup.MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "store": "another"}))
    assert "holds a backup of another store" in cli.fails("export", "--all", str(folder))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("Dear Ann")
    assert "holds other files, such as letter.txt" in cli.fails("export", "--all", str(mine))
    assert "is a file" in cli.fails("export", "--all", str(mine / "letter.txt"))
    assert "has no manifest.json" in cli.fails("restore", str(mine))


def test_a_list_that_names_a_path_outside_is_refused(cli: Line, other: Line, folder: Path) -> None:
    """A list from elsewhere cannot make `restore` read files outside of the folder."""
    cli.ok("export", "--all", str(folder))
    listed = json.loads((folder / store_backup.MANIFEST).read_text())
    listed["files"][0]["file"] = f"../{folder.name}/{listed['files'][0]['file']}"
    (folder / store_backup.MANIFEST).write_text(json.dumps(listed))
    code, _, err = other("restore", str(folder))
    assert code == 1 and "The backup has no file '../" in err


def test_names_that_look_alike_get_files_of_their_own() -> None:
    """Names that differ in signs or in case alone, and names of dots, get different plain file names."""
    names = ["a b", "a_b", "A_B", "..", "ä", "x" * 200, "x" * 201]
    files = [store_backup.file_of(name) for name in names]
    assert len({file.lower() for file in files}) == len(names)
    assert all(Path(file).name == file and len(file) < 90 and file.isascii() for file in files)
