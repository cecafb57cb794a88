"""`everlog fork`, and `everlog delete --with-forks`."""

import pytest

from tests.interfaces.line import Line, says


def told(cli: Line, name: str) -> list[str]:
    return [said["text"] for said in cli.lines("events", name, "--type", "user_message")]


@pytest.fixture
def sam(cli: Line) -> Line:
    cli.ok("create", "sam", "--shards", "2")
    for words in ("one", "two", "three"):
        cli.script.answers = [says(f"You said {words}.")]
        cli.ok("send", "sam", words)
    return cli


def seq_of(cli: Line, words: str) -> int:
    return next(int(e["seq"]) for e in cli.lines("events", "sam", "--type", "message_sent") if words in e["text"])


def test_a_fork_has_the_past_of_its_parent_and_a_future_of_its_own(sam: Line) -> None:
    """At a seq and at a time: what was said up to there is in the fork, what follows is each one's own."""
    at = seq_of(sam, "two") + 1
    made = sam.json("fork", "sam", "--at", str(at), "--as", "tom")
    assert made == {"agent": "tom", "parent": "sam", "parent_seq": at, "head": at + 1, "closed_turns": []}
    sam.script.answers = [says("You said four.")]
    assert "You said four." in sam.ok("send", "tom", "four")
    assert told(sam, "tom") == ["one", "two", "four"]
    assert told(sam, "sam") == ["one", "two", "three"]
    when = next(e["recorded_at"] for e in sam.lines("events", "sam") if e["seq"] == at)
    assert "ann is sam as of seq" in sam.ok("fork", "sam", "--at", when, "--as", "ann", "--placement", "shared")
    assert told(sam, "ann") == ["one", "two"]
    for proof in (["rebuild", "--all"], ["verify", "--all"], ["log", "check", "--all", "--deep"]):
        sam.ok(*proof)


def test_a_turn_that_was_open_is_told(sam: Line) -> None:
    """Between a message and its answer: the fork says which turn goes on in the parent only."""
    at = seq_of(sam, "two") - 2
    said = sam.ok("fork", "sam", "--at", str(at), "--as", "tom")
    assert "Turn 2 was open there" in said
    assert sam.lines("events", "tom")[-1]["type"] == "turn_abandoned"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sam", "--at", "999", "--as", "tom"], "has records 1 to"),
        (["sam", "--at", "yesterday", "--as", "tom"], "neither a seq"),
        (["sam", "--at", "2001-01-01", "--as", "tom"], "began later"),
        (["sam", "--as", "sam"], "There is an agent 'sam' already"),
        (["nobody", "--as", "tom"], "no agent 'nobody'"),
    ],
)
def test_what_cannot_be_forked_is_told_and_makes_nobody(sam: Line, arguments: list[str], said: str) -> None:
    assert said in sam.fails("fork", *arguments)
    assert [row["agent"] for row in sam.json("agents")] == ["sam"]


def test_a_parent_is_deleted_with_its_forks_or_not_at_all(sam: Line) -> None:
    """The error names the forks that live; --with-forks ends them, the youngest first."""
    sam.ok("fork", "sam", "--as", "tom")
    sam.ok("fork", "tom", "--as", "ann")
    assert "forks that live on: ann, tom" in sam.fails("delete", "sam", "--yes")
    assert len(sam.json("agents")) == 3
    said = sam.ok("delete", "sam", "--yes", "--with-forks")
    assert [line.split()[1].rstrip(".") for line in said.splitlines()] == ["ann", "tom", "sam"]
    assert sam.json("agents") == []
