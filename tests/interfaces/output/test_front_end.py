"""The protocol of front ends: a front end gets every record that people should see, once, in the order of the log."""

import asyncio

import pytest

from everlog.events import (
    AgentCreated,
    AnyEvent,
    BudgetExceeded,
    Call,
    ContextTrimmed,
    FunctionResult,
    Heartbeat,
    MemoryEdited,
    MessageSent,
    ModelError,
    ModelReply,
    Record,
    ReplyRejected,
    SystemAlert,
    TurnAbandoned,
    TurnCancelled,
    UnknownEvent,
    UserLogin,
    UserMessage,
    draft,
    place,
    tombstone,
    uuid7,
)
from everlog.interfaces.common.front_end import FrontEnd
from everlog.interfaces.output.narrator import Narrator
from tests.support.agent_world import START, World, completion, say
from tests.support.cli.command_line import Heard

SAVE = '{"name": "human", "content": "Sails", "request_heartbeat": true}'
LOSE = '{"name": "human", "content": "Golf"}'


def records_of(*events: AnyEvent) -> list[Record]:
    """Return the events as one commit of sam's log."""
    drafts = [
        draft(event, event_id=uuid7(START, seq), recorded_at=START, turn=1, step=1)
        for seq, event in enumerate(events, start=1)
    ]
    return [place(d, "sam", seq, 1) for seq, d in enumerate(drafts, start=1)]


def told(*records: Record) -> list[tuple[object, ...]]:
    """Return the calls that a front end gets for the records."""
    heard = Heard()
    Narrator(heard).on_records(records)
    return heard.told


async def conversation(world: World, heard: Heard) -> None:
    """Talk, summarize and talk again; a failure is delivered as a caller would deliver it."""
    interface = Narrator(heard)
    async with world.system.agent("sam", world.settings, on_commit=interface.on_records) as agent:
        heard.told.clear()  # what was heard of its birth
        await agent.receive(UserMessage(text="I sail", name="Chad"))
        await agent.run()
        await agent.summarize()
        await agent.receive(UserMessage(text="Hello?"))
        with pytest.raises(ModelError) as raised:
            await agent.run()
        interface.on_error(raised.value)


def test_a_conversation_is_delivered_whole_and_in_order() -> None:
    """Thoughts, calls and their results, heartbeats, messages, the warning, the summary and the error are each
    delivered once.
    """
    heard = Heard()
    world = World(
        completion("A sailor!", [("core_memory_append", SAVE)]),
        completion("Not golf.", [("core_memory_remove", LOSE)]),
        say("Ahoy.", total=7000),
        say("It is getting full."),
        ModelError("The endpoint is down.", kind="unreachable"),
        summaries=[completion("Chad sails.")],
    )
    asyncio.run(conversation(world, heard))
    failed = next(r.text for r in world.log() if r.type == "function_result" and '"ok":false' in r.payload)
    summarized = next(notice for notice in heard.told if notice[:2] == ("notice", "summary"))
    assert heard.told == [
        ("user_message", "I sail", "Chad"),
        ("inner_monologue", "A sailor!"),
        ("function_call", "core_memory_append", SAVE),
        ("function_message", "core_memory_append", SAVE, "None", True),
        ("notice", "heartbeat", "♥ requested"),
        ("inner_monologue", "Not golf."),
        ("function_call", "core_memory_remove", LOSE),
        ("function_message", "core_memory_remove", LOSE, failed, False),
        ("notice", "heartbeat", "♥ function failed"),
        ("inner_monologue", "I think."),
        ("assistant_message", "Ahoy.", "sam"),
        ("notice", "memory_pressure", "memory pressure: the agent was warned"),
        ("inner_monologue", "I think."),
        ("assistant_message", "It is getting full.", "sam"),
        summarized,
        ("user_message", "Hello?", ""),
        ("notice", "model_failed", "the model failed: The endpoint is down."),
        ("error", ModelError, "The endpoint is down."),
    ]
    assert summarized[2].endswith(" messages: Chad sails.")


def test_erased_content_is_not_delivered() -> None:
    """A tombstone is skipped; a result whose call was erased is delivered with its name only."""
    call = Call("call_0", "wind", '{"place": "Oslo"}')
    reply, ended, sent = records_of(
        ModelReply(text="Wind?", calls=[call]),
        FunctionResult(text="West.", call_id="call_0", name="wind"),
        MessageSent(text="West."),
    )
    assert told(tombstone(reply), ended, tombstone(sent)) == [("function_message", "wind", "", "West.", True)]


