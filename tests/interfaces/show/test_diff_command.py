"""`everlog diff`: the differences between two moments, and the event, turn and cause of each change."""

import pytest

from tests.support.cli.command_line import Line

HELLO = "Hi, my name is Chad and I sail"
DOG = "My dog is called Rex"


@pytest.fixture
def sam(cli: Line) -> Line:
    """Return an agent that stored two facts, in turns 1 and 2."""

    def make(line: Line) -> None:
        line.ok("send", "sam", HELLO)
        line.ok("send", "sam", DOG)

    cli.real = True
    cli.begin("compared", make)
    return cli


def seq_of(line: Line, kind: str, number: int = 0) -> int:
    return [event["seq"] for event in line.lines("events", "sam", "--json") if event["type"] == kind][number]


def test_a_change_of_memory_names_its_event_turn_and_cause(sam: Line) -> None:
    """The change shows the block before and after, and its causes: the edit, the reply that made it, and the message
    that began the turn.
    """
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
    """From B to A, added messages are shown as removed, and `before` and `after` are exchanged."""
    there, back = sam.json("diff", "sam", "7", "18"), sam.json("diff", "sam", "18", "7")
    assert [(c["before"], c["after"]) for c in there["memory"]] == [(c["after"], c["before"]) for c in back["memory"]]
    assert there["context"]["in"] == back["context"]["out"] and there["context"]["in"]
    assert there["tokens"] == {"before": back["tokens"]["after"], "after": back["tokens"]["before"]}
    assert there["spent"] == back["spent"]
    assert "backwards" in sam.ok("diff", "sam", "18", "7")


def test_messages_hidden_by_a_summary_are_reported_with_it(cli: Line) -> None:
    """Messages that a summary hid are reported as removed by that summary; the summary itself is reported as added."""
    cli.real = True
    for number in range(6):
        cli.ok("send", "sam", f"Tell me number {number} about the sea and boats, at some length", "--window", "4500")
    summary = seq_of(cli, "summary")
    found = cli.json("diff", "sam", str(summary - 1), str(summary))
    assert {shown["because"]["seq"] for shown in found["context"]["out"]} == {summary}
    assert [shown["seq"] for shown in found["context"]["in"]] == [summary]
    assert f"seq {summary} summary" in cli.ok("diff", "sam", str(summary - 1), str(summary))


def test_a_configuration_that_changed_is_reported_field_by_field(sam: Line) -> None:
    """A changed window is reported with the record that set it, which is part of no turn."""
    head = sam.json("memory", "sam")["as_of"]
    sam.ok("send", "sam", "Hm", "--window", "16000")
    found = sam.json("diff", "sam", str(head))
    (changed,) = [change for change in found["configuration"] if change["name"] == "window"]
    assert changed["after"] == 16000 and changed["because"][0]["type"] == "agent_configured"
    assert (changed["because"][0]["turn"], changed["because"][0]["input"]) == (0, None)
    assert found["window"]["after"] == 16000


def test_equal_moments_have_no_differences(sam: Line) -> None:
    """There is no difference between a moment and itself, by seq or by time, or between the head and an omitted B."""
    head = sam.json("memory", "sam")["as_of"]
    assert sam.json("diff", "sam", str(head))["same"]
    assert "Nothing is different" in sam.ok("diff", "sam", str(head), "2999-01-01")


@pytest.mark.parametrize("moment", ["0", "999", "yesterday", "1999-01-01"])
def test_an_unknown_moment_is_an_error_that_names_the_head(sam: Line, moment: str) -> None:
    """The error is the same for A and for B."""
    head = sam.json("memory", "sam")["as_of"]
    for moments in ([moment], ["3", moment]):
        assert f"1 to {head}, the head" in sam.fails("diff", "sam", *moments)


def test_what_calls_cost_is_reported_where_prices_are_known(sam: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs use the gateway's prices, per million tokens."""
    monkeypatch.setenv("EVERLOG_GATEWAY_PRICE_IN", "1000000")
    monkeypatch.setenv("EVERLOG_GATEWAY_PRICE_OUT", "0")
    spent = sam.json("diff", "sam", "7")["spent"]
    assert spent["money"] == pytest.approx(spent["prompt"]) and spent["prompt"] > 0
