"""`everlog approvals`, `approve` and `refuse`: what waits is listed with its exact call, and decided once."""

import io
import json
import shlex
from pathlib import Path

import pytest

from tests.support.cli.command_line import Line, completion

SAILS = ("core_memory_append", {"name": "human", "content": "Sails."})


def asked(cli: Line) -> int:
    """Let sam make a call that waits, and return its number."""
    cli.ok("create", "sam", "--model", "script")
    cli.ok("configure", "sam", "--approval", "ask core_memory_*", "--approval-time", "2d")
    cli.script.answers = [completion(SAILS), completion(("send_message", {"message": "Noted."}))]
    shown = cli.ok("send", "sam", "I sail")
    (row,) = cli.json("approvals")
    assert f"everlog approve sam {row['seq']}" in shown
    return int(row["seq"])


def test_a_call_is_listed_and_approved(cli: Line) -> None:
    """The list shows the exact call, since when it waits and until when; after the approval it has run, and the list
    of decided calls says so.
    """
    seq = asked(cli)
    listed = cli.ok("approvals")
    assert f'sam  {seq}  core_memory_append(name="human", content="Sails.")' in listed
    assert "waits since" in listed
    assert f"`everlog approve sam {seq}`" in listed
    assert "Noted." in cli.ok("approve", "sam", str(seq), "--reason", "Yes.")
    assert "Sails." in cli.ok("memory", "sam")
    assert cli.ok("approvals") == "No call waits for an approval.\n"
    (row,) = cli.json("approvals", "sam", "--decided")
    assert (row["decision"], row["reason"], row["edited"]) == ("approved", "Yes.", None)
    assert cli.ok("verify", "sam")


def test_a_call_is_refused_and_cannot_be_approved_afterwards(cli: Line) -> None:
    """The first decision holds; the second is an error that names it."""
    seq = str(asked(cli))
    assert "Noted." in cli.ok("refuse", "sam", seq, "--reason", "No.")
    assert "Sails." not in cli.ok("memory", "sam")
    assert "was refused at" in cli.fails("approve", "sam", seq)


def test_other_arguments_run_instead(cli: Line) -> None:
    """The call runs with the arguments of the person; arguments that are no object are an error, and nothing is
    decided.
    """
    seq = str(asked(cli))
    for wrong in ("[1]", "{"):
        code, _, said = cli("approve", "sam", seq, "--arguments", wrong)
        assert (code, "--arguments" in said) == (2, True)
    assert "content" in cli.fails("approve", "sam", seq, "--arguments", '{"name": "human"}')
    given = {"name": "human", "content": "Rows."}
    cli.ok("approve", "sam", seq, "--arguments", json.dumps(given), "--always")
    assert "Rows." in cli.ok("memory", "sam")
    (row,) = cli.json("approvals", "--decided")
    assert json.loads(row["edited"]) == given
    assert "allow core_memory_append" in cli.ok("configure", "sam")


