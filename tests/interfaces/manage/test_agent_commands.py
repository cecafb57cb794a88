"""`everlog import` and `delete`."""

import json

import pytest

from everlog.events import ModelError
from tests.support.cli.command_line import Line

LINES = [
    {"role": "user", "name": "Ann", "content": "I bought a boat.", "time": "2023-05-08T13:56:00+00:00", "ref": "D1:1"},
    {"role": "assistant", "name": "Bo", "content": "What is she called?", "time": "2023-05-08T13:57:00", "ref": "D1:2"},
    {"role": "user", "name": "Ann", "content": "Dawn Treader.", "time": "2023-06-01"},
]


@pytest.fixture
def talk(tmp_path):
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return path


def test_import(cli: Line, talk):
    """A conversation is imported with its own times, starts no turn, and is found by search with its refs."""
    shape = cli.json("import", "ann", str(talk))
    assert shape == {
        "agent": "ann", "messages": 3, "summaries": 0, "left_out": {},
        "first": "2023-05-08T13:56:00.000000Z", "last": "2023-06-01T00:00:00.000000Z",
    }  # fmt: skip
    hit = cli.json("search", "ann", "boat")["results"][0]
    assert (hit["ref"], hit["name"], hit["time"]) == ("D1:1", "Ann", "2023-05-08T13:56:00.000000Z")
    assert not cli.script.asked
    assert "Imported 3 messages from 2023-05-08 to 2023-06-01" in cli.ok("import", "bo", str(talk))


@pytest.mark.beside_store("a server has a store")
def test_a_bad_line_is_named_and_nothing_is_kept(cli: Line, talk):
    """One bad line fails the import: the error names the line's number, no record is written, and no agent is
    created.
    """
    with talk.open("a") as file:
        file.write('{"role": "robot", "content": "x", "time": "2023-06-01"}\n')
    assert "talk.jsonl, line 4" in cli.fails("import", "ann", str(talk))
    assert not cli.root.exists()
    assert "cannot be read" in cli.fails("import", "ann", "/no/such/file")


def test_the_same_file_is_not_imported_twice(cli: Line, talk):
    """A file whose refs are all known already is refused without --again; one new ref is enough for the file to be
    imported.
    """
    cli.ok("import", "ann", str(talk))
    head = cli.json("memory", "ann")["as_of"]
    told = cli.fails("import", "ann", str(talk))
    assert "imported already" in told
    assert "--again" in told
    assert cli.json("memory", "ann")["as_of"] == head
    assert cli.json("import", "ann", str(talk), "--again")["messages"] == 3
    with talk.open("a") as file:
        file.write('{"role": "user", "content": "New.", "time": "2023-06-02", "ref": "D2:1"}\n')
    assert cli.json("import", "ann", str(talk))["messages"] == 4


def test_a_file_without_refs_is_taken_again(cli: Line, tmp_path):
    """Messages without a ref never count as known."""
    path = tmp_path / "bare.jsonl"
    path.write_text('{"role": "user", "content": "Hello.", "time": "2023-06-02"}\n')
    assert cli.ok("import", "ann", str(path)) == "Imported 1 message of 2023-06-02 into ann.\n"
    cli.ok("import", "ann", str(path))


def test_an_import_while_the_model_is_down(cli: Line, tmp_path):
    """All messages are stored, the exit code is 0, and a warning says that summaries are made before the next reply."""
    path = tmp_path / "long.jsonl"
    words = "the sea was wide and the wind was kind to us " * 12
    path.write_text(
        "".join(json.dumps({"role": "user", "content": words, "time": f"2023-05-{d:02}"}) + "\n" for d in range(1, 30))
    )
    cli.script.answers = [ModelError("The endpoint is down.", kind="unreachable")]
    code, out, err = cli("import", "ann", str(path), "--window", "4096", "--json")
    assert (code, json.loads(out)["summaries"]) == (0, 0)
    assert "29 messages imported" in err
    assert "before the next reply" in err
    cli.ok("send", "ann", "hello")
    assert cli.json("pressure", "ann")["summaries"] >= 1


