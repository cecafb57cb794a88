"""`everlog send` stays until the agents that were asked have answered, and prints what follows from their answers."""

import io

from tests.support.cli.command_line import Line


def a_group(cli: Line) -> None:
    """Create a group of two agents of the offline model."""
    for name in ("ann", "bob"):
        cli.ok("create", name)
    cli.ok("create", "team", "--group", "round-robin", "--member", "ann", "--member", "bob")


def test_send_prints_what_all_members_of_a_group_say(cli: Line) -> None:
    """The round is over when the command ends: each member was asked once, and its answer is printed."""
    a_group(cli)
    out = cli.ok("send", "team", "Hi, I sail")
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith(("ann:", "bob:"))] == ["ann", "bob"]
    rows = cli.json("sql", "SELECT other, state FROM agent_messages WHERE agent_id = 'team' ORDER BY seq")["rows"]
    assert rows == [["ann", "answered"], ["bob", "answered"]]


def test_records_of_the_round_are_printed_once_and_in_order(cli: Line) -> None:
    """With --json the lines are the records of the group from the message on, without a gap."""
    a_group(cli)
    head = cli.json("sql", "SELECT max(seq) FROM records WHERE agent_id = 'team'")["rows"][0][0]
    lines = cli.lines("send", "team", "--json", "Hi, I sail")
    end = cli.json("sql", "SELECT max(seq) FROM records WHERE agent_id = 'team'")["rows"][0][0]
    assert [line["seq"] for line in lines] == list(range(head + 1, end + 1))


def test_a_chat_of_a_group_that_is_opened_again_shows_each_answer_once(cli: Line, monkeypatch) -> None:
    """The group says what a member answered, so the input with the answer is not shown beside it."""
    a_group(cli)
    cli.ok("send", "team", "Hi, I sail")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, err = cli("chat", "team")
    assert (code, err) == (0, "")
    assert [out.count(f"{name}: Indeed.") for name in ("ann", "bob")] == [1, 1]
    assert (out.count("Indeed."), out.count("Hi, I sail")) == (2, 1)
