"""`everlog replay` without an interactive terminal: lines, JSON, ranges, and errors of arguments."""

import asyncio
import json
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everlog.events import SystemAlert, draft, uuid7
from everlog.interfaces.cli.main import main
from everlog.interfaces.replay_console import replay_command
from everlog.store import FileStore
from tests.interfaces.cli.test_help import DOCUMENT, keys_of
from tests.support.cli.command_line import START, Line, completion, says


@pytest.fixture
def sam(cli: Line) -> Line:
    """Return an agent that edited its memory, had a failed call, and answered."""

    def make(line: Line) -> None:
        edit = ("core_memory_append", {"name": "human", "content": "Sails", "request_heartbeat": True})
        line.script.answers = [
            completion(edit, thought="A sailor!"),
            completion(("core_memory_replace", {"name": "human", "old_content": "no such", "new_content": "x"})),
            says("Ahoy."),
            says("Hello."),
        ]
        line.ok("send", "sam", "I sail", "--model", "script", "--window", "5000")
        line.ok("send", "sam", "Hi \x1b[31m[bold]there[/bold]")

    cli.begin("plain replay", make)
    return cli


def test_the_story_is_printed_at_once(sam: Line) -> None:
    """Turns, thoughts, calls, edits, failures and messages are printed in order, without waiting."""
    out = sam.ok("replay", "sam")
    parts = (
        "── turn 1 · ",
        "user      I sail",
        "thinks    A sailor!  · 1,020 tokens, 20%",
        'calls     core_memory_append(name="human", content="Sails") ♥',
        "memory    human appended: ",
        "{+ Sails+}",
        "→ ok      core_memory_append",
        "failed    core_memory_replace: ",
        "sam       Ahoy.",
        "── turn 2 · ",
        r"user      Hi \x1b[31m[bold]there[/bold]",
        "sam       Hello.",
    )
    places = [out.index(part) for part in parts]
    assert places == sorted(places)
    assert "\x1b" not in out
    assert not sam.sleeps
    assert not [line for line in out.splitlines() if line != line.rstrip()]


def test_each_record_has_its_lines(sam: Line) -> None:
    """Every record of the log is printed with its seq."""
    seqs = [line["seq"] for line in sam.lines("events", "sam")]
    printed = [line[:6].strip() for line in sam.ok("replay", "sam").splitlines()]
    assert [int(seq) for seq in printed if seq.isdecimal()] == seqs


def test_json_says_what_each_record_changed(sam: Line) -> None:
    """Each record is one JSON line; all changes of memory and context together give the state that the commands
    show.
    """
    lines = sam.lines("replay", "sam")
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    blocks: dict[str, str] = {}
    context: dict[str, object] = {}
    for line in lines:
        edit = line["changed"].get("memory")
        if edit:
            assert edit["before"] == blocks.get(edit["label"], "")
            assert edit["value"] == "".join(text for change, text in edit["difference"] if change != "removed")
            blocks[edit["label"]] = edit["value"]
        context.update(line["changed"].get("context", {}))
    assert blocks == {block["label"]: block["value"] for block in sam.json("memory", "sam")["blocks"]}
    now = sam.json("pressure", "sam")
    names = ("tokens", "window", "fraction", "warned", "summary_seq")
    assert {name: context[name] for name in names} == {name: now[name] for name in names}
    called = [call["name"] for line in lines for call in line["changed"].get("calls", [])]
    ended = [line["changed"]["result"] for line in lines if "result" in line["changed"]]
    assert sorted(called) == sorted(result["name"] for result in ended)
    assert [result["name"] for result in ended if not result["ok"]] == ["core_memory_replace"]


def test_every_json_key_is_documented(sam: Line) -> None:
    """docs/reference/cli.md names each key."""
    assert {key for key in keys_of(sam.lines("replay", "sam")) if f"`{key}`" not in DOCUMENT} == set()


def test_a_part_of_the_story(sam: Line) -> None:
    """--from and --to are inclusive, and the state before --from is known."""
    whole = sam.lines("replay", "sam")
    assert sam.lines("replay", "sam", "--from", "5", "--to", "9") == whole[4:9]
    assert sam.ok("replay", "sam", "--from", "5", "--to", "9") in sam.ok("replay", "sam")


