"""Lost and damaged parts of the register: every command names them, and none makes a lost agent again."""

import shutil
from pathlib import Path

import msgspec
import pytest

from everlog.store import FileStore, partition_of
from everlog.store.base.names import hash_of
from tests.support.cli.command_line import Line

HOUR = 3_600_000_000
"""Microseconds by which the clock of each test is later than that of the store it gets."""
REPAIR = "everlog log repair-register"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the store of `family`, which the first test that wants it makes."""
    return tmp_path_factory.mktemp("family") / "store"


@pytest.fixture
def family(cli: Line, built: Path) -> Line:
    """Sam with a fork Kid, Solo for himself, and Ann and Bob in a shard, with First, who was deleted."""
    if not built.exists():
        cli.ok("create", "first", "--placement", "shared", "--shards", "1")
        cli.ok("delete", "first", "--yes")
        cli.ok("send", "sam", "I sail")
        cli.ok("fork", "sam", "--new-name", "kid")
        cli.ok("send", "kid", "I row")
        cli.ok("create", "solo")
        for name in ("ann", "bob"):
            cli.ok("create", name, "--placement", "shared")
            cli.ok("send", name, "I swim")
        shutil.copytree(cli.root, built)
    shutil.rmtree(cli.root, ignore_errors=True)
    shutil.copytree(built, cli.root)
    cli.clock.at += HOUR
    return cli


def file_of(cli: Line, name: str) -> Path:
    """Return the path of an agent's file in the register."""
    return cli.root / "agents" / hash_of(name)[:2] / hash_of(name)


def log_of(cli: Line, name: str) -> Path:
    """Return the folder of the partition that an agent is in."""
    return cli.root / "log" / FileStore(cli.root, cli.clock.now).partition_of(name)


def contents(root: Path) -> dict[Path, bytes]:
    """Return every file of a store with its bytes."""
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "archive" not in path.parts}


def shape_of(cli: Line, *argv: str) -> list[dict[str, object]]:
    """Return the output with --json of a command that fails all the same."""
    code, out, _ = cli(*argv, "--json")
    assert code == 1
    found: list[dict[str, object]] = msgspec.json.decode(out)
    return found


def refuse(cli: Line, name: str, *words: str) -> None:
    """Check that each command about an agent fails with these words, and changes no file."""
    before = contents(cli.root)
    commands = [
        ("send", name, "Who am I?"), ("create", name), ("create", name, "--placement", "shared"), ("events", name),
        ("memory", name), ("log", "check", name), ("fork", "solo", "--new-name", name),
        ("fork", name, "--new-name", "other"), ("export", name, str(cli.root.parent / "out.everlog")),
        ("move", name, "--placement", "dedicated"), ("delete", name, "--yes"),
    ]  # fmt: skip
    for argv in commands:
        code, _, err = cli(*argv)
        if argv[:1] == ("fork",) and "already" in err:
            continue
        assert code == 1, argv
        for word in (*words, REPAIR):
            assert word in err, (argv, err)
        assert "makes one" not in err
    assert contents(cli.root) == before


def check_finds(cli: Line, *words: str) -> None:
    """Check that `log check --all` and `agents` fail, and name the fault with its cure."""
    for argv in (("log", "check", "--all"), ("log", "check", "--all", "--deep"), ("agents",)):
        code, _, err = cli(*argv)
        assert code == 1, argv
        for word in (*words, REPAIR):
            assert word in err, (argv, err)


def test_a_lost_shard_folder_is_never_made_again(family: Line) -> None:
    """F1: each command about an agent of the shard names the missing folder, and so do `log check --all`, `agents` and
    `sql`. A new agent is not put into the shard either.
    """
    place = log_of(family, "ann")
    shutil.rmtree(place)
    for name in ("ann", "bob"):
        refuse(family, name, f"{place}, the log of '", "is missing. Restore it from a backup.")
    check_finds(family, f"{place}, the log of 'ann' and 2 more, is missing")
    assert "is missing" in family.fails("create", "new", "--placement", "shared")
    assert not place.exists()
    code, out, err = family("sql", "SELECT DISTINCT agent_id FROM records")
    assert code == 1 and "sam" in out and f"{place}, the log of 'ann' and 2 more, is missing" in err
    assert [row["agent"] for row in shape_of(family, "agents")] == ["kid", "sam", "solo"]


def test_a_lost_folder_of_an_agent_is_found_without_naming_the_agent(family: Line) -> None:
    """F1: `log check --all` names the missing log of a dedicated agent, also if no other agent reads it."""
    place = log_of(family, "solo")
    shutil.rmtree(place)
    assert f"{place}, the log of 'solo', is missing" in family.fails("events", "solo")
    check_finds(family, f"{place}, the log of 'solo', is missing")


def test_a_lost_register_file_of_a_shared_agent_is_never_made_again(family: Line) -> None:
    """F2 a: each command names the lost file; no second stream of the name begins."""
    path = file_of(family, "ann")
    path.unlink()
    refuse(family, "ann", f"{path}, the file of 'ann' in the register, is missing")
    check_finds(family, f"{path}, the file of 'ann' in the register, is missing")
    assert not path.exists()


