"""`everlog move`, `--placement` and `--shards`."""

from pathlib import Path

from tests.interfaces.erase.test_erase_command import CANARY, leftovers, store_of
from tests.support.cli.command_line import Line, says


def test_an_agent_goes_and_comes_back(cli: Line):
    """The agent's log continues in its shard, and later in its own partition again; every command reads the whole
    log.
    """
    cli.ok("create", "sam", "--shards", "3")
    cli.script.answers = [says("One."), says("Two."), says("Three.")]
    assert "One." in cli.ok("send", "sam", "one")
    assert "Moved sam to shard-00" in cli.ok("move", "sam", "--placement", "shared")
    assert "Two." in cli.ok("send", "sam", "two")
    assert "Moved sam to agent-" in cli.ok("move", "sam", "--placement", "dedicated")
    assert "Three." in cli.ok("send", "sam", "three")
    assert [said["text"] for said in cli.lines("events", "sam", "--type", "user_message")] == ["one", "two", "three"]
    for proof in (["rebuild", "sam"], ["verify", "sam"], ["log", "check", "--all"]):
        cli.ok(*proof)


def test_what_is_erased_is_gone_from_every_partition_that_the_agent_was_in(cli: Line):
    """No file of any partition holds the content; the agent stays where it was, and records of other agents do not
    change.
    """
    cli.ok("create", "ann", "--placement", "shared", "--shards", "1")
    cli.ok("send", "ann", "mine")
    cli.ok("create", "sam")
    for place in ("shared", "dedicated"):
        cli.script.answers = [says(f"{CANARY}.")]
        cli.ok("send", "sam", f"I say {CANARY}")
        cli.ok("move", "sam", "--placement", place)
    where = store_of(cli).partition_of("sam")
    assert cli.json("erase", "sam", "--all", "--yes")["erased"] > 6
    assert leftovers(cli.root) == []
    assert store_of(cli).partition_of("sam") == where
    assert [said["text"] for said in cli.lines("events", "ann", "--type", "user_message")] == ["mine"]
    assert "erased already" in cli.fails("erase", "sam", "--to", "6", "--yes")
    for proof in (["rebuild", "sam"], ["verify", "sam"], ["log", "check", "--all", "--deep"]):
        cli.ok(*proof)
    cli.script.answers = [says("Hello.")]
    assert "Hello." in cli.ok("send", "sam", "Hello")


def test_agents_that_are_made_shared_share_a_log(cli: Line):
    """Two agents of one shard have no log of their own, and each answers its own messages."""
    cli.ok("create", "ann", "--placement", "shared", "--shards", "1")
    cli.ok("create", "bob", "--placement", "shared")
    cli.script.answers = [says("I am Ann."), says("I am Bob.")]
    assert "I am Ann." in cli.ok("send", "ann", "who?")
    assert "I am Bob." in cli.ok("send", "bob", "who?")
    assert [path.name for path in (cli.root / "log").iterdir()] == ["shard-000"]


def test_a_number_of_shards_that_differs_is_refused(cli: Line):
    """The error gives the number of shards that the store has, and nothing is made."""
    cli.ok("create", "sam", "--shards", "3")
    assert "has 3 shared partitions, not 4" in cli.fails("create", "ann", "--shards", "4")
    assert [row["agent"] for row in cli.json("agents")] == ["sam"]


def test_a_fork_of_an_agent_that_has_just_moved_is_exported_and_restored(cli: Line, tmp_path: Path):
    """The fork shares what the agent was before the move, and its export does not wait for the agent to be opened in
    its new place.
    """
    cli.ok("create", "sam", "--shards", "2", "--placement", "shared")
    cli.ok("send", "sam", "one")
    head = cli.json("memory", "sam")["as_of"]
    cli.ok("move", "sam", "--placement", "dedicated")
    assert cli.json("fork", "sam", "--new-name", "kid")["parent_seq"] == head
    cli.ok("export", "kid", str(tmp_path / "kid.everlog"))
    other = Line(tmp_path / "other", cli._capsys)
    other.ok("restore", str(tmp_path / "kid.everlog"))
    assert [said["text"] for said in other.lines("events", "kid", "--type", "user_message")] == ["one"]
    other.ok("send", "kid", "two")
    for proof in (["rebuild", "kid"], ["log", "check", "--all", "--deep"]):
        other.ok(*proof)


def test_an_unknown_agent_is_not_moved(cli: Line):
    """The error names the unknown agent, and no agent is made."""
    cli.ok("create", "sam")
    assert "There is no agent 'bob' here" in cli.fails("move", "bob", "--placement", "shared")
    assert [row["agent"] for row in cli.json("agents")] == ["sam"]
