"""`everlog rerun` at the command line."""

from pathlib import Path

import pytest

from everlog.events import ModelError
from tests.support.cli.command_line import Line, completion, says

TOOL = '''
from pathlib import Path
from everlog.actors.functions.tools import tool


@tool
def ring(bell: str) -> str:
    """Ring a bell.

    Args:
        bell: Which.
    """
    with Path({path!r}).open("a") as file:
        file.write(bell + "\\n")
    return f"{{bell}} rang"
'''


def rings(bell: str) -> str:
    return completion(("ring", {"bell": bell, "request_heartbeat": True}))


@pytest.fixture
def told(cli: Line, tmp_path: Path) -> Line:
    """Return a store in which sam rang a bell in its first turn, and only answered in its second."""
    tool = tmp_path / "bells.py"
    tool.write_text(TOOL.format(path=str(tmp_path / "rung")))
    cli.script.answers = [rings("red"), says("It rang."), says("Good night.")]
    cli.ok("send", "sam", "Ring it", "--model", "script", "--tools", str(tool))
    cli.ok("send", "sam", "Good night", "--tools", str(tool))
    return cli


def repair_step(tmp_path: Path) -> list[str]:
    return (tmp_path / "rung").read_text().split()


def test_it_shows_both_sides_of_each_turn_and_says_where_they_part(told: Line, tmp_path: Path):
    """The recorded call of the bell is not repeated, and a different call is refused; the report shows both sides of
    each turn, the first difference and the totals.
    """
    told.script.answers = [rings("red"), rings("blue"), says("They rang."), says("Sleep well.")]
    shown = told.ok("rerun", "sam", "--from", "8", "--new-name", "tom")
    assert repair_step(tmp_path) == ["red"]
    assert 'ring(bell="red") ♥ → recorded result, red rang' in " ".join(shown.split())
    assert 'ring(bell="blue") ♥ → refused' in " ".join(shown.split())
    for words in ("> Ring it", "They rang.", "It rang.", "> Good night", "Sleep well."):
        assert words in shown
    assert "The first difference is in turn 1 (recorded seq 8, rerun seq 9)" in " ".join(shown.split())
    assert "1 with a recorded result, 0 run, 1 refused" in " ".join(shown.split())
    assert told.ok("events", "tom", "--type", "agent_forked")


def test_narrow_terminals_get_one_side_below_the_other(told: Line, monkeypatch: pytest.MonkeyPatch):
    """No line is wider than the terminal, and both sides are printed."""
    monkeypatch.setenv("COLUMNS", "60")
    told.script.answers = [says("Never.")]
    shown = told.ok("rerun", "sam", "--from", "8", "--new-name", "tom", "--turns", "1")
    assert max(len(line) for line in shown.splitlines()) <= 60
    assert shown.index("It rang.") < shown.index("Never.")


def test_json_is_what_the_page_shows(told: Line):
    """The JSON is one object, with the turns, the totals, and the first difference."""
    told.script.answers = [rings("red"), says("It rang."), says("Sleep well.")]
    shape = told.json("rerun", "sam", "--from", "8", "--new-name", "tom")
    assert (shape["agent"], shape["fork"], shape["parent_seq"], shape["recorded"]) == ("sam", "tom", 7, False)
    assert [turn["differs"] for turn in shape["turns"]] == [[], ["answers"]]
    assert shape["turns"][0]["now"]["calls"][0]["answered"] == "recorded"
    assert shape["turns"][1]["then"]["answers"] == ["Good night."]
    assert shape["totals"]["now"]["tokens"] == shape["totals"]["then"]["tokens"] == 3 * 1020
    assert shape["first_difference"]["turn"] == 2
    assert shape["error"] is None
    again = told.json("rerun", "sam", "--new-name", "tom", "--report")
    assert {key: shape[key] for key in again} == again


def test_it_begins_at_a_time_as_a_fork_does(told: Line):
    """A time selects the first record at or after that time; `2h` means two hours ago."""
    second = told.lines("events", "sam", "--type", "user_message")[1]
    for fork, moment, cut in (("tom", second["recorded_at"], second["seq"] - 1), ("ann", "2h", 7)):
        shape = told.json("rerun", "sam", "--from", moment, "--new-name", fork, "--recorded")
        assert shape["parent_seq"] == cut