def test_a_lost_register_file_of_a_fork_never_cuts_its_past_off(family: Line) -> None:
    """F2 b: the fork is not opened without the records before its fork point."""
    path = file_of(family, "kid")
    path.unlink()
    refuse(family, "kid", f"{path}, the file of 'kid' in the register, is missing")
    check_finds(family, f"{path}, the file of 'kid' in the register, is missing")


def test_a_parent_is_not_deleted_while_the_register_may_lack_a_fork_of_it(family: Line) -> None:
    """F2 b: nothing removes what a fork reads as long as the register has lost the file of an agent."""
    path = file_of(family, "kid")
    path.unlink()
    for command in (("delete", "sam", "--yes"), ("erase", "sam", "--match", "sail", "--yes")):
        error = family.fails(*command)
        assert f"{path}, the file of 'kid' in the register, is missing" in error and REPAIR in error
    family.ok("log", "repair-register", "--yes")
    assert "has forks that are not deleted: kid" in family.fails("delete", "sam", "--yes")


def test_a_lost_register_is_not_an_empty_store(family: Line) -> None:
    """F2 c: without the folder of the register no agent is created again, and `agents` names each lost file."""
    shutil.rmtree(family.root / "agents")
    for name in ("ann", "sam", "kid", "solo"):
        assert f"the file of {name!r} in the register, is missing" in family.fails("send", name, "hello")
    check_finds(family, *(f"the file of {name!r} in the register" for name in ("ann", "bob", "kid", "sam", "solo")))
    assert "No agents yet" not in family("agents")[1]


def test_a_refused_fork_has_not_taken_the_name(family: Line) -> None:
    """F3: a fork under a name whose register file is lost is refused, and the name is not another agent's fork."""
    for name in ("kid", "sam"):
        path = file_of(family, name)
        kept = path.read_bytes()
        path.unlink()
        assert "in the register, is missing" in family.fails("fork", "solo", "--new-name", name)
        assert not path.exists()
        path.write_bytes(kept)
    assert family.ok("log", "check", "--all", "--deep")


def test_a_flipped_bit_in_a_register_file_is_named_by_every_command(family: Line) -> None:
    """F5: whichever byte of the file is changed, the fork is not read with another past, and the error names the
    file.
    """
    path = file_of(family, "kid")
    kept = path.read_bytes()
    for place in range(0, len(kept), 9):
        path.write_bytes(kept[:place] + bytes([kept[place] ^ 1]) + kept[place + 1 :])
        error = family.fails("events", "kid")
        assert f"{path}, a file of the register, is damaged" in error and REPAIR in error
    code, _, err = family("log", "check", "kid")
    assert code == 1 and str(path) in err


def test_one_damaged_register_file_leaves_the_others_listed(family: Line) -> None:
    """F11: `agents` and `log check --all` list every other agent and log, name the damaged file, and exit with 1."""
    path = file_of(family, "kid")
    path.write_bytes(b"x")
    check_finds(family, f"{path}, a file of the register, is damaged")
    assert [row["agent"] for row in shape_of(family, "agents")] == ["ann", "bob", "sam", "solo"]
    logs = shape_of(family, "log", "check", "--all")
    assert len(logs) == 4 and all(log["errors"] == [] for log in logs)
    family.ok("send", "sam", "hello")
    assert partition_of("kid") in {log["partition"] for log in logs}


def test_a_created_agent_never_says_that_it_does_not_exist(family: Line) -> None:
    """F11: `create` and `events` say the same about a name whose register file is lost."""
    file_of(family, "kid").unlink()
    assert family.fails("create", "kid") == family.fails("events", "kid")


def test_an_agent_whose_records_are_gone_has_not_just_been_created(family: Line) -> None:
    """F4: a registered agent without one record of all that it had is named as such, and does not begin again."""
    place = log_of(family, "ann")
    for path in place.glob("*.open"):
        path.write_bytes(b"")
    for name in ("ann", "bob"):
        refuse_words = f"{name!r} is registered and has begun, but its log, log/shard-000, has no record of it"
        for argv in (("send", name, "Who am I?"), ("events", name), ("log", "check", name)):
            error = family(*argv)[2]
            assert refuse_words in error and REPAIR in error
        check_finds(family, refuse_words)
    family.ok("create", "cy", "--placement", "shared")
    assert family.ok("events", "cy")


def test_a_lost_shared_block_and_a_lost_source_are_not_made_again(family: Line, tmp_path: Path) -> None:
    """A shared block and a source are streams like agents: a lost register file is named, and nothing begins again."""
    family.ok("shared", "create", "plan", "sail on Monday")
    note = tmp_path / "note.txt"
    note.write_text("The harbour opens at six.")
    family.ok("load", "sam", str(note), "--source", "harbour")
    for stream in ("block:plan", "source:harbour"):
        path = file_of(family, stream)
        kept = path.read_bytes()
        path.unlink()
        check_finds(family, f"{path}, the file of {stream!r} in the register, is missing")
        path.write_bytes(kept)
    file_of(family, "block:plan").unlink()
    assert "in the register, is missing" in "".join(family("shared", "create", "plan", "sail on Friday")[1:])
    assert not file_of(family, "block:plan").exists()
