"""`everlog dataset`: what people saw, and what models saw, with nothing that was erased."""

import json
from pathlib import Path
from typing import Any

from everlog.interfaces.cli.main import main
from tests.support.cli.command_line import Line


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_people_see_messages_of_users_and_agents(cli: Line, tmp_path: Path) -> None:
    """One line for each agent that matches, with roles and texts; `--turns` divides it."""
    for name in ("sam", "support-1"):
        cli.ok("send", name, "My name is Chad")
        cli.ok("send", name, "What is my name?")
    out = tmp_path / "set.jsonl"
    told = cli.ok("dataset", "support-*", "--out", str(out))
    assert told == f"Wrote 1 line of 1 agent to {out}.\n"
    (one,) = lines(out)
    assert (one["agent"], [message["role"] for message in one["messages"]][-2:]) == ("support-1", ["user", "assistant"])
    assert "My name is Chad" in [message["content"] for message in one["messages"]]
    assert "exists already" in cli.fails("dataset", "--out", str(out))
    assert cli.json("dataset", "--out", str(out), "--force", "--turns", "1")["lines"] == 4


def test_models_see_requests_with_the_recorded_hash(cli: Line, tmp_path: Path) -> None:
    """Each line has the chat messages of a request, the reply as the last one, and the tools."""
    cli.ok("send", "sam", "My name is Chad")
    out = tmp_path / "set.jsonl"
    assert cli.json("dataset", "--out", str(out), "--view", "models")["left_out"] == {}
    events = map(json.loads, cli.ok("events", "sam", "--type", "model_reply", "--json").splitlines())
    replies = [event for event in events if event["payload"].get("context_sha256")]
    found = lines(out)
    assert [(one["seq"], one["request_sha256"]) for one in found] == [
        (r["seq"], r["payload"]["context_sha256"]) for r in replies
    ]
    assert found[0]["messages"][0]["role"] == "system"
    assert found[-1]["messages"][-1]["role"] == "assistant"
    assert any(call["function"]["name"] for one in found for call in one["messages"][-1].get("tool_calls", []))


def test_erased_words_are_in_no_dataset(cli: Line, tmp_path: Path) -> None:
    """After an erasure neither view has the words, and the requests that had them are counted."""
    cli.ok("send", "sam", "My number is 4711")
    cli.ok("send", "sam", "Hello again")
    cli.ok("erase", "sam", "--match", "4711", "--derived", "--yes")
    out = tmp_path / "set.jsonl"
    for view in ("people", "models"):
        shape = cli.json("dataset", "--out", str(out), "--view", view, "--force")
        assert b"4711" not in out.read_bytes()
    assert sum(shape["left_out"].values()) >= 1


def test_times_and_patterns_select(cli: Line, tmp_path: Path) -> None:
    """A time in the future selects nothing; a seq, an unknown pattern and `--turns` with models are refused."""
    cli.ok("send", "sam", "Hello")
    out = tmp_path / "set.jsonl"
    assert cli.json("dataset", "--out", str(out), "--since", "8000-01-01")["lines"] == 0
    for wrong in (["--until", "7"], ["nobody-*"], ["--view", "models", "--turns", "2"]):
        assert cli.fails("dataset", *wrong, "--out", str(out), "--force")
    assert main(["dataset", "--store", str(cli.root)]) == 2


def test_a_failed_write_leaves_no_file(cli: Line, tmp_path: Path) -> None:
    """A folder that does not exist is named, and no part of a file is left."""
    cli.ok("send", "sam", "Hello")
    assert "could not write" in cli.fails("dataset", "--out", str(tmp_path / "no" / "set.jsonl"))
    assert not list(tmp_path.rglob("*.part"))
