"""`everlog a2a`: a remote agent is added by its card, listed, tested, given to an agent, and removed."""

import json

import pytest

from tests.support.cli.command_line import Line

pytest.importorskip("a2a", reason="the extra a2a is not installed")

from tests.support.a2a.sdk_server import Clerk, sdk_server

pytestmark = pytest.mark.beside_store("the commands look after a file of the store")


def test_a_remote_agent_is_added_tested_and_removed(cli: Line) -> None:
    """`a2a add` shows the card and keeps its words; the function waits for a person unless the operator says otherwise;
    `a2a remove` takes it away.
    """
    with sdk_server(Clerk()) as address:
        added = cli.ok("a2a", "add", "clerk", address)
        assert "Clerk, at " in added
        assert "Prints posters." in added
        (row,) = json.loads(cli.ok("a2a", "list", "--json"))
        assert (row["function"], row["approval"], row["description"]) == (
            "ask_clerk", True, "Clerk: Does what clerks do. Print: Prints posters.",
        )  # fmt: skip
        assert json.loads(cli.ok("a2a", "test", "clerk", "--json"))["found"]["url"] == f"{address}/rpc"
        cli.ok("create", "sam")
        cli.ok("send", "sam", "Hi", "--a2a", "clerk")
        assert "remote agent clerk" in cli.ok("tools", "sam", "--a2a", "clerk", "--json")
        assert "already" in cli.fails("a2a", "add", "clerk", address)
    assert "cannot be asked" in cli.fails("a2a", "test", "clerk")
    assert cli.ok("a2a", "remove", "clerk") == "Removed clerk.\n"
    assert "There are no remote agents" in cli.ok("a2a", "list")
    assert "There is no remote agent 'clerk'" in cli.fails("chat", "sam", "--a2a", "clerk")


def test_an_address_without_a_card_adds_nothing(cli: Line) -> None:
    """An address without a card is an error, and the file stays as it was."""
    assert "cannot be asked" in cli.fails("a2a", "add", "clerk", "http://127.0.0.1:9/x")
    assert "an address such as" in cli.fails("a2a", "add", "clerk", "clerk.example")
    assert "NO_KEY, which is not set" in cli.fails("a2a", "add", "clerk", "http://127.0.0.1:9/x", "--token", "NO_KEY")
    assert not (cli.root / "a2a.toml").exists()