def test_delete_needs_no_model(cli: Line, monkeypatch):
    """An agent whose model has lost its key can be deleted."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    cli.ok("create", "sam", "--model", "gpt-x")
    cli.real = True
    assert "Deleted sam" in cli.ok("delete", "sam", "--yes")


@pytest.mark.parametrize("command", ["memory", "context", "pressure", "events", "search"])
def test_reading_a_deleted_agent(command, cli: Line):
    """Reading commands show a deleted agent as it was, and say on stderr that it was deleted."""
    cli.ok("send", "sam", "I have a boat.")
    cli.ok("delete", "sam", "--yes")
    code, out, err = cli(command, "sam", *(["boat"] if command == "search" else []))
    assert code == 0
    assert out
    assert err.startswith("everlog: 'sam' was deleted")


def test_a_long_import_is_summarized(cli: Line, tmp_path):
    """An imported conversation beyond the window is summarized at once, and the context fits."""
    path = tmp_path / "long.jsonl"
    words = "the sea was wide and the wind was kind to us " * 12
    path.write_text(
        "".join(json.dumps({"role": "user", "content": words, "time": f"2023-05-{d:02}"}) + "\n" for d in range(1, 30))
    )
    shape = cli.json("import", "ann", str(path), "--window", "4096")
    context = cli.json("context", "ann")
    assert shape["summaries"] >= 1
    assert context["tokens"] <= context["window"]
    assert cli.json("pressure", "ann")["summaries"] == shape["summaries"]


def test_delete_needs_a_yes(cli: Line, monkeypatch):
    """Without a terminal --yes is required; on a terminal the user's answer decides."""
    cli.ok("create", "sam")
    code, _, err = cli("delete", "sam")
    assert code == 2
    assert "--yes" in err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    cli.typed = ["n"]
    assert cli("delete", "sam")[0] == 1
    assert len(cli.json("agents")) == 1
    cli.typed = ["y"]
    assert "Deleted sam" in cli.ok("delete", "sam")
    assert cli.json("agents") == []


def test_a_deleted_name_begins_again(cli: Line):
    """A deleted agent is in no list, cannot be deleted again, and keeps its log; a new agent can be created under its
    name.
    """
    cli.ok("send", "sam", "My secret is blue.")
    cli.ok("delete", "sam", "--yes")
    assert "already" in cli.fails("delete", "sam", "--yes")
    cli.ok("create", "sam")
    assert cli.json("search", "sam", "secret")["total"] == 0
    assert "My secret is blue." in [record["text"] for record in cli.lines("events", "sam")]


@pytest.mark.parametrize(("name", "called"), [("sam", "Sam"), ("ann", "Ann"), ("conv-26", "conv-26"), ("R2D2", "R2D2")])
def test_each_agent_knows_its_own_name(cli: Line, name: str, called: str) -> None:
    """The shipped persona names the agent itself, also where an option changes the block; a fork keeps its parent's."""
    cli.ok("create", name)
    cli.ok("create", f"{name}2", "--block-read-only", "persona")
    cli.ok("fork", name, "--new-name", "tom")

    def persona(agent: str) -> str:
        return cli.json("memory", agent)["blocks"][0]["value"].splitlines()[0]

    assert persona(name) == persona("tom") == f"My name is {called}. I am a warm and curious companion."
    assert persona(f"{name}2").startswith(f"My name is {name}2.")


def test_create_says_how_the_model_calls_functions(cli: Line):
    """For a model of an endpoint the way of calling is named, with its origin; the offline model has one way only."""
    said = cli.ok("create", "ann", "--model", "script", "--calling", "text")
    assert "script calls functions in its text (text) (as --calling says)." in said
    assert "calls functions by the endpoint's tools (native) (the default; " in cli.ok(
        "create", "bo", "--model", "script"
    )
    assert "calls functions" not in cli.ok("create", "cy", "--model", "offline")
    shape = cli.json("create", "di", "--model", "script", "--window", "4096")
    assert {key: shape[key] for key in ("model", "window", "preset", "calling")} == {
        "model": "script", "window": 4096, "preset": "small", "calling": "native",
    }  # fmt: skip


def test_the_lines_of_a_block_can_be_items(cli: Line, tmp_path):
    """--block-items makes items of the lines of a block, and gives the agent functions for them."""
    (tmp_path / "tasks.txt").write_text("buy tea\n\ncall Ingrid\n")
    cli.ok("create", "ann", "--block", f"tasks={tmp_path / 'tasks.txt'}", "--block-items", "tasks")
    assert "buy tea\ncall Ingrid" in [block["value"] for block in cli.json("memory", "ann")["blocks"]]
    assert "core_memory_item_remove" in cli.ok("events", "ann", "--json")
    assert "the agent gets no block 'plans'" in cli.fails("create", "bo", "--block-items", "plans")
