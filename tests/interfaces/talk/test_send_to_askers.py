"""`everlog send` stays until the agents that were asked have answered, and prints what follows from their answers."""

import asyncio
import io

import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.ports import Ports
from everlog.events import UserMessage
from everlog.store import FileStore
from tests.support.cli.command_line import Line, completion


def a_group(cli: Line) -> None:
    """Create a group of two agents of the offline model."""

    def make(line: Line) -> None:
        for name in ("ann", "bob"):
            line.ok("create", name)
        line.ok("create", "team", "--group", "round-robin", "--member", "ann", "--member", "bob")

    cli.begin("a group", make)


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


@pytest.mark.beside_store("a server works on the round by itself, and may have ended it before the message comes")
def test_a_message_to_a_group_at_work_joins_its_round(cli: Line) -> None:
    """After a command that was killed in a round, the next one stays until the round and its own are over, says so, and
    prints the answers.
    """
    a_group(cli)

    async def killed() -> None:
        system = LocalSystem(FileStore(cli.root, cli.clock.now), ports=Ports(clock=cli.clock))
        async with system.agent("team", keep_configuration=True) as team:
            await team.receive(UserMessage(text="Hi, I sail"))
            await team.run()  # nothing delivers what it asks

    asyncio.run(killed())
    assert [state for _, state in asked(cli, "team")] == ["pending"]
    code, out, err = cli("send", "team", "And I row")
    assert code == 0
    assert err.startswith("everlog: team: a round of the group runs already. Your message joins it")
    assert {line.split(":")[0] for line in out.splitlines() if line.startswith(("ann:", "bob:"))} == {"ann", "bob"}
    assert {state for _, state in asked(cli, "team")} == {"answered"}


def test_a_chat_of_a_group_that_is_opened_again_shows_each_answer_once(cli: Line, monkeypatch) -> None:
    """The group says what a member answered, so the input with the answer is not shown beside it."""
    a_group(cli)
    cli.ok("send", "team", "Hi, I sail")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, err = cli("chat", "team")
    assert (code, err) == (0, "")
    assert [out.count(f"{name}: Indeed.") for name in ("ann", "bob")] == [1, 1]
    assert (out.count("Indeed."), out.count("Hi, I sail")) == (2, 1)


def asks(name: str) -> str:
    """Return a reply of a model that asks an agent."""
    return completion(("ask_agent", {"name": name, "message": "How are you?"}))


def asked(cli: Line, name: str) -> list[list[str]]:
    """Return the agents that an agent asked, and what became of it."""
    query = f"SELECT other, state FROM agent_messages WHERE agent_id = '{name}' ORDER BY seq"
    rows: list[list[str]] = cli.json("sql", query)["rows"]
    return rows


def test_a_renamed_agent_is_asked_by_its_new_name(cli: Line) -> None:
    """Messages, groups and background agents take the name that `rename` gave, as commands do."""
    cli.ok("create", "sam")
    cli.ok("configure", "sam", "--function", "ask_agent")
    for name in ("ann", "bob"):
        cli.ok("create", name)
    cli.ok("rename", "bob", "robert")
    cli.script.answers = [asks("robert")]
    cli.ok("send", "sam", "Ask him")
    assert asked(cli, "sam") == [["bob", "answered"]]
    cli.ok("create", "team", "--group", "round-robin", "--member", "ann", "--member", "robert")
    cli.ok("send", "team", "Hi, I sail")
    assert asked(cli, "team") == [["ann", "answered"], ["bob", "answered"]]
    cli.ok("configure", "ann", "--background", "robert")
    assert cli.json("sql", "SELECT other FROM background WHERE agent_id = 'ann'")["rows"] == [["bob"]]
    code, _, err = cli("create", "two", "--group", "round-robin", "--member", "bob", "--member", "robert")
    assert (code, "the same agent as another member" in err) == (1, True), err


def test_an_agent_with_a_name_that_was_used_before_is_asked(cli: Line) -> None:
    """A name means the newest agent that has it, not the deleted one."""
    cli.ok("create", "sam")
    cli.ok("configure", "sam", "--function", "ask_agent")
    for name in ("ann", "bob"):
        cli.ok("create", name)
    cli.ok("delete", "ann", "--yes")
    cli.ok("fork", "bob", "--new-name", "ann")
    cli.script.answers = [asks("ann")]
    cli.ok("send", "sam", "Ask her")
    assert asked(cli, "sam") == [["ann@gen2", "answered"]]
    cli.ok("create", "team", "--group", "round-robin", "--member", "ann", "--member", "bob")
    cli.ok("send", "team", "Hi, I sail")
    assert asked(cli, "team") == [["ann@gen2", "answered"], ["bob", "answered"]]
