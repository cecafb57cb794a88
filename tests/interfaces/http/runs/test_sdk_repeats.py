"""The rule by which a request is recognized that a client's library sent again without an id."""

import pytest

from everlog.events import Draft, Event, Heartbeat, Record, UserMessage, draft, place
from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.runs.sdk_repeats import SdkRepeat, digest_of_input, repeat_of, repeated_input

NOW = 1_700_000_000 * MICROSECONDS
HELLO = UserMessage(text="Hello")


def _record(event: Event, seq: int, age_s: float = 1, step: int = 0) -> Record:
    made: Draft = draft(event, event_id=f"0000-{seq}", recorded_at=NOW - int(age_s * MICROSECONDS), turn=seq, step=step)
    return place(made, "sam", seq, seq)


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({}, None),
        ({"x-stainless-retry-count": "0"}, None),
        ({"x-stainless-retry-count": "x"}, None),
        ({"x-stainless-retry-count": "-1"}, None),
        ({"x-stainless-retry-count": "1"}, SdkRepeat(1, 60.0)),
        ({"x-stainless-retry-count": "2", "x-stainless-read-timeout": "600.0"}, SdkRepeat(2, 600.0)),
        ({"x-stainless-retry-count": "2", "x-stainless-read-timeout": "nan"}, SdkRepeat(2, 60.0)),
        ({"x-stainless-retry-count": "2", "x-stainless-read-timeout": "1e9"}, SdkRepeat(2, 3600.0)),
        ({"x-stainless-retry-count": "999", "x-stainless-read-timeout": "-5"}, SdkRepeat(10, 60.0)),
    ],
)
def test_a_claim_is_read_from_the_headers(headers: dict[str, str], wanted: SdkRepeat | None) -> None:
    """A retry count above 0 is a claim; what cannot be read is none, and times are within bounds."""
    assert repeat_of(headers) == wanted


def test_the_newest_message_with_the_same_words_is_the_first_try() -> None:
    """Of several messages with the same words within the time the newest is meant, with any key."""
    records = [_record(HELLO, 1, 30), _record(UserMessage(text="Hello", by="key"), 2, 20), _record(Heartbeat(
        reason="manual"), 3)]  # fmt: skip
    found = repeated_input(reversed(records), HELLO, SdkRepeat(1, 60), NOW)
    assert found is not None
    assert found.seq == 2


@pytest.mark.parametrize(
    ("said", "age_s", "step"),
    [
        (UserMessage(text="Hello!"), 1, 0),
        (UserMessage(text="Hello", name="Chad"), 1, 0),
        (UserMessage(text="Hello", note="Be brief."), 1, 0),
        (UserMessage(text="Hello", conversation="conv-1"), 1, 0),
        (UserMessage(text="Hello", ref="an id of the client"), 1, 0),
        (HELLO, 70.1, 0),
        (HELLO, 1, 1),
        (Heartbeat(text="Hello", reason="manual"), 1, 0),
    ],
)
def test_another_message_is_not_the_first_try(said: Event, age_s: float, step: int) -> None:
    """Other words, another user, other instructions, another conversation, a message with an id, and one that is too
    old for the claim are not the first try.
    """
    assert repeated_input([_record(said, 1, age_s, step)], HELLO, SdkRepeat(1, 60), NOW) is None


def test_each_try_makes_the_time_longer() -> None:
    """The second repeat can mean a message that is older than the first repeat can."""
    records = [_record(HELLO, 1, 100)]
    assert repeated_input(records, HELLO, SdkRepeat(1, 60), NOW) is None
    assert repeated_input(records, HELLO, SdkRepeat(2, 60), NOW) == records[0]


def test_an_erased_message_is_not_the_first_try() -> None:
    """A message whose words were erased is not compared."""
    record = place(
        Draft(event_id="x", recorded_at=NOW, type="user_message", turn=1, step=0, version=1, text=None,
              payload='{"erased":true}'), "sam", 1, 1,
    )  # fmt: skip
    assert repeated_input([record], UserMessage(text=""), SdkRepeat(1, 60), NOW) is None


def test_requests_in_flight_are_told_apart_by_agent_and_words() -> None:
    """The digest of a message that is on its way differs for another agent and for other words."""
    digests = {digest_of_input(stream, said) for stream in ("sam", "tim") for said in (HELLO, UserMessage(text="Bye"))}
    assert len(digests) == 4
    assert digest_of_input("sam", UserMessage(text="Hello")) in digests
