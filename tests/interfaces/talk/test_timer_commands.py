"""`everlog timer` and `everlog timers`, and a timer that fires while a user sits at the prompt."""

import threading

import pytest

from everlog.store import FileStore
from tests.support.cli.command_line import Line, completion

NOON = "2023-11-15T12:00"


def test_a_timer_is_set_listed_and_cancelled(cli: Line) -> None:
    """Timers without a name get numbers; the list is ordered by due time, as JSON and as text."""
    cli.ok("create", "sam")
    assert "timer-1" in cli.ok("timer", "sam", "--every", "1h30m", "Drink water")
    assert cli.json("timer", "sam", "Call Ann", "--at", NOON, "--timer", "ann") == {
        "agent": "sam", "timer": "ann", "due": f"{NOON}:00.000000Z", "every_s": 0, "cron": None, "zone": "UTC",
    }  # fmt: skip
    assert "timer-2" in cli.ok("timer", "sam", "Soon", "--after", "10m")
    rows = cli.json("timers", "sam")
    assert [(row["timer"], row["every_s"], row["text"]) for row in rows] == [
        ("timer-2", 0, "Soon"),
        ("timer-1", 5400, "Drink water"),
        ("ann", 0, "Call Ann"),
    ]
    assert "every 1h30m  Drink water" in cli.ok("timers", "sam")
    assert cli.json("timer", "sam", "--cancel", "ann") == {"agent": "sam", "cancelled": "ann"}
    assert [row["timer"] for row in cli.json("timers", "sam")] == ["timer-2", "timer-1"]
    assert "ann" in [row["timer"] for row in cli.json("timers", "sam", "--as-of", "10")]


def test_a_timer_of_the_same_name_is_replaced(cli: Line) -> None:
    """Each name has at most one timer: the newest."""
    cli.ok("create", "sam")
    for text in ("one", "two"):
        cli.ok("timer", "sam", text, "--every", "1d", "--timer", "daily")
    assert [row["text"] for row in cli.json("timers", "sam")] == ["two"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--every", "0x"), "is not a length of time such as"),
        (("--every", ""), "is not a length of time such as"),
        ((), "a time is missing"),
        (("--every", "0s"), "is not a length of time from 1s to 36600d"),
        (("--every", "0s", "--at", NOON), "is not a length of time from 1s to 36600d"),
        (("--every", "99999d"), "is not a length of time from 1s to 36600d"),
        (("--at", "noon"), "is not an ISO time from 1970 to 9999"),
        (("--at", "1969-12-31T23:59"), "is not an ISO time from 1970 to 9999"),
        (("--at", "9999-12-31T23:59:59.5-01:00"), "is not an ISO time from 1970 to 9999"),
        (("--cancel", "a", "--every", "1h"), "--cancel cannot be given with"),
        (("--cancel", "a", "--after", "0s"), "--cancel cannot be given with"),
        (("--at", NOON, "--after", "1h"), "not allowed with"),
        (("--daily", "24:00"), "is not a time of the day from 00:00 to 23:59"),
        (("--daily", "7"), "is not a time of the day from 00:00 to 23:59"),
        (("--cron", "0 7 * *"), "is not a schedule: five fields"),
        (("--cron", "@daily"), "is not a schedule: five fields"),
        (("--daily", "07:00", "--every", "1d"), "give one of --every, --daily and --cron"),
        (("--daily", "07:00", "--at", NOON), "--at and --after cannot be given with them"),
        (("--cancel", "a", "--daily", "07:00"), "--cancel cannot be given with"),
    ],
)
def test_a_timer_that_cannot_be_is_bad_usage(cli: Line, words: tuple[str, ...], said: str) -> None:
    """The exit code is 2 with the reason, and no timer is set."""
    cli.ok("create", "sam")
    code, _, err = cli("timer", "sam", "hello", *words) if "--cancel" not in words else cli("timer", "sam", *words)
    assert code == 2
    assert said in err
    assert cli.json("timers", "sam") == []


@pytest.mark.beside_store("a server has a store")
def test_an_impossible_time_of_a_timer_is_reported(cli: Line) -> None:
    """An impossible time makes neither store nor agent; an unknown timer is named."""
    assert "there is no store" in cli.fails("timer", "sam", "--every", "1h")
    assert not cli.root.exists()
    cli.ok("create", "sam")
    assert "There is no agent 'ann'" in cli.fails("timer", "ann", "--every", "1h")
    assert "has no timer 'x'; its timers: none" in cli.fails("timer", "sam", "--cancel", "x")


