"""`everlog export --af` and `everlog restore FILE.af`: an agent leaves as a file of Letta, and comes from one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.imports.test_import_formats import agent_file
from tests.interfaces.imports.test_other_agent_files import flat_file, memgpt_state
from tests.support.cli.command_line import Line, completion, says
from tests.support.http.served_line import served_line


@pytest.fixture
def other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """Return the command line over another empty store."""
    return Line(tmp_path / "other", capsys)


def blocks(cli: Line, name: str) -> list[tuple[Any, ...]]:
    return [
        (block["label"], block["value"], block["limit"], block["description"], block["read_only"])
        for block in cli.json("memory", name)["blocks"]
    ]


def words(cli: Line, name: str) -> list[dict[str, Any]]:
    query = f"SELECT role, name, text, epoch_us(said_at) AS at FROM messages WHERE agent_id = '{name}' ORDER BY seq"
    rows = cli.json("sql", query)["rows"]
    return [dict(zip(("role", "name", "text", "at"), row, strict=True)) for row in rows]


def talk(cli: Line) -> None:
    """Make an agent with a conversation, a search, an edit of its memory, another block and a removed one."""

    def make(line: Line) -> None:
        line.script.answers = [
            completion(("core_memory_append", {"name": "human", "content": "Ann.", "request_heartbeat": True})),
            says("Hello Ann!"),
            completion(("archival_memory_insert", {"content": "Ann sails."}), ("send_message", {"message": "I see."})),
        ]
        line.ok("create", "sam", "--model", "script", "--zone", "Europe/Oslo", "--sampling", "temperature=0.5")
        line.ok("send", "sam", "I am Ann.")
        line.ok("send", "sam", "I sail.")
        line.ok("block", "add", "sam", "notes", "Pack.", "--limit", "99", "--description", "Of trips", "--read-only")
        line.ok("block", "remove", "sam", "persona")

    cli.begin("agent for a file", make)


def test_an_agent_leaves_as_a_file_of_letta_and_comes_back(cli: Line, other: Line, tmp_path: Path) -> None:
    """Blocks, prompt, model, window, zone and words with their times are the same, and what is not is told."""
    talk(cli)
    file = tmp_path / "sam.af"
    out = cli.ok("export", "sam", str(file), "--af")
    assert out.splitlines()[0].startswith("Exported ")
    assert out.splitlines()[1] == "Left out: 1 archival memories."
    assert other.ok("restore", str(file)).startswith("Restored sam: 2 blocks and 4 messages, model script.\nLeft out: ")
    assert blocks(other, "sam") == blocks(cli, "sam")
    assert words(other, "sam") == words(cli, "sam")
    shown, before = (line.json("configure", "sam")["settings"] for line in (other, cli))
    assert {key: shown[key] for key in ("model", "window", "zone", "sampling")} == {
        key: before[key] for key in ("model", "window", "zone", "sampling")
    }
    assert other.json("context", "sam")["messages"][0]["content"].startswith(
        json.loads(file.read_bytes())["agents"][0]["system"][:200]
    )
    other.script.answers = [says("I know you.")]
    assert "I know you." in other.ok("send", "sam", "Do you know me?")
    assert other.ok("restore", str(file)) == "sam exists already, with the blocks and messages of the file.\n"


def test_the_same_agent_gives_the_same_file(cli: Line, tmp_path: Path) -> None:
    """Two exports of the same records are the same bytes, and an existing file is kept unless --force is given."""
    talk(cli)
    files = [tmp_path / "a.af", tmp_path / "b.af"]
    for file in files:
        cli.ok("export", "sam", str(file), "--af")
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "exists already" in cli.fails("export", "sam", str(files[0]), "--af")
    cli.ok("export", "sam", str(files[0]), "--af", "--force")
    assert sorted(path.name for path in tmp_path.glob("*.af*")) == ["a.af", "b.af"]


def test_the_name_of_the_file_says_which_format(cli: Line, tmp_path: Path) -> None:
    """A file that ends with .af is an agent file, with the option or without, which may stand before the file."""
    talk(cli)
    for words_of in (("one.af",), ("--af", "two.af"), ("three.af", "--af")):
        cli.ok("export", "sam", *[str(tmp_path / word) if word.endswith(".af") else word for word in words_of])
    made = [(tmp_path / name).read_bytes() for name in ("one.af", "two.af", "three.af")]
    assert made[0] == made[1] == made[2] and b'"agents"' in made[0]


def test_the_json_of_both_commands_counts(cli: Line, other: Line, tmp_path: Path) -> None:
    """`--json` has counts of what went over and of what did not."""
    talk(cli)
    file = str(tmp_path / "sam.af")
    shape = cli.json("export", "sam", file, "--af")
    assert (shape["agent"], shape["file"], shape["blocks"]) == ("sam", file, 2)
    assert shape["left_out"] == {"archival memories": 1}
    (one,) = other.json("restore", file, "--new-name", "copy")["agents"]
    assert (one["agent"], one["blocks"], one["messages"], one["model"]) == ("copy", 2, 4, "script")
    assert one["left_out"]["system events"] > 0


def test_a_pattern_writes_a_file_for_each_agent(cli: Line, tmp_path: Path) -> None:
    """`export --af PATTERN FOLDER` writes each agent to a file of its own."""
    for name in ("fleet-1", "fleet-2", "sam"):
        cli.ok("create", name)
    assert cli.ok("export", "fleet-*", str(tmp_path / "out"), "--af") == f"Exported 2 agents to {tmp_path / 'out'}.\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["fleet-1-ab6c1a58.af", "fleet-2-e4eb1aad.af"]


def test_another_agent_of_the_name_is_not_touched(cli: Line, tmp_path: Path) -> None:
    """A name of another agent is an error before anything is written; --new-name gives another."""
    talk(cli)
    file = tmp_path / "tim.af"
    value = agent_file()
    value["agents"][0]["name"] = "sam"
    file.write_text(json.dumps(value))
    before = cli.lines("events", "sam")
    assert "is not the one of the file" in cli.fails("restore", str(file))
    assert cli.lines("events", "sam") == before
    cli.ok("restore", str(file), "--new-name", "tim")
    assert [row["text"] for row in words(cli, "tim")] == ["I am Ann.", "Hello Ann!", "Anything else?"]
    assert blocks(cli, "tim") == [("human", "Ann sails.", 5000, "", False)]


def test_an_interrupted_restore_continues(cli: Line, tmp_path: Path) -> None:
    """An agent that was created and got no messages yet is completed by the same command."""
    file = tmp_path / "tim.af"
    value = agent_file()
    messages = value["agents"][0].pop("messages")
    file.write_text(json.dumps(value))
    cli.ok("restore", str(file))
    value["agents"][0]["messages"] = messages
    file.write_text(json.dumps(value))
    assert cli.ok("restore", str(file)).startswith("Restored tim: 1 block and 3 messages")
    assert len(words(cli, "tim")) == 3


@pytest.mark.parametrize(("value", "name"), [(flat_file(), None), (memgpt_state(), "tim")], ids=["flat", "memgpt"])
def test_earlier_files_make_agents_too(cli: Line, tmp_path: Path, value: Any, name: str | None) -> None:
    """The flat file and a saved agent of MemGPT make an agent with their prompt, blocks and words."""
    file = tmp_path / "old.json"
    file.write_text(json.dumps(value))
    cli.ok("restore", str(file), *(["--new-name", name] if name else []))
    assert "I am Sam." in {block[1] for block in blocks(cli, "tim")}
    assert cli.json("context", "tim")["messages"][0]["content"].startswith(value["system"])
    assert words(cli, "tim")


@pytest.mark.parametrize(
    ("argv", "fault"),
    [
        (["export", "sam", "f.af", "--af", "--with-sources"], "leave out --all and --with-sources"),
        (["export", "--all", "out", "--af"], "leave out --all and --with-sources"),
        (["export", "sam", "--af"], "give NAME and FILE.af"),
    ],
)
def test_options_that_mean_nothing_for_an_agent_file_are_refused(cli: Line, argv: list[str], fault: str) -> None:
    """A wrong use is told before anything is read."""
    code, _, err = cli(*argv)
    assert code == 2
    assert fault in err


def test_a_new_name_is_for_agent_files(cli: Line, tmp_path: Path) -> None:
    """A file of everlog keeps its name, because that is part of its chain."""
    cli.ok("create", "sam")
    file = str(tmp_path / "sam.everlog")
    cli.ok("export", "sam", file)
    code, _, err = cli("restore", file, "--new-name", "bo")
    assert code == 2
    assert "everlog rename" in err


def test_agents_of_a_server_go_and_come_the_same_way(
    cli: Line, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --server, the agents of the server are written and restored as those of a store."""
    talk(cli)
    file = str(tmp_path / "sam.af")
    cli.ok("export", "sam", file, "--af")
    with served_line(tmp_path / "served", capsys) as line:
        line.ok("restore", file)
        assert line.ok("restore", file) == "sam exists already, with the blocks and messages of the file.\n"
        assert blocks(line, "sam") == blocks(cli, "sam")
        line.ok("export", "sam", str(tmp_path / "again.af"), "--af")
        assert line.json("traces", "sam", "--out", str(tmp_path / "t"))["agents"] == 0
    first, again = (json.loads((tmp_path / name).read_bytes()) for name in ("sam.af", "again.af"))
    assert again["blocks"] == first["blocks"]
    assert again["agents"][0]["system"] == first["agents"][0]["system"]
