"""`everlog fork`, and `everlog delete --with-forks`."""

import pytest

from tests.support.cli.command_line import Line, says


def told(cli: Line, name: str) -> list[str]:
    return [said["text"] for said in cli.lines("events", name, "--type", "user_message")]


@pytest.fixture
def sam(cli: Line) -> Line:
    def make(line: Line) -> None:
        line.ok("create", "sam", "--shards", "2")
        for words in ("one", "two", "three"):
            line.script.answers = [says(f"You said {words}.")]
            line.ok("send", "sam", words)

    cli.begin("forked sam", make)
    return cli


def seq_of(cli: Line, words: str) -> int:
    return next(int(e["seq"]) for e in cli.lines("events", "sam", "--type", "message_sent") if words in e["text"])


def test_a_fork_has_the_past_of_its_parent_and_a_future_of_its_own(sam: Line) -> None:
    """A fork at a seq or at a time has the parent's records up to there; later records belong to one of the two
    only.
    """
    at = seq_of(sam, "two") + 1
    made = sam.json("fork", "sam", "--as-of", str(at), "--new-name", "tom")
    assert made == {"agent": "tom", "parent": "sam", "parent_seq": at, "head": at + 1, "closed_turns": []}
    sam.script.answers = [says("You said four.")]
    assert "You said four." in sam.ok("send", "tom", "four")
    assert told(sam, "tom") == ["one", "two", "four"]
    assert told(sam, "sam") == ["one", "two", "three"]
    when = next(e["recorded_at"] for e in sam.lines("events", "sam") if e["seq"] == at)
    assert "Created ann from sam as of seq" in sam.ok(
        "fork", "sam", "--as-of", when, "--new-name", "ann", "--placement", "shared"
    )
    assert told(sam, "ann") == ["one", "two"]
    for proof in (["rebuild", "--all"], ["verify", "--all"], ["log", "check", "--all", "--deep"]):
        sam.ok(*proof)


def test_a_turn_that_was_open_is_reported(sam: Line) -> None:
    """For a fork point between a message and its answer, the command names the turn that continues only in the
    parent.
    """
    at = seq_of(sam, "two") - 2
    said = sam.ok("fork", "sam", "--as-of", str(at), "--new-name", "tom")
    assert "Turn 2 was open at that record" in said
    assert sam.lines("events", "tom")[-1]["type"] == "turn_abandoned"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sam", "--as-of", "999", "--new-name", "tom"], "has records 1 to"),
        (["sam", "--as-of", "yesterday", "--new-name", "tom"], "is not a moment"),
        (["sam", "--as-of", "2001-01-01", "--new-name", "tom"], "began after"),
        (["sam", "--new-name", "sam"], "There is an agent 'sam' already"),
        (["nobody", "--new-name", "tom"], "no agent 'nobody'"),
    ],
)
def test_an_impossible_fork_is_refused_and_makes_no_agent(sam: Line, arguments: list[str], said: str) -> None:
    assert said in sam.fails("fork", *arguments)
    assert [row["agent"] for row in sam.json("agents")] == ["sam"]


def test_a_parent_is_deleted_with_its_forks_or_not_at_all(sam: Line) -> None:
    """The error names the forks that are not deleted; --with-forks deletes these too, the youngest first."""
    sam.ok("fork", "sam", "--new-name", "tom")
    sam.ok("fork", "tom", "--new-name", "ann")
    assert "forks that are not deleted: ann, tom" in sam.fails("delete", "sam", "--yes")
    assert len(sam.json("agents")) == 3
    said = sam.ok("delete", "sam", "--yes", "--with-forks")
    assert [line.split()[1].rstrip(".") for line in said.splitlines()] == ["ann", "tom", "sam"]
    assert sam.json("agents") == []


def test_agents_names_the_parents_of_forks(sam: Line) -> None:
    """JSON and the table show each fork's parent and seq; an agent that was created again under a fork's name has no
    parent.
    """
    at = seq_of(sam, "two") + 1
    sam.ok("fork", "sam", "--as-of", str(at), "--new-name", "tom")
    sam.ok("fork", "tom", "--as-of", "2", "--new-name", "ann")
    parents = {row["agent"]: (row["parent"], row["parent_seq"]) for row in sam.json("agents")}
    assert parents == {"ann": ("tom", 2), "sam": (None, None), "tom": ("sam", at)}
    lines = sam.ok("agents").splitlines()
    assert [line for line in lines if "fork of" in line] == [line for line in lines if line.startswith(("ann", "tom"))]
    assert any(line.endswith(f"fork of sam at {at}") for line in lines)
    sam.ok("delete", "tom", "--yes", "--with-forks")
    sam.ok("create", "tom")
    assert [(row["agent"], row["parent"]) for row in sam.json("agents")] == [("sam", None), ("tom", None)]


def test_where_there_is_no_room_the_parents_are_not_in_the_table(sam: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a narrow terminal the table has no parents, and the other columns keep their width."""
    narrow = "50"
    monkeypatch.setenv("COLUMNS", narrow)
    sam.ok("fork", "sam", "--new-name", "a fork with a longer name")
    said = sam.ok("agents")
    assert "fork of" not in said and "a fork with a longer name" in said
    assert max(map(len, said.splitlines())) <= int(narrow)
    monkeypatch.setenv("COLUMNS", "90")
    assert "fork of sam at" in sam.ok("agents")


@pytest.mark.parametrize("sealed", [False, True])
def test_sql_says_of_a_fork_what_pressure_says(sam: Line, sealed: bool) -> None:
    """Before the first model call of a fork, SQL shows the window and tokens at the fork point, with and without
    --agent.
    """
    sam.ok("fork", "sam", "--as-of", str(seq_of(sam, "two") + 1), "--new-name", "tom")
    sam.ok("fork", "tom", "--new-name", "ann")
    if sealed:
        sam.ok("log", "seal", "--all")
    for name, alone in (("tom", []), ("ann", []), ("tom", ["--agent", "tom"]), ("ann", ["--agent", "ann"])):
        query = f"""SELECT tokens, "window", fraction, warned, summary_seq FROM pressure WHERE agent_id = '{name}'"""
        (row,) = sam.json("sql", query, *alone)["rows"]
        shape = sam.json("pressure", name)
        assert row == [shape[key] for key in ("tokens", "window", "fraction", "warned", "summary_seq")]
        assert shape["window"] and shape["tokens"]
    (row,) = sam.json("sql", "SELECT parent, parent_seq FROM agents WHERE agent_id = 'ann'")["rows"]
    assert row == ["tom", sam.json("agents")[0]["parent_seq"]]