def test_a_time_in_the_past_is_said_to_be(cli: Line) -> None:
    """The timer is set and fires at once; a warning reports the past time, because it is probably a mistake."""
    cli.ok("create", "sam")
    code, _, err = cli("timer", "sam", "--at", "2020-01-01")
    assert (code, err) == (0, "everlog: warning: 2020-01-01 00:00:00 UTC is in the past: the timer fires at once.\n")
    assert cli("timer", "sam", "--at", NOON)[2] == ""


def test_an_agent_that_is_busy_elsewhere_gets_no_timer(cli: Line) -> None:
    """The busy agent is not changed, and the error offers no option that `timer` does not have."""
    cli.ok("create", "sam")
    log = FileStore(cli.root, cli.clock.now).open("sam", "everlog chat")
    for words in (("--every", "1h"), ("--cancel", "x")):
        said = cli.fails("timer", "sam", *words)
        assert "Close it there and run the command again. Nothing was changed." in said
        assert "--take-over" not in said
    log.close()


def test_times_are_those_of_the_agents_zone(cli: Line) -> None:
    """--at without an offset, --daily and --cron mean the wall clock of the agent; the output names its zone."""
    cli.ok("create", "sam", "--zone", "Europe/Oslo")
    assert "at 2024-01-15 07:00:00 CET." in cli.ok("timer", "sam", "--at", "2024-01-15T07:00", "--timer", "winter")
    assert "at 2024-07-15 07:00:00 CEST." in cli.ok("timer", "sam", "--at", "2024-07-15T07:00", "--timer", "summer")
    assert "at 2024-01-15 08:00:00 CET." in cli.ok("timer", "sam", "--at", "2024-01-15T07:00Z", "--timer", "utc")
    daily = cli.json("timer", "sam", "Good morning", "--daily", "07:00", "--timer", "daily")
    assert (daily["due"], daily["cron"], daily["zone"]) == ("2023-11-15T06:00:00.000000Z", "0 7 * * *", "Europe/Oslo")
    monday = cli.json("timer", "sam", "--cron", "30 8 * * 1", "--timer", "monday")
    assert monday["due"] == "2023-11-20T07:30:00.000000Z"
    assert cli.ok("timers", "sam").splitlines()[:2] == [
        "daily  2023-11-15 07:00:00 CET  daily at 07:00  Good morning",
        "monday  2023-11-20 08:30:00 CET  at the times of 30 8 * * 1",
    ]


def test_a_schedule_without_a_time_is_refused(cli: Line) -> None:
    """The thirtieth of February is no time: nothing is set."""
    cli.ok("create", "sam")
    assert "has no time in the next years. No timer was set." in cli.fails("timer", "sam", "--cron", "0 0 30 2 *")
    assert cli.json("timers", "sam") == []


class Waiting:
    """A user who types nothing until the model has answered, and then leaves the chat."""

    def __init__(self, answered: threading.Event) -> None:
        self._answered = answered

    def isatty(self) -> bool:
        return False

    def readline(self) -> str:
        assert self._answered.wait(60), "the timer did not go off"
        return ""


@pytest.mark.beside_store("timers fire in the server, also while no chat is open")
def test_a_timer_goes_off_while_a_chat_is_open(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn of a timer is shown without a message; the timer became due while no process ran the agent, so it fires
    late, and once.
    """
    cli.ok("create", "sam")
    cli.ok("timer", "sam", "Say good morning", "--after", "1s")
    answered = threading.Event()
    asked = cli.script.ask

    async def ask(request: bytes, **_: object):
        if cli.script.asked:  # the second step: the first one's message is durable and was shown
            answered.set()
        return await asked(request)

    cli.script.answers = [completion(("send_message", {"message": "Good morning!"}), ("unknown", {}))]
    monkeypatch.setattr(cli.script, "ask", ask)
    monkeypatch.setattr("sys.stdin", Waiting(answered))
    out = cli.ok("chat", "sam")
    assert "Good morning!" in out
    beats = [r for r in cli.lines("events", "sam") if r["type"] == "heartbeat"]
    assert [(r["text"], r["payload"]["timer"], r["payload"]["late"]) for r in beats if "timer" in r["payload"]] == [
        ("Say good morning", "timer-1", True)
    ]
    assert cli.json("timers", "sam") == []
