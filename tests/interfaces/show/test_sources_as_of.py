"""`sources --as-of`: the documents at a moment, and the agents that could search them."""

from pathlib import Path

from tests.support.cli.command_line import Line

HOUR = 3600 * 10**6


def test_sources_as_they_were(cli: Line, tmp_path: Path) -> None:
    """Documents and readers are shown as of a time, or as of a record of the named agent."""
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("The oak is old.")
    two.write_text("The elm is young.")
    cli.ok("load", "sam", str(one), "--source", "trees")
    cli.ok("send", "sam", "Thanks")
    head = cli.lines("events", "sam")[-1]["seq"]
    cli.clock.at += 2 * HOUR
    cli.ok("load", "ann", str(two), "--source", "trees")
    cli.ok("detach", "sam", "trees")
    (now,) = cli.json("sources")
    (then,) = cli.json("sources", "--as-of", "1h")
    assert (now["documents"], now["agents"]) == (2, ["ann"])
    assert (then["documents"], then["agents"]) == (1, ["sam"])
    assert cli.json("sources", "sam") == []
    assert cli.json("sources", "sam", "--as-of", str(head)) == [then]
    names = [row["document"] for row in cli.json("sources", "--source", "trees", "--as-of", "1h")]
    assert len(names) == 1 and names[0].endswith("one.txt")
    assert [row["documents"] for row in cli.json("sources", "--as-of", "1999-01-01")] == [0]
    assert "each agent has seqs of its own" in cli.fails("sources", "--as-of", "7")
