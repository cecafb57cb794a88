"""Every option for an agent's settings, given to each command that takes it."""

import io

import pytest

from tests.support.cli.command_line import Line

OPTIONS = (
    "--window", "8192", "--zone", "UTC", "--preset", "chat", "--calling", "native", "--stream", "--sampling", "seed=1",
    "--summarizer=", "--fallback=", "--verify-first", "--first-attempts", "3", "--monologue-chars", "100",
    "--steps", "5", "--keep-last", "2", "--day-tokens", "1000000", "--pressure", "0.7", "--summary-part", "0.6",
    "--day-cost", "9", "--deriver", "rules", "--reflect-at", "99", "--no-probe",
)  # fmt: skip


@pytest.mark.parametrize("command", [("create", "sam"), ("send", "sam", "Hello"), ("chat", "sam")])
def test_every_setting_can_be_given_to_each_command_that_opens_an_agent(
    cli: Line, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All settings together are accepted and recorded."""
    monkeypatch.setattr("sys.stdin", io.StringIO("/exit\n"))
    cli.ok(*command, *OPTIONS)
    configured = [record["payload"] for record in cli.lines("events", "sam") if record["type"] == "agent_configured"]
    assert (configured[-1]["stream"], configured[-1]["steps_max"], configured[-1]["sampling"]) == (True, 5, {"seed": 1})
    assert configured[-1]["day_cost_max"] == 9
    assert (configured[-1]["deriver"], configured[-1]["reflect_at"]) == ("rules", 99)