def test_the_recorded_replies_need_no_model(told: Line):
    """Without a change every turn is equal; after a change the rerun stops at the first different request, and shows
    the difference.
    """
    asked = len(told.script.asked)
    shape = told.json("rerun", "sam", "--from", "8", "--new-name", "tom", "--recorded")
    assert (shape["first_difference"], shape["diverged"], shape["error"]) == (None, None, None)
    prompt = told.root.parent / "prompt.txt"
    prompt.write_text("Be somebody else.")
    shown = told.ok("rerun", "sam", "--from", "8", "--new-name", "ann", "--recorded", "--system", str(prompt))
    assert "diverged at seq 9: the request is another one" in shown
    assert "+system: Be somebody else." in shown
    assert len(told.script.asked) == asked


def test_live_tools_ring_what_was_not_rung_then(told: Line, tmp_path: Path):
    """With the function and the permission, a call without a recorded result is executed."""
    told.script.answers = [rings("red"), rings("blue"), says("They rang.")]
    tools = ("--tools", str(tmp_path / "bells.py"), "--live-tools")
    told.ok("rerun", "sam", "--from", "8", "--new-name", "tom", "--turns", "1", *tools)
    assert repair_step(tmp_path) == ["red", "blue"]


def test_a_model_that_fails_is_reported_after_the_report(told: Line):
    """The exit code is 1; the finished turns are shown, and are in the fork."""
    told.script.answers = [says("First."), ModelError("Nobody is there.", kind="credit")]
    code, out, err = told("rerun", "sam", "--from", "8", "--new-name", "tom")
    assert (code, err) == (1, "everlog: Nobody is there.\nmore: everlog explain model-error\n")
    assert "First." in out
    assert "in all" in out


@pytest.mark.beside_store("Ctrl-C is raised by the model, which runs in the server")
def test_ctrl_c_leaves_the_fork_with_what_ran(told: Line, monkeypatch: pytest.MonkeyPatch):
    """The message names the fork, and the command that compares it."""
    told.script.answers = [says("First.")]
    ask = told.script.ask

    async def interrupted(request: bytes, **_: object):
        if not told.script.answers:
            raise KeyboardInterrupt
        return await ask(request)

    monkeypatch.setattr(told.script, "ask", interrupted)
    code, _, err = told("rerun", "sam", "--from", "8", "--new-name", "tom")
    assert code == 130
    assert "`everlog rerun sam --new-name tom --report`" in err
    assert "First." in told.ok("rerun", "sam", "--new-name", "tom", "--report")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--from", "99", "--new-name", "tom"), "records 1 to"),
        (("--from", "2999-01-01", "--new-name", "tom"), "is older"),
        (("--from", "soon", "--new-name", "tom"), "is not a moment"),
        (("--from", "8", "--new-name", "sam"), "already"),
        (("--new-name", "nobody", "--report"), "no agent 'nobody'"),
        (("--from", "8", "--new-name", "tom", "--system", "/no/such/file"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_made(told: Line, argv: tuple[str, ...], said: str):
    """The error is one paragraph with exit code 1, and no fork is made."""
    assert said in told.fails("rerun", "sam", *argv)
    assert [agent["agent"] for agent in told.json("agents")] == ["sam"]


def test_an_agent_that_is_not_there_is_named(told: Line):
    """The error names the unknown agent; a missing store is not made."""
    assert "no agent 'tim'" in told.fails("rerun", "tim", "--from", "8", "--new-name", "tom")


@pytest.mark.parametrize(
    "argv",
    [("--new-name", "tom"), ("--from", "8", "--new-name", "tom", "--recorded", "--live-tools"), ("--from", "8")],
)
def test_bad_usage_is_reported(told: Line, argv: tuple[str, ...]):
    """The exit code is 2."""
    assert told("rerun", "sam", *argv)[0] == 2
