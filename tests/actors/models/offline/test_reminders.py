"""The offline model sets, lists and cancels timers, and reminds the user when one fires: from requests to calls."""

import json
from typing import Any

import pytest

from everlog.actors.models.offline import reminders
from tests.support.models.offline_requests import (
    FUNCTIONS,
    REQUESTED,
    beat,
    called,
    calls,
    names,
    request,
    result,
    said,
    user,
)

NOW = "2023-05-20 10:00:00 AM UTC+0000"
TIMERS = ("set_timer", "cancel_timer", "list_timers")


def asked(*chat: dict[str, Any], functions: tuple[str, ...] = TIMERS) -> bytes:
    """Return a request of an agent that has the functions of timers."""
    body = json.loads(request(*chat))
    body["tools"] = [{"type": "function", "function": {"name": name}} for name in (*FUNCTIONS, *functions)]
    return json.dumps(body).encode()


def set_by(text: str) -> dict[str, Any]:
    """Return the arguments of the timer that a message sets."""
    return next(arguments for name, arguments in calls(asked(user(text))) if name == "set_timer")


@pytest.mark.parametrize(
    ("text", "what", "when"),
    [
        ("Remind me to buy bread in 2 minutes", "buy bread", {"in_minutes": 2}),
        ("In half an hour, remind me to call mum.", "call mum", {"in_minutes": 30}),
        ("can you remind me in 30 seconds that the tea is ready?", "the tea is ready", {"in_minutes": 0.5}),
        ("Please remind me at 17:30 to leave", "leave", {"at": "2023-05-20 17:30"}),
        ("remind me at 9 to leave", "leave", {"at": "2023-05-20 21:00"}),
        ("remind me at 9am to leave", "leave", {"at": "2023-05-21 09:00"}),
        ("remind me tomorrow at 9:15 about the dentist", "the dentist", {"at": "2023-05-21 09:15"}),
        ("remind me every weekday at 7:15 to stretch", "stretch", {"schedule": "15 7 * * 1-5"}),
        ("remind me every Monday to water the plants", "water the plants", {"schedule": "0 9 * * 1"}),
        ("remind me every 2 hours to drink", "drink", {"schedule": "0 */2 * * *"}),
    ],
)
def test_a_request_with_a_time_sets_a_timer(text: str, what: str, when: dict[str, Any]) -> None:
    """The timer is named after what it reminds of, its text is the order to remind the user, and its time is meant."""
    arguments = set_by(text)
    assert arguments == {"name": what, "text": f"Remind the user: {what}", **when}
    assert what in said(asked(user(text)))


@pytest.mark.parametrize(
    "text", ["remind me to call mum tomorrow", "remind me at 25:00 to leave", "remind me every 7 hours to sail"]
)
def test_a_request_without_a_valid_time_stays_on_the_to_do_list(text: str) -> None:
    """Without a time that a clock can show nothing is set."""
    assert "set_timer" not in names(asked(user(text)))


def test_without_the_function_a_reminder_goes_to_the_to_do_list() -> None:
    """An agent that has no timers notes what it is to remind of."""
    name, arguments = calls(request(user("Remind me to buy bread in 2 minutes")))[0]
    assert (name, arguments["content"]) == ("core_memory_append", "To do: buy bread in 2 minutes")


def test_the_rest_of_a_message_is_served_too() -> None:
    """A fact beside a reminder is written down."""
    found = names(asked(user("My name is Chad. Remind me in 5 minutes to sail.")))
    assert sorted(found) == ["core_memory_replace", "send_message", "set_timer"]


def test_it_reminds_when_its_timer_fires() -> None:
    """The heartbeat of its own timer becomes a sentence for the user, which says if it is late."""
    assert said(asked(beat("Remind the user: buy bread (buy bread)"))) == "You asked me to remind you: buy bread."
    assert "comes late" in said(asked(beat("Remind the user: buy bread (buy bread, late)")))


def test_another_timer_reminds_nobody() -> None:
    """A heartbeat that says something else is not taken for a reminder."""
    assert said(asked(beat("Check the weather (weather)"))) == ""


LISTED = json.dumps(
    [
        {"name": "buy bread", "due": "2023-05-20 10:02:00 AM UTC+0000", "text": "Remind the user: buy bread"},
        {"name": "sail", "due": "2023-05-20 11:00:00 AM UTC+0000", "text": "Remind the user: sail"},
    ]
)


def after_list(text: str, timers: str = LISTED) -> bytes:
    """Return the request that follows `list_timers`."""
    return asked(user(text), called("list_timers"), result(timers), beat(REQUESTED))


def test_reminders_can_be_listed() -> None:
    """A question about reminders lists the timers first, and then says each with its time."""
    assert names(asked(user("What reminders do I have?"))) == ["list_timers"]
    answer = said(after_list("What reminders do I have?"))
    assert answer == "buy bread: 2023-05-20 10:02:00 AM UTC+0000; sail: 2023-05-20 11:00:00 AM UTC+0000."
    assert said(after_list("What reminders do I have?", "No timers are set.")) == "No reminders are set."


def test_a_reminder_can_be_cancelled_by_its_words() -> None:
    """The timer that shares a word with the request is cancelled, after the timers were listed; no other one is."""
    assert names(asked(user("Cancel the reminder about the bread"))) == ["list_timers"]
    cancelled = [
        a["name"] for name, a in calls(after_list("Cancel the reminder about the bread")) if name == "cancel_timer"
    ]
    assert cancelled == ["buy bread"]


def test_an_unclear_cancellation_is_asked_about() -> None:
    """With two timers and no word of either nothing is cancelled, and the reply names both; "all" cancels both."""
    assert names(after_list("Cancel the reminder")) == ["send_message"]
    assert "buy bread, sail" in said(after_list("Cancel the reminder"))
    assert names(after_list("cancel all reminders")).count("cancel_timer") == 2


def test_a_name_with_brackets_is_found_again() -> None:
    """A reminder may contain brackets, and is said whole when it fires."""
    found = reminders.reminder_in("Remind me in 1 minute to call Lea (the doctor)", NOW)
    assert found is not None
    assert reminders.reminded(f"{found.call['text']} ({found.call['name']})") == (
        "You asked me to remind you: call Lea (the doctor)."
    )
