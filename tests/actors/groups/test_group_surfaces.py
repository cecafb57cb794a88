"""Groups from the command line and over HTTP: made, listed, changed, and refused if they cannot work."""

import asyncio
import json
from pathlib import Path

import pytest

from everlog.interfaces.cli.main import main
from tests.support.cli.command_line import Script
from tests.support.http.served_store import served


def test_groups_are_made_listed_and_refused_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`create --group` makes a group, `agents --groups` lists groups alone, and a bad group leaves nothing."""

    def command(*words: str) -> str:
        code = main([*words, "--store", str(tmp_path)])
        shown = capsys.readouterr()
        assert (code == 0) == (not shown.err), shown
        return shown.out + shown.err

    for name in ("ann", "bob", "boss"):
        command("create", name)
    assert command("agents", "--groups") == "There is no group. `everlog create --group` makes one.\n"
    command("create", "team", "--group", "round-robin", "--member", "ann", "--member", "bob", "--rounds", "2")
    command("create", "panel", "--group", "supervisor", "--member", "ann", "--manager", "boss")
    listed = {row["agent"]: row["group"] for row in json.loads(command("agents", "--groups", "--json"))}
    assert listed == {
        "panel": {"rule": "supervisor", "members": ["ann"], "manager": "boss"},
        "team": {"rule": "round-robin", "members": ["ann", "bob"], "manager": None},
    }
    assert "supervisor: ann (manager boss)" in command("agents", "--groups")
    assert "There is no agent 'eve'" in command("create", "new", "--group", "round-robin", "--member", "eve")
    assert "make 34 speeches" in command("configure", "team", "--rounds", "17")
    assert "needs a manager" in command("configure", "team", "--group", "dynamic", "--rounds", "1")
    assert "1 to 16 members, not 0" in command("configure", "team", "--member", "none")
    assert {row["agent"] for row in json.loads(command("agents", "--json"))} == {"ann", "bob", "boss", "panel", "team"}
    command("configure", "panel", "--group", "dynamic", "--member", "bob", "--rounds", "3")
    command("configure", "panel", "--label", "crew")
    assert [row["agent"] for row in json.loads(command("agents", "--groups", "--label", "crew", "--json"))] == ["panel"]
    assert command("agents", "--groups", "--label", "night") == "No group has the label 'night'.\n"
    assert "members: bob" in command("configure", "panel")


def test_groups_of_a_tenant_over_http(tmp_path: Path) -> None:
    """A group is made with settings like any agent, of agents of its tenant, and a message to it asks its members."""

    async def main() -> None:
        async with served(tmp_path, Script([])) as server:
            key = server.key(tenant="acme")
            await server.call("POST", "/agents", {"name": "eve"}, headers=server.key(), status=201)
            for name in ("ann", "bob"):
                await server.call("POST", "/agents", {"name": name}, headers=key, status=201)
            group = {"model": "group/round-robin", "members": ["ann", "eve"]}
            refused = await server.call("POST", "/agents", {"name": "team", "settings": group}, headers=key, status=400)
            assert "There is no agent 'eve'" in refused["message"]
            await server.call("GET", "/agents/team", headers=key, status=404)
            group["members"] = ["ann", "bob"]
            await server.call("POST", "/agents", {"name": "team", "settings": group}, headers=key, status=201)
            sent = await server.call("POST", "/agents/team/messages", {"text": "Hi"}, headers=key, status=200)
            (asked,) = sent["calls"]
            assert (asked["name"], json.loads(asked["arguments"])["name"]) == ("ask_agent", "ann")
            many = {"settings": {"members": ["ann"] * 2}}
            again = await server.call("PATCH", "/agents/team", many, headers=key, status=400)
            assert "'ann' is given twice" in again["message"]
            alone = {"settings": {"members": ["bob"], "rounds": 3}}
            await server.call("PATCH", "/agents/team", alone, headers=key, status=200)

    asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    [("--model", "offline", "--group", "round-robin"), ("--group", "round-robin", "--model", "offline")],
    ids=["model first", "group first"],
)
def test_a_group_with_a_model_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    """`--model` and `--group` in one command end it with exit code 2, in any order, and leave no agent."""
    base = ("--store", str(tmp_path))
    assert main(["create", "ann", *base]) == 0
    for words in (("create", "team"), ("configure", "ann")):
        assert main([*words, *options, "--member", "ann", *base]) == 2
        assert "--model and --group exclude each other" in capsys.readouterr().err
    main(["agents", "--json", *base])
    assert [row["agent"] for row in json.loads(capsys.readouterr().out)] == ["ann"]
