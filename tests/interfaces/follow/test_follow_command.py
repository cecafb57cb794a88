"""`everlog follow`: what was committed, as lines, and a position to continue at."""

import json
import re

import pytest

from everlog.actors.feed.store_feed import FeedReader
from tests.support.cli.command_line import Line, says

pytestmark = pytest.mark.beside_store("Ctrl-C comes when the reader of the store waits, which runs in the server")


@pytest.fixture(autouse=True)
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C as soon as the command waits for new records."""

    async def wait(_self: FeedReader, _longest_s: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FeedReader, "wait", wait)


def followed(cli: Line, *arguments: str) -> tuple[str, str]:
    """Run the command until it has printed everything, and return its output and the position."""
    _, out, err = cli("follow", *arguments)
    token = re.search(r"--resume (\S+)", err)
    assert token, err
    return out, token[1]


def test_the_records_are_printed_once_and_it_goes_on_after_the_token(cli: Line) -> None:
    """From the start every record is a line; from the printed position only later ones are."""
    cli.ok("create", "sam")
    cli.script.answers = [says("Ahoy"), says("Bye")]
    cli.ok("send", "sam", "Hello")
    out, token = followed(cli, "--resume", "start", "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert records == cli.lines("events", "sam")
    cli.ok("create", "ann")
    cli.ok("send", "sam", "Again")
    out, token = followed(cli, "--resume", token, "--json")
    later = [json.loads(line) for line in out.splitlines()]
    assert [r for r in later if r["agent_id"] == "sam"] == cli.lines("events", "sam")[len(records) :]
    assert {r["agent_id"] for r in later} == {"sam", "ann"}
    assert followed(cli, "--resume", token)[0] == ""


def test_agents_and_types_are_chosen(cli: Line) -> None:
    """Patterns choose agents, types choose records; the lines for people name both."""
    for name in ("sam", "ann"):
        cli.ok("create", name)
        cli.script.answers = [says("Ahoy")]
        cli.ok("send", name, "Hello")
    out, _ = followed(cli, "--resume", "start", "s*", "--type", "message_sent")
    assert len(out.splitlines()) == 1
    assert all(word in out for word in ("sam", "message_sent", "Ahoy"))


def test_a_text_that_is_no_position_is_refused(cli: Line) -> None:
    """`--resume` takes `start` or a position that was printed."""
    cli.ok("create", "sam")
    assert "is no position of a feed" in cli.fails("follow", "--resume", "nonsense")
