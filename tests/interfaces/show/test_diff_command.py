"""`everlog diff`: what is different between two moments, and the event, turn and cause of each change."""

import pytest

from tests.support.cli.command_line import Line

HELLO = "Hi, my name is Chad and I sail"
DOG = "My dog is called Rex"


@pytest.fixture
def sam(cli: Line) -> Line:
    """An agent that learned two things, in turns 1 and 2."""
    cli.real = True
    cli.ok("send", "sam", HELLO)
    cli.ok("send", "sam", DOG)
    return cli


def seq_of(line: Line, kind: str, number: int = 0) -> int:
    return [event["seq"] for event in line.lines("events", "sam", "--json") if event["type"] == kind][number]


def test_a_change_of_memory_names_its_event_turn_and_cause(sam: Line) -> None:
    """The block before and after, and why: the edit, the reply that asked for it, the message that began the turn."""
    before, after = seq_of(sam, "user_message", 1) - 1, seq_of(sam, "message_sent", -1)
    found = sam.json("diff", "sam", str(before), str(after))
    (block,) = found["memory"]
    assert block["name"] == "human" and "Rex" in block["after"] and "Rex" not in block["before"]
    because = block["because"][-1]
    assert (because["seq"], because["type"], because["turn"]) == (seq_of(sam, "memory_edited", -1), "memory_edited", 2)
    assert because["cause"]["seq"] == seq_of(sam, "model_reply", -1)
    assert because["input"] == {"seq": seq_of(sam, "user_message", 1), "type": "user_message", "text": DOG}
    assert (found["before"]["seq"], found["after"]["seq"], found["same"]) == (before, after, False)
    assert found["spent"]["calls"] == 1 and found["spent"]["tokens"] > 0 and found["spent"]["money"] is None
    assert found["recall"] == {"before": 2, "after": 4}


def test_backwards_is_the_same_undone(sam: Line) -> None:
    """From B to A what came in goes out, and what was after is before."""
    there, back = sam.json("diff", "sam", "7", "18"), sam.json("diff", "sam", "18", "7")
    assert [(c["before"], c["after"]) for c in there["memory"]] == [(c["after"], c["before"]) for c in back["memory"]]
    assert there["context"]["in"] == back["context"]["out"] and there["context"]["in"]
    assert there["tokens"] == {"before": back["tokens"]["after"], "after": back["tokens"]["before"]}
    assert there["spent"] == back["spent"]
    assert "backwards" in sam.ok("diff", "sam", "18", "7")


def test_what_the_context_lost_to_a_summary_says_so(cli: Line) -> None:
    """Messages that a summary hid are told as gone because of it; the summary itself came in."""
    cli.real = True
    for number in range(6):
        cli.ok("send", "sam", f"Tell me number {number} about the sea and boats, at some length", "--window", "4500")
    summary = seq_of(cli, "summary")
    found = cli.json("diff", "sam", str(summary - 1), str(summary))
    assert {shown["because"]["seq"] for shown in found["context"]["out"]} == {summary}
    assert [shown["seq"] for shown in found["context"]["in"]] == [summary]
    assert f"seq {summary} summary" in cli.ok("diff", "sam", str(summary - 1), str(summary))


def test_a_configuration_that_changed_is_reported_field_by_field(sam: Line) -> None:
    """Another window is told with the record that set it, which is part of no turn."""
    head = sam.json("memory", "sam")["as_of"]
    sam.ok("send", "sam", "Hm", "--window", "16000")
    found = sam.json("diff", "sam", str(head))
    (changed,) = [change for change in found["configuration"] if change["name"] == "window"]
    assert changed["after"] == 16000 and changed["because"][0]["type"] == "agent_configured"
    assert (changed["because"][0]["turn"], changed["because"][0]["input"]) == (0, None)
    assert found["window"]["after"] == 16000


def test_nothing_is_said_to_be_different_where_nothing_is(sam: Line) -> None:
    """A moment and itself, by seq or by time, and the head where B is left out."""
    head = sam.json("memory", "sam")["as_of"]
    assert sam.json("diff", "sam", str(head))["same"]
    assert "Nothing is different" in sam.ok("diff", "sam", str(head), "2999-01-01")


@pytest.mark.parametrize("moment", ["0", "999", "yesterday", "1999-01-01"])
def test_a_moment_that_it_did_not_see_names_the_head(sam: Line, moment: str) -> None:
    """Either of the two may be wrong."""
    head = sam.json("memory", "sam")["as_of"]
    for moments in ([moment], ["3", moment]):
        assert f"1 to {head}, the head" in sam.fails("diff", "sam", *moments)


def test_what_calls_cost_is_reported_where_prices_are_known(sam: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices are those of the gateway, of a million tokens each."""
    monkeypatch.setenv("EVERLOG_GATEWAY_PRICE_IN", "1000000")
    monkeypatch.setenv("EVERLOG_GATEWAY_PRICE_OUT", "0")
    spent = sam.json("diff", "sam", "7")["spent"]
    assert spent["money"] == pytest.approx(spent["prompt"]) and spent["prompt"] > 0
