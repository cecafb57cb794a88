"""Hypothesis strategies: events of the catalogue, made from their types, and logs that an agent could have written."""

import random
import types
import typing
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from everlog.events import (
    CATALOGUE,
    AgentDeleted,
    AgentMessageReceived,
    AgentMessageSent,
    AgentMessageSettled,
    AgentReplyReceived,
    ApprovalDecided,
    ApprovalRequested,
    ArchivalInserted,
    Call,
    ContextTrimmed,
    Event,
    FunctionResult,
    Heartbeat,
    HeartbeatsPaused,
    InheritedBudget,
    MemoryEdited,
    MessageSent,
    ModelReply,
    Record,
    ReplyRethought,
    SourceAttached,
    SourceDetached,
    Summary,
    SystemAlert,
    TimerCancelled,
    TimerSet,
    TurnAbandoned,
    TurnsHidden,
    Usage,
    UserMessage,
    draft,
    place,
    tombstone,
    uuid7,
)

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)


def of_type(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a field's type."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(of_type, args))
    if origin is list:
        return st.lists(of_type(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(of_type(args[0]), of_type(args[1]), max_size=3)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return struct(kind)
    plain = {
        str: TEXT,
        int: st.integers(-(2**53), 2**53),
        float: st.floats(allow_nan=False, allow_infinity=False, width=32),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return plain[kind]


def struct(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a Struct."""
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{field: of_type(hints[field]) for field in cls.__struct_fields__})


def events() -> st.SearchStrategy[Event]:
    """Return a strategy for any event of the catalogue."""
    return st.one_of(*(struct(cls) for cls in CATALOGUE.values()))


@st.composite
def turn(draw: st.DrawFn, number: int) -> list[tuple[Event, int, int]]:
    """Draw the (event, turn, step) of one turn as an agent records it."""
    words = TEXT
    opened: Event = draw(
        st.one_of(
            st.builds(UserMessage, text=words),
            st.builds(SystemAlert, text=words),
            st.just(Heartbeat(reason="manual")),
        )
    )
    left: list[tuple[Event, int, int]] = [(opened, number, 0)]
    for step in range(1, draw(st.integers(1, 3)) + 1):
        call = Call(f"c{step}", "send_message", "{}")
        usage = Usage(prompt=draw(st.integers(1, 9000)), completion=1, total=draw(st.integers(1, 9000)))
        left.append(
            (ModelReply(text="hm", calls=[call], usage=usage, context_sha256="00", context_bytes=4000), number, step)
        )
        left.extend((event, number, step) for event in draw(st.lists(effect(), max_size=2)))
        left.append((FunctionResult(call_id=call.id, name=call.name), number, step))
        if draw(st.booleans()):
            left.append((SystemAlert(text="full", source="memory_pressure"), number, step))
        left.append((Heartbeat(reason="requested"), number, step))
    return left[:-1]


def effect() -> st.SearchStrategy[Event]:
    """Return a strategy for an event that a function records."""
    label = st.sampled_from(["persona", "human", "plans"])
    operation = st.sampled_from(["created", "appended", "replaced", "removed", "set"])
    source = st.sampled_from(["handbook", "letters"])
    return st.one_of(
        st.builds(MessageSent, text=TEXT, call_id=st.just("c")),
        st.builds(MemoryEdited, text=TEXT, label=label, operation=operation, limit=st.just(2000)),
        st.builds(ArchivalInserted, text=TEXT),
        st.builds(SourceAttached, source=source),
        st.builds(SourceDetached, source=source),
    )


def taken_back(number: int, left: Sequence[tuple[Event, int, int]]) -> st.SearchStrategy[Event]:
    """Return a strategy that hides some of the turns up to `number`, shows less of a record or block, or rethinks a
    reply of `left` (whose first seq is 1).
    """
    replies = [seq for seq, (event, _, _) in enumerate(left, start=1) if isinstance(event, ModelReply)]
    turns = st.lists(st.integers(1, number), min_size=1, unique=True).map(sorted)
    chars = st.integers(0, 20)
    hidden = (
        st.builds(TurnsHidden, turns=turns)
        | st.builds(ContextTrimmed, target_seq=st.integers(1, len(left)), shown_chars=chars)
        | st.builds(ContextTrimmed, label=st.sampled_from(["persona", "human"]), shown_chars=chars)
    )
    return hidden | st.builds(ReplyRethought, text=TEXT, target_seq=st.sampled_from(replies)) if replies else hidden


@st.composite
def streams(draw: st.DrawFn, agent_id: str = "sam", birth: tuple[Event, ...] = ()) -> list[Record]:
    """Draw a whole stream: a creation, turns, and summaries of earlier records; sometimes a second incarnation."""
    left: list[tuple[Event, int, int]] = [(event, 0, 0) for event in birth]
    for number in range(1, draw(st.integers(1, 6)) + 1):
        left.extend(draw(turn(number)))
        if draw(st.integers(0, 3)) == 0:
            kept = draw(st.integers(1, len(left)))
            summary = Summary(
                text=draw(TEXT), covers_from=1, covers_to=kept, kept_from=kept, hidden=1, total=2, summarized=1
            )
            left.append((summary, number, 0))
        if draw(st.integers(0, 3)) == 0:
            left.append((draw(taken_back(number, left)), number, 0))
        if draw(st.integers(0, 9)) == 0:
            left.extend((event, number, 0) for event in birth)
    records, commit = [], 0
    for seq, (event, at_turn, step) in enumerate(left, start=1):
        commit += draw(st.booleans()) or seq == 1
        made = draft(event, event_id=uuid7(seq * 1000, seq), recorded_at=seq * 1000, turn=at_turn, step=step)
        records.append(place(made, agent_id, seq, commit))
    return records


@st.composite
def lives(draw: st.DrawFn, birth: tuple[Event, ...]) -> list[Record]:
    """Draw a stream with everything that a state must get right: timers, pauses, open turns, imports, incarnations,
    tombstones.
    """
    chance = draw(st.randoms(use_true_random=False))
    left: list[tuple[Event, int, int]] = [(event, 0, 0) for event in birth]
    number, kept = 0, 1
    for _ in range(chance.randint(3, 12)):
        kind = chance.choice(
            [
                "turn",
                "turn",
                "turn",
                "timer",
                "effect",
                "delete",
                "import",
                "summary",
                "stop",
                "back",
                "approval",
                "mail",
                "mail",
            ]
        )
        if kind == "turn":
            number += 1
            left += some_turn(number, chance)
        elif kind == "timer":
            left.append((some_timer(chance), number, 1))
        elif kind == "approval":
            number += 1
            left += some_approval(number, left, chance)
        elif kind == "mail":
            number += 1
            left += some_mail(number, left, chance)
        elif kind == "effect":
            left.append((draw(effect()), number, 1))
        elif kind == "delete" and chance.random() < 0.3:
            left += [(AgentDeleted(), number, 0), *((event, 0, 0) for event in birth)]
            number = 0
        elif kind == "import":
            left += [
                (UserMessage(text="i", imported=True), number, 0),
                (MessageSent(text="j", imported=True), number, 0),
            ]
        elif kind == "summary":
            kept = chance.randint(kept, len(left) + 1)
            summary = Summary(text="s", covers_from=1, covers_to=2, kept_from=kept, hidden=1, total=3, summarized=1)
            left.append((summary, number, 0))
        elif kind == "stop" and number:
            left.append((TurnAbandoned(reason="context"), number, 1))
        elif kind == "back" and number:
            left.append((draw(taken_back(number, left)), number, 0))
    records = [
        place(draft(e, event_id=uuid7(n * 1000, n), recorded_at=n * 1000, turn=t, step=s), "sam", n, n)
        for n, (e, t, s) in enumerate(left, 1)
    ]
    erased = chance.sample(range(len(records)), chance.choice([0, 0, 3]))
    return [tombstone(record) if n in erased else record for n, record in enumerate(records)]


def some_turn(number: int, chance: random.Random) -> list[tuple[Event, int, int]]:
    """Return one turn, complete or interrupted."""
    opened = chance.choice(
        [
            UserMessage(text="u"),
            Heartbeat(reason="timer", timer=chance.choice("ab")),
            SystemAlert(text="a", source="memory_pressure"),
        ]
    )
    reply = ModelReply(
        text="hm", calls=[Call("c", "send_message", "{}")], usage=Usage(9, 1, 10), context_sha256="0", context_bytes=9
    )
    whole = [(opened, number, 0), (reply, number, 1), (FunctionResult(call_id="c", name="send_message"), number, 1)]
    return whole if chance.random() < 0.8 else whole[: chance.randint(1, 2)]


def some_approval(
    number: int, left: Sequence[tuple[Event, int, int]], chance: random.Random
) -> list[tuple[Event, int, int]]:  # fmt: skip
    """Return a turn in which a call asks for an approval, or one in which a call of `left` was decided."""
    asked = [seq for seq, (event, _, _) in enumerate(left, start=1) if isinstance(event, ApprovalRequested)]
    if asked and chance.random() < 0.5:
        event = ApprovalDecided(request=chance.choice(asked), call_id="d", name="delete", decision="refused")
        return [(event, number, 0), *some_turn(number, chance)[1:]]
    asking = ApprovalRequested(call_id="d", name="delete", arguments="{}", expires_at=chance.choice([0, 10**9]))
    edit = MemoryEdited(text="e", label="human", operation="set", limit=2000)
    return [*some_turn(number, chance), (edit, number, 1), (asking, number, 1)]


def some_mail(
    number: int, left: Sequence[tuple[Event, int, int]], chance: random.Random
) -> list[tuple[Event, int, int]]:  # fmt: skip
    """Return a turn in which a message to another agent is sent, one that such a message or an answer opens, or the end
    of a message of `left`.
    """
    sent = [seq for seq, (event, _, _) in enumerate(left, start=1) if isinstance(event, AgentMessageSent)]
    received = [seq for seq, (event, _, _) in enumerate(left, start=1) if isinstance(event, AgentMessageReceived)]
    kind = chance.choice(["send", "send", "receive", "receive", "reply", "settle", "settle"])
    edit = MemoryEdited(text="m", label="human", operation="set", limit=2000)
    if kind == "reply" and sent:
        reply = AgentReplyReceived(
            sender="bob", message=chance.choice(sent), outcome="answered", task=chance.choice([0, *received])
        )
        return [(UserMessage(text="r", agent="bob"), number, 0), (reply, number, 0), *some_turn(number, chance)[1:]]
    if kind == "settle" and (sent or received):
        settled = AgentMessageSettled(message=chance.choice([*sent, *received]), outcome="delivered")
        return [*some_turn(number, chance), (settled, number, 0)]
    if kind == "receive":
        budgets = chance.choice([[], [InheritedBudget(agent="bob", tokens_max=7)]])
        got = AgentMessageReceived(
            sender="bob", sent=str(number), waits=chance.random() < 0.8, message=9, hops=["bob"], budgets=budgets
        )
        rest = some_turn(number, chance)[1:]
        return [(UserMessage(text="q", agent="bob"), number, 0), (got, number, 0), *rest, (edit, number, 1)]
    message = AgentMessageSent(
        text="m", to="bob", call_id="c", expires_at=chance.choice([0, 10**9]), hops=["sam"],
        task=chance.choice([0, *received]), budgets=chance.choice([[], [InheritedBudget(agent="sam", cost_max=0.5)]]),
    )  # fmt: skip
    return [*some_turn(number, chance), (edit, number, 1), (message, number, 1)]


def some_timer(chance: random.Random) -> Event:
    """Return an event about one of two timers, or a pause."""
    timer = chance.choice("ab")
    return chance.choice(
        [
            TimerSet(text="t", timer=timer, due_at=chance.randint(0, 10**8), every_s=chance.choice([0, 60])),
            TimerCancelled(timer=timer),
            HeartbeatsPaused(minutes=1, until=chance.randint(0, 10**9)),
        ]
    )