@pytest.mark.parametrize("argv", ["--from 999", "--to 999", "--from 9 --to 5", "--from 999 --follow"])
def test_a_range_that_is_not_there(sam: Line, argv: str) -> None:
    """A range beyond the head is an error that names the head."""
    head = sam.json("memory", "sam")["as_of"]
    assert f"it has 1 to {head}, the head" in sam.fails("replay", "sam", *argv.split())


@pytest.mark.parametrize("speed", ["0", "-1", "x", "nan", "inf", "1e9", "8y", ""])
def test_a_speed_that_is_none(cli: Line, speed: str) -> None:
    """An invalid speed is bad usage."""
    code, _, err = cli("replay", "sam", f"--speed={speed}")
    assert code == 2
    assert "is not a speed from 0.125x to 1024x" in " ".join(err.split())


def test_speeds_are_typed_with_or_without_their_sign(sam: Line) -> None:
    """8, 8x and 0.5X are speeds; without a terminal they change nothing."""
    whole = sam.ok("replay", "sam")
    for speed in ("8", "8x", "0.5X"):
        assert sam.ok("replay", "sam", "--speed", speed) == whole


def test_an_agent_that_is_not_there(sam: Line) -> None:
    """An unknown agent is an error that names similar names."""
    assert "sam" in sam.fails("replay", "sma")


@pytest.mark.beside_store("the log is written by another process, while the server has it open")
def test_following_shows_new_records(sam: Line) -> None:
    """`--follow` prints the story, then new records after each look, until Ctrl-C."""
    head = sam.json("memory", "sam")["as_of"]
    said = draft(SystemAlert(text="late"), event_id=uuid7(START, 99), recorded_at=START, turn=9, step=0)

    def on_sleep() -> None:
        if len(sam.sleeps) > 1:
            raise KeyboardInterrupt
        log = FileStore(sam.root, sam.clock.now).open("sam", "test")
        log.append("sam", head, [said])
        log.close()

    sam.on_sleep = on_sleep
    code, out, err = sam("replay", "sam", "--follow", "--from", str(head), "--json")
    assert code == 130
    assert err == ""
    assert [(line["seq"], line["text"]) for line in map(json.loads, out.splitlines())][1:] == [(head + 1, "late")]
    assert sam.sleeps == [0.5, 0.5]


def test_following_ends_at_the_given_record(sam: Line) -> None:
    """With --to the command ends at that record, without looking again."""
    assert sam.ok("replay", "sam", "--follow", "--to", "5") == sam.ok("replay", "sam", "--to", "5")
    assert not sam.sleeps


def test_erased_content_is_not_shown(sam: Line) -> None:
    """Neither lines nor JSON contain erased text; its record is shown as erased."""
    sam.ok("erase", "sam", "--all", "--yes")
    out = sam.ok("replay", "sam")
    assert "sail" not in out.lower()
    assert "erased" in out
    assert all(line["text"] is None for line in sam.lines("replay", "sam")[:-1])


def test_nothing_is_written(sam: Line) -> None:
    """After a replay the store has the same files with the same bytes."""

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in sam.root.rglob("*") if path.is_file()}

    before = files()
    sam.ok("replay", "sam")
    assert files() == before


def test_a_terminal_that_shows_only_lines_gets_lines(sam: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """With TERM=dumb there is no console, even on a terminal."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "user      I sail" in sam.ok("replay", "sam")


def test_the_console_forks_by_way_of_the_agents(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key F calls `AgentSystem.fork` with both names and the shown seq."""
    asked: list[tuple[str, str, int]] = []

    class Forks:
        async def fork(self, name: str, new_name: str, *, at: int) -> None:
            await asyncio.sleep(0)
            asked.append((name, new_name, at))

    @asynccontextmanager
    async def agents(*_: object) -> AsyncIterator[Forks]:
        yield Forks()

    monkeypatch.setattr(replay_command, "agents_of", agents)
    replay_command._forker(Namespace(name="sam"), cli.world)(7, "bob")
    assert asked == [("sam", "bob", 7)]


def test_it_needs_no_terminal_library(sam: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a system without termios, the story is printed as lines."""
    monkeypatch.setitem(__import__("sys").modules, "termios", None)
    assert main(["--store", str(sam.root), "replay", "sam"], world=sam.world) == 0