def test_a_chat_decides_the_oldest_call(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that waits is shown with its command; /approve and /refuse decide it, and say if none waits."""
    asked(cli)
    cli.script.answers = [completion(("send_message", {"message": "Noted."}))] * 2
    monkeypatch.setattr("sys.stdin", io.StringIO("/approve Yes.\n/approve\n/refuse 3 No.\n"))
    code, out, err = cli("chat", "sam")
    out += err
    assert code == 1  # lines from a pipe: each problem counts
    assert "Noted." in out
    assert "No call waits for your approval." in out
    assert "No call of 'sam' asked for an approval at seq 3." in out
    assert "Sails." in cli.ok("memory", "sam")


def test_rules_are_checked_and_shown(cli: Line) -> None:
    """A rule has a decision and a function; `none` removes all rules."""
    cli.ok("create", "sam")
    for wrong in ("delete *", "ask", "refuse pay to", ""):
        assert "A rule about approvals is" in cli.fails("configure", "sam", "--approval", wrong)
    changed = cli.ok("configure", "sam", "--approval", "ask *", "--approval", "refuse http_* url=*example*")
    assert changed == "approvals: none -> ask *; refuse http_* url=*example*\n"
    assert "-> none" in cli.ok("configure", "sam", "--approval", "none")


def test_a_wrong_name_makes_no_agent(cli: Line) -> None:
    """No command creates an agent, and an unknown one is no empty list."""
    cli.ok("create", "sam")
    for command in (("approvals", "ann"), ("approve", "ann", "3"), ("refuse", "ann", "3")):
        assert "'ann'" in cli.fails(*command)
    assert len(cli.json("agents")) == 1


def test_erased_words_are_gone_from_the_call_that_waited(cli: Line) -> None:
    """An erasure of a message takes the request, the decision and the outcome of the call that repeats its words."""
    seq = str(asked(cli))
    cli.ok("approve", "sam", seq, "--arguments", '{"name": "human", "content": "Sails a kxqz-4711."}')
    assert "kxqz-4711" in cli.ok("events", "sam", "--json")
    cli.ok("erase", "sam", "--match", "kxqz-4711", "--derived", "--yes")
    assert "kxqz-4711" not in cli.ok("events", "sam", "--json")
    cli.ok("erase", "sam", "--match", "I sail", "--derived", "--yes")
    left = cli.ok("events", "sam", "--json")
    assert '"arguments":"{\\"name' not in left
    assert cli.ok("verify", "sam")


ASKING = '''
"""A function that asks a person."""

from everlog import tool
from everlog.actors.ports.function_call import continuation
from everlog.events import Question


@tool(effect="read_only")
def ship(item: str) -> object:
    """Ship something.

    Args:
        item: The thing.
    """
    given = continuation()
    if given is None:
        form = '{"properties": {"city": {"type": "string"}}, "required": ["city"]}'
        return Question(text="Where\\x1b[2J to?", forms={"place": form}, state="s")
    return f"shipped {item} to {given.answers['place']['city']}, with {given.state}"
'''


def test_a_question_is_shown_and_answered(cli: Line, tmp_path: Path) -> None:
    """The question, without its control characters, and a command with blanks are shown by `send` and in the list; the
    call continues with what is filled in, and blanks that are left are an error that names them.
    """
    file = tmp_path / "ship.py"
    file.write_text(ASKING)
    cli.ok("create", "sam", "--model", "script")
    cli.script.answers = [completion(("ship", {"item": "tea"})), completion(("send_message", {"message": "Sent."}))]
    shown = cli.ok("send", "sam", "Ship tea", "--tools", str(file))
    (row,) = cli.json("approvals")
    assert json.loads(row["arguments"]) == {"item": "tea", "$answers": {"place": {"city": None}}}
    command = f"everlog approve sam {row['seq']} --arguments '{row['arguments']}'"
    assert "ship asks a person: Where\\x1b[2J to? Fill in: `" in shown
    assert command in shown
    listed = cli.ok("approvals")
    assert "    asks: Where\\x1b[2J to?\n" in listed
    assert command in listed
    approve = [*shlex.split(command)[1:], "--tools", str(file)]
    assert "Fill in city of 'place'" in cli.fails(*approve)
    filled = [word.replace("null", '"Oslo"') for word in approve]
    said = cli.ok(*filled)
    assert "the question of ship was answered" in said
    assert "shipped tea to Oslo, with s" in said
    assert cli.ok("approvals") == "No call waits for an approval.\n"
    assert cli.ok("verify", "sam", "--tools", str(file))


def test_a_restored_agent_has_no_fault_for_what_is_over(cli: Line, tmp_path: Path) -> None:
    """A restore makes a state without the calls that were decided and the timers that were cancelled. A rebuild finds
    no difference, also while others wait.
    """
    seq = asked(cli)
    cli.ok("approve", "sam", str(seq))
    cli.ok("timer", "sam", "Drink water", "--after", "10m", "--timer", "soon")
    cli.ok("timer", "sam", "--cancel", "soon")
    for number, more in enumerate(([], ["timer", "sam", "Drink water", "--every", "1d"])):
        if more:
            cli.ok(*more)
        cli.ok("export", "sam", str(tmp_path / f"{number}.everlog"))
        other = Line(tmp_path / f"other{number}", cli._capsys)
        other.ok("restore", str(tmp_path / f"{number}.everlog"))
        assert "no difference" in other.ok("rebuild", "sam")
        assert len(other.json("timers", "sam")) == number
