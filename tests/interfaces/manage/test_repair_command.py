"""`everlog log repair-register`: lists each change, asks, and makes the register again from the logs."""

import shutil
from pathlib import Path

import pytest

from everlog.store import FileStore
from everlog.store.base.names import hash_of
from tests.interfaces.show.test_lost_register import built, family, file_of, log_of
from tests.support.cli.command_line import Line
from tests.support.seeds import split

__all__ = ["built", "family"]


def clean(cli: Line) -> None:
    """Check that no command finds a fault."""
    cli.ok("log", "check", "--all", "--deep")
    cli.ok("verify", "--all")
    cli.ok("rebuild", "--all")


@pytest.mark.parametrize("name", split(["ann", "kid", "sam", "solo"], 1, label="repaired", part="storage"))
def test_the_repair_is_the_cure_that_the_error_names(family: Line, name: str) -> None:
    """After it the agent is as it was, and check, verify and rebuild are clean; a second repair finds nothing to do."""
    before = family.ok("events", name, "--json"), family.ok("agents", "--json")
    file_of(family, name).unlink()
    assert "`everlog log repair-register`" in family.fails("events", name)
    said = family.ok("log", "repair-register", "--yes")
    assert said.startswith(f"{name!r} is registered in ") and said.endswith("1 change made.\n")
    assert (family.ok("events", name, "--json"), family.ok("agents", "--json")) == before
    assert family.ok("log", "repair-register", "--yes") == "The register agrees with the logs.\n"
    clean(family)


def test_the_whole_register_is_made_again(family: Line) -> None:
    """Without the folder `agents`, every agent, fork and shared agent is back."""
    before = family.ok("agents", "--json")
    shutil.rmtree(family.root / "agents")
    shape = family.json("log", "repair-register", "--yes")
    assert shape["repaired"] and shape["unrepairable"] == []
    assert [change["stream"] for change in shape["changes"]] == ["ann", "bob", "first", "kid", "sam", "solo"]
    assert {change["kind"] for change in shape["changes"]} == {"registered"}
    assert family.ok("agents", "--json") == before
    clean(family)


def test_a_lost_shard_is_given_up_after_a_question(family: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are listed before the question; after No nothing is changed and the exit code is 1; after Yes they can
    be created again.
    """
    shutil.rmtree(log_of(family, "ann"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    family.typed = ["n", "y"]
    code, out, _ = family("log", "repair-register")
    assert code == 1 and "'ann' has no record in any log. The name is given up." in out
    assert out.endswith("Nothing was changed.\n") and file_of(family, "ann").exists()
    out = family.ok("log", "repair-register")
    assert out.endswith("3 changes made.\n") and not file_of(family, "ann").exists()
    family.ok("create", "ann", "--placement", "shared")
    clean(family)


def test_without_a_terminal_it_asks_for_yes(family: Line) -> None:
    """Without --yes and without a terminal nothing is changed, and the error names --yes."""
    file_of(family, "ann").unlink()
    code, _, err = family("log", "repair-register")
    assert code == 2 and "--yes" in err
    assert not file_of(family, "ann").exists()


def test_what_cannot_be_repaired_is_named_with_exit_code_1(family: Line) -> None:
    """Two streams of one name are left as they are; a lost file of another agent is made again all the same."""
    kept = file_of(family, "ann").read_bytes()
    shard = log_of(family, "ann")
    aside = family.root.parent / "shard"
    shutil.copytree(shard, aside)
    shutil.rmtree(shard)
    family.ok("log", "repair-register", "--yes")
    family.ok("send", "ann", "I am another")
    shutil.copytree(aside, shard, dirs_exist_ok=True)
    file_of(family, "kid").unlink()
    code, out, err = family("log", "repair-register", "--yes")
    assert code == 1 and "'kid' is registered in its own log, as a fork of 'sam'" in out
    assert "'ann' has the records" in err and "no records of moves connect them" in err
    assert file_of(family, "ann").read_bytes() != kept
    assert family("log", "repair-register", "--yes")[0] == 1


def test_a_store_in_use_is_not_repaired(family: Line) -> None:
    """While a log is open in another process the command fails, and says to close it."""
    file_of(family, "ann").unlink()
    log = FileStore(family.root, family.clock.now).open("sam", "everlog chat")
    try:
        assert "open in another process" in family.fails("log", "repair-register", "--yes")
    finally:
        log.close()
    family.ok("log", "repair-register", "--yes")


def test_an_old_store_needs_no_repair_and_keeps_its_files(cli: Line, tmp_path: Path) -> None:
    """A golden store of everlog 0.1 has files without checksums: check finds no fault, and the repair changes none."""
    source = Path(__file__).parents[2] / "golden" / "0.1" / "store"
    shutil.copytree(source, cli.root, copy_function=shutil.copyfile)
    before = {path: path.read_bytes() for path in (cli.root / "agents").rglob("*") if path.is_file()}
    cli.ok("log", "check", "--all")
    assert cli.ok("log", "repair-register", "--yes") == "The register agrees with the logs.\n"
    assert {path: path.read_bytes() for path in before} == before
    path = cli.root / "agents" / hash_of("mel")[:2] / hash_of("mel")
    path.unlink()
    assert "in the register, is missing" in cli.fails("events", "mel")
    cli.ok("log", "repair-register", "--yes")
    cli.ok("log", "check", "--all")
