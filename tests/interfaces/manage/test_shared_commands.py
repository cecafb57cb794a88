"""`everlog shared`: people make, edit, read and attach memory blocks that several agents share."""

import pytest

from tests.support.cli.command_line import Line, says


def test_a_block_is_made_attached_and_read_by_agents(cli: Line):
    """After its next answer each attached agent has a person's edit in memory; `verify` finds no difference."""
    for name in ("sam", "kim"):
        cli.ok("create", name)
    made = cli.json("shared", "create", "team", "The captain is Ann.", "--limit", "100", "--description", "On board")
    assert (made["version"], made["limit"], made["description"], made["read_only"]) == (1, 100, "On board", False)
    assert cli.json("shared", "attach", "sam", "team")["changed"]
    assert not cli.json("shared", "attach", "sam", "team")["changed"]
    assert cli.json("shared", "attach", "kim", "team", "--block-label", "crew")["label"] == "crew"
    cli.ok("shared", "set", "team", "The captain is Bob.", "--base", "1")
    assert "changed meanwhile" in cli.fails("shared", "set", "team", "Nobody.", "--base", "1")
    cli.script.answers = [says("Aye.")]
    cli.ok("send", "kim", "who is captain?")
    blocks = {block["label"]: block["value"] for block in cli.json("memory", "kim")["blocks"]}
    assert blocks["crew"] == "The captain is Bob."
    (listed,) = cli.json("shared", "list")
    assert listed["followers"] == [{"agent": "kim", "label": "crew"}, {"agent": "sam", "label": "team"}]
    assert "kim, sam" in cli.ok("shared", "list")
    cli.ok("shared", "detach", "kim", "team")
    assert "is not attached to 'kim'" in cli.fails("shared", "detach", "kim", "team")
    for proof in ("verify", "rebuild"):
        cli.ok(proof, "--all")
    cli.ok("log", "check", "--all")


def test_a_block_is_read_as_it_was(cli: Line):
    """A block is shown as of a version, with every edit and its author; a deleted block is marked, an erased one has no
    text.
    """
    cli.ok("shared", "create", "team", "one")
    cli.ok("shared", "set", "team", "two")
    cli.ok("shared", "describe", "team", "--read-only", "--limit", "50")
    assert cli.json("shared", "show", "team", "--as-of", "1")["value"] == "one"
    shown = cli.json("shared", "show", "team")
    assert (shown["value"], shown["limit"], shown["read_only"], shown["version"]) == ("two", 50, True, 3)
    assert [edit["operation"] for edit in cli.json("shared", "history", "team")] == ["created", "set", "changed"]
    assert "a person" in cli.ok("shared", "history", "team")
    assert "read-only" in cli.ok("shared", "show", "team")
    cli.ok("erase", "block:team", "--from", "1", "--to", "1", "--yes")
    assert [edit["value"] for edit in cli.json("shared", "history", "team")] == ["", "two", "two"]
    assert cli.json("shared", "delete", "team")["deleted"]
    assert "was deleted" in cli.fails("shared", "set", "team", "three")
    assert cli.json("shared", "create", "team", "four")["value"] == "four"


@pytest.mark.beside_store("a server has a store")
def test_an_edit_makes_no_store(cli: Line):
    """An edit of a block in a folder without a store is refused, and the folder is not made."""
    assert "there is no store" in cli.fails("shared", "set", "team", "x")
    assert not cli.root.exists()


def test_what_cannot_be_is_refused_and_makes_nothing(cli: Line):
    """An unknown block, a text that is too long, an agent of the block's name and contradicting options are refused;
    nothing is made.
    """
    cli.ok("create", "sam")
    assert "no shared block 'team'" in cli.fails("shared", "set", "team", "x")
    assert "no shared block 'team'" in cli.fails("shared", "attach", "sam", "team")
    assert "limit" in cli.fails("shared", "create", "team", "too long", "--limit", "3")
    assert "limit" in cli.fails("shared", "create", "team", "--limit", "100001")
    assert "already" not in cli.ok("shared", "create", "team")
    assert "already" in cli.fails("shared", "create", "team")
    assert "shared memory blocks" in cli.fails("create", "block:team")
    assert "of its own" in cli.fails("shared", "attach", "sam", "team", "--block-label", "human")
    assert [agent["agent"] for agent in cli.json("agents")] == ["sam"]