def test_unknown_events_cause_a_notice() -> None:
    """A kind of event, or a version of a kind, from a newer everlog causes a notice, and delivery continues."""
    future = UnknownEvent(kind="dream", version=1, text="Sheep.", payload='{"sheep":3}')
    newer = UnknownEvent(kind="message_sent", version=99, text="Hello", payload='{"to":"Chad"}')
    assert told(*records_of(future, newer, MessageSent(text="Hi"))) == [
        ("notice", "unknown", "dream, version 1: written by a newer everlog, not readable here"),
        ("notice", "unknown", "message_sent, version 99: written by a newer everlog, not readable here"),
        ("assistant_message", "Hi", "sam"),
    ]


@pytest.mark.parametrize(
    ("event", "notice"),
    [
        (ContextTrimmed(text="Record 7 is too large.", shown_chars=9), ("context_trimmed", "Record 7 is too large.")),
        (ReplyRejected(text="no call", attempt=1), ("reply_rejected", "no call")),
        (Heartbeat(reason="timer", timer="tea"), ("heartbeat", "♥ timer")),
        (TurnAbandoned(text="20 calls.", reason="steps_max"), ("turn_abandoned", "the turn was given up: 20 calls.")),
        (TurnCancelled(), ("turn_cancelled", "the turn was cancelled")),
        (
            BudgetExceeded(budget="tokens", limit=1e5, spent=100_250),
            ("budget_exceeded", "the budget tokens is used up: 100250 of 100000"),
        ),
    ],
)
def test_notices(event: AnyEvent, notice: tuple[str, str]) -> None:
    """An event outside the conversation is delivered as one notice with its complete text."""
    assert told(*records_of(event)) == [("notice", *notice)]


@pytest.mark.parametrize(
    "event",
    [
        AgentCreated(persona="plain", human="guest"),
        Heartbeat(reason="manual"),
        SystemAlert(text="Careful.", source="manual"),
        UserLogin(),
        MemoryEdited(text="Sails", label="human", operation="appended", limit=2000),
        FunctionResult(call_id="call_0", name="send_message"),
    ],
    ids=lambda event: event.kind,
)
def test_records_that_are_not_shown(event: AnyEvent) -> None:
    """A person's edits, results of message functions, and the agent's creation are not delivered."""
    assert told(*records_of(event)) == []


def test_a_message_that_failed_is_a_function_message() -> None:
    """The user does not see a failed send_message, so the front end gets the failed call as a function message."""
    reply = ModelReply(calls=[Call("c", "send_message", "{")])
    failed = FunctionResult(text="Error parsing JSON", call_id="c", name="send_message", ok=False)
    assert told(*records_of(reply, failed)) == [("function_message", "send_message", "{", "Error parsing JSON", False)]


def test_two_calls_of_one_reply_keep_their_own_arguments() -> None:
    """Each result has the arguments of its own call, in whatever order the calls end; a call without arguments has an
    empty object.
    """
    calls = [Call("a", "wind", '{"place": "Oslo"}'), Call("b", "moon", "")]
    ends = [FunctionResult(text="Full.", call_id="b", name="moon"), FunctionResult(call_id="a", name="wind")]
    assert told(*records_of(ModelReply(calls=calls), *ends)) == [
        ("function_call", "wind", '{"place": "Oslo"}'),
        ("function_call", "moon", "{}"),
        ("function_message", "moon", "{}", "Full.", True),
        ("function_message", "wind", '{"place": "Oslo"}', "", True),
    ]


def test_a_result_never_gets_the_arguments_of_an_older_reply() -> None:
    """Models reuse ids, so the calls of one reply are forgotten when the next reply arrives."""
    first = ModelReply(calls=[Call("a", "wind", '{"place": "Oslo"}')])
    late = FunctionResult(text="Full.", call_id="a", name="moon")
    assert told(*records_of(first, ModelReply(), late))[-1] == ("function_message", "moon", "", "Full.", True)


def test_an_imported_message_says_who_said_it() -> None:
    """A message of an imported conversation has its speaker's name; other messages have the agent's name."""
    sent = [MessageSent(text="Hi", name="Mel", imported=True), MessageSent(text="Ho")]
    assert told(*records_of(*sent)) == [("assistant_message", "Hi", "Mel"), ("assistant_message", "Ho", "sam")]


def test_a_front_end_writes_only_what_it_shows() -> None:
    """Every call of the protocol does nothing unless a front end overrides it."""

    class Ear(FrontEnd):
        """A front end that records only messages to the user."""

        def __init__(self) -> None:
            self.heard: list[str] = []

        def assistant_message(self, text: str, name: str) -> None:
            self.heard.append(text)

    ear = Ear()
    interface = Narrator(ear)
    calls = [Call("a", "wind", "{}")]
    ended = FunctionResult(call_id="a", name="wind")
    interface.on_records(
        records_of(UserMessage(text="Hi"), ModelReply(text="Hm.", calls=calls), ended, MessageSent(text="Ho"))
    )
    interface.on_records(records_of(TurnCancelled()))
    interface.on_error(ModelError("Down.", kind="unreachable"))
    assert ear.heard == ["Ho"]
