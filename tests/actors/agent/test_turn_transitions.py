"""Transitions between the records of a turn: the table, its picture, and its refusals."""

from pathlib import Path

from everlog.actors.agent.turn_transitions import diagram, fault

ARCHITECTURE = Path(__file__).parents[3] / "docs" / "ARCHITECTURE.md"


def test_the_documented_diagram_equals_the_table() -> None:
    """The diagram on the architecture page equals the one that is generated from the table."""
    assert diagram() in ARCHITECTURE.read_text()


def test_a_real_turn_follows_the_table() -> None:
    """An input, a reply with its effects, a heartbeat, an outside call in commits of its own, and the end are all
    allowed.
    """
    turn = [
        ("user_message", 0, 1), ("model_reply", 1, 2), ("memory_edited", 1, 2), ("function_result", 1, 2),
        ("heartbeat", 1, 2), ("summary", 2, 3), ("model_reply", 2, 4), ("function_started", 2, 4),
        ("function_result", 2, 5), ("message_sent", 2, 5), ("function_result", 2, 5),
    ]  # fmt: skip
    assert fault(turn) is None
    assert fault([*turn, ("summary", 0, 6)]) is None


def test_forbidden_transitions_are_named() -> None:
    """The table refuses a reply without a request, an effect before its reply, and anything after the end."""
    asked = [("user_message", 0, 1), ("model_reply", 1, 2), ("function_result", 1, 2)]
    assert "model_reply (step 2)" in (fault([*asked, ("model_reply", 2, 3)]) or "")
    assert "message_sent" in (fault([("user_message", 0, 1), ("message_sent", 1, 2)]) or "")
    assert fault([("user_message", 0, 1), ("model_failed", 1, 2), ("heartbeat", 1, 3)])
