"""The line of one record in a replay."""

import pytest
from rich.text import Text

from everlog.events import (
    ArchivalInserted,
    BudgetExceeded,
    Event,
    FunctionResult,
    FunctionStarted,
    Heartbeat,
    MessageSent,
    ModelFailed,
    ReplyRejected,
    Summary,
    SystemAlert,
    TurnAbandoned,
    TurnCancelled,
    UserLogin,
    UserMessage,
    tombstone,
)
from everlog.interfaces.replay_console.record_entries import EntryLine, changes, entry, repeats_message
from tests.support.cli.story_records import RECORDS, recorded, story_of

WARNED = "the agent is warned that its context is filling up"


def said(event: Event, *, marked: bool = False) -> list[tuple[str, str]]:
    records = recorded([(event, 1, 1)])
    return plain_lines(entry(records[0], story_of(records), marked=marked))


def plain_lines(lines: list[EntryLine]) -> list[tuple[str, str]]:
    return [(line.label, line.words.plain) for line in lines]


@pytest.mark.parametrize(
    ("event", "label", "words"),
    [
        (UserMessage(text="hi"), "user", "hi"),
        (UserMessage(text="hi", name="chad"), "chad", "hi"),
        (MessageSent(text="hello"), "sam", "hello"),
        (UserLogin(), "login", "a user logged in"),
        (Heartbeat(reason="function_failed"), "♥", "function failed"),
        (Heartbeat(reason="timer", text="Rain?"), "♥", "timer  Rain?"),
        (SystemAlert(text="x", source="memory_pressure"), "pressure", WARNED),
        (SystemAlert(text="by hand"), "system", "by hand"),
        (FunctionStarted(call_id="a", name="wind", arguments='{"a":1}', effect="read_only"), "starts", "wind(a=1)"),
        (FunctionResult(call_id="a", name="wind", text="8 m/s"), "→ ok", "wind: 8 m/s"),
        (FunctionResult(call_id="a", name="wind", text="None"), "→ ok", "wind"),
        (FunctionResult(call_id="a", name="wind", ok=False, text="calm"), "failed", "wind: calm"),
        (ArchivalInserted(text="gold"), "archives", "gold"),
        (ModelFailed(text="gone", failure="unreachable"), "failed", "the model failed: gone"),
        (ReplyRejected(text="no call", attempt=1), "failed", "no call"),
        (TurnAbandoned(text="too long", reason="context"), "failed", "the turn was given up: too long"),
        (BudgetExceeded(budget="all cost", limit=1.0, spent=1.0), "failed", "the budget all cost is used up: 1 of 1"),
        (TurnCancelled(), "cancelled", "the turn was cancelled"),
        (
            Summary(text="S", covers_from=1, covers_to=3, kept_from=4, hidden=2, total=3, summarized=2),
            "summary",
            "2 messages up to seq 3: S",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Event) else "",
)  # fmt: skip
def test_what_is_said(event: Event, label: str, words: str) -> None:
    """Each kind of record has its label and its complete text."""
    assert said(event) == [(label, words)]


def test_a_reply_thinks_and_calls() -> None:
    """A reply shows the thought with its cost, then each call; a heart marks a call that requests a heartbeat."""
    story = story_of(RECORDS)
    assert plain_lines(entry(RECORDS[4], story)) == [
        ("thinks", "A sailor!  · 800 tokens, 80%"),
        ("calls", 'core_memory_append(name="human", content="Sails") ♥'),
    ]


def test_an_edit_shows_what_changed() -> None:
    """Changes are shown in colours, or with signs where there are no colours."""
    story = story_of(RECORDS)
    assert plain_lines(entry(RECORDS[5], story)) == [("memory", "human appended: Name: Chad Sails")]
    assert plain_lines(entry(RECORDS[5], story, marked=True)) == [("memory", "human appended: Name: Chad{+ Sails+}")]
    assert changes([("removed", "a"), ("added", "b")], marked=True).plain == "[-a-]{+b+}"


def test_what_was_erased_says_so() -> None:
    """A tombstone shows only its kind."""
    records = [*RECORDS[:3], tombstone(RECORDS[3]), *RECORDS[4:5], tombstone(RECORDS[5])]
    story = story_of(records)
    assert plain_lines(entry(records[3], story)) == [("user_mes…", "erased")]
    assert plain_lines(entry(records[5], story)) == [("memory_e…", "erased")]


@pytest.mark.parametrize(
    "text", ["\x1b[2J\x1b]0;owned\x07", "[bold red]x[/bold red]", "a\u202eb\u2066c", "\x9b31m\r\x08"]
)
def test_words_have_no_power(text: str) -> None:
    """Escape sequences and direction marks are shown as visible text, and square brackets are not markup."""
    for event in (UserMessage(text=text, name=text), FunctionResult(call_id=text, name=text, text=text, ok=False)):
        for label, words in said(event):
            for shown in (label, words):
                assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2066" for c in shown if c != "\n")
    assert Text("[bold red]x[/bold red]").plain in said(UserMessage(text="[bold red]x[/bold red]"))[0][1]


def test_only_sending_a_message_is_quiet() -> None:
    """A successful send_message is shown by its message only; any other result, and any failure, has a line of
    its own.
    """
    quiet, other, failed = recorded(
        [
            (FunctionResult(call_id="a", name="send_message"), 1, 1),
            (FunctionResult(call_id="a", name="wind"), 1, 1),
            (FunctionResult(call_id="a", name="send_message", ok=False), 1, 1),
        ]
    )
    assert [repeats_message(record) for record in (quiet, other, failed)] == [True, False, False]


def test_endless_words_end() -> None:
    """A text of a million characters is cut, and the number of the omitted characters is shown."""
    ((_, words),) = said(UserMessage(text="x" * 1_000_000))
    assert len(words) < 5000
    assert "996,000 more characters" in words
