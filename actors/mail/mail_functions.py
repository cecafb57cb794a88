"""Functions with which an agent writes to other agents of its store: without waiting, and waiting for the answer.

Sending is an event of the step; the host delivers it from the log. A wait holds no process: the turn ends, others can
talk to the agent meanwhile, and the answer comes as an input. So agents that wait for each other do not block each
other; but a question to an agent that waits for this one is refused, because its answer would have to wait for itself.
The limits keep agents from keeping each other busy. Signatures and docstrings here are the schemas that the model
reads: a changed schema is a new configuration of every agent with it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.functions.memory_functions import MEMORY_FUNCTIONS
from everlog.actors.functions.tools import Tool, own_tool
from everlog.actors.mail.letters import names_in
from everlog.actors.mail.names import spoken
from everlog.actors.memory.core_memory import FunctionMemory
from everlog.events import AgentMessageSent, BadInput, FunctionError, UnknownAgent
from everlog.events.times import MICROSECONDS

TEXT_CHARS_MAX = 20_000
"""Most characters of a message."""
HOPS_MAX = 8
"""Most agents through which a message comes about."""
FOLLOW_UPS_MAX = 128
"""Most questions one after the other, each asked because of the answer to the one before."""
PER_TURN_MAX = 20
"""Most messages that an agent sends in one turn."""
PER_MINUTE_MAX = 10
"""Most messages from one agent to another in a minute, apart from questions that were answered."""
RECIPIENTS_MAX = 1000
"""Most agents that one message to a label goes to."""
BROADCAST_BYTES_MAX = 2_000_000
"""Most bytes of a message to a label, counted once for each agent: so much is in the log of the sender."""
NAMES_SHOWN = 5
"""Names of the agents with a label that the sender is told."""
WAIT_MINUTES, WAIT_MINUTES_MAX = 60, 7 * 24 * 60


async def _message_agent(desk: FunctionMemory, name: str, message: str) -> str:
    """Send a message to another agent, without waiting for an answer.

    Args:
        name: Name of the agent.
        message: What to say to it.
    """
    await _send(desk, name, message, 0)
    return f"Sent to {name}."


async def _ask_agent(desk: FunctionMemory, name: str, message: str, minutes: int = WAIT_MINUTES) -> str:
    """Ask another agent. Its answer comes later, as a message to you; end your turn until then.

    Args:
        name: Name of the agent.
        message: What to ask.
        minutes: How long to wait.
    """
    if not 1 <= minutes <= WAIT_MINUTES_MAX:
        raise FunctionError(f"You can wait for 1 to {WAIT_MINUTES_MAX} minutes, not {minutes}. Nothing was sent.")
    await _send(desk, name, message, desk.now + minutes * 60 * MICROSECONDS)
    return f"Asked {name}. The answer comes as a message to you: wait for it without calling functions."


async def _message_agents(desk: FunctionMemory, label: str, message: str) -> str:
    """Send a message to all agents with a label, without waiting for answers.

    Args:
        label: Label of the agents.
        message: What to say to them.
    """
    _check_text(message)
    try:
        to = await desk.searcher.others.labelled(label)
    except BadInput as error:
        raise FunctionError(str(error)) from error
    rows = await desk.searcher.rows("message_limits")
    if _origin(rows, desk.turn).by_agent:
        raise FunctionError(
            "You can write to a label when a person or a timer made you, not because of another agent's message. "
            "Nothing was sent."
        )
    if not to:
        raise FunctionError(f"No other agent has the label {label!r}. Nothing was sent.")
    if len(to) > RECIPIENTS_MAX or len(to) * len(message.encode()) > BROADCAST_BYTES_MAX:
        raise FunctionError(
            f"{len(to)} agents have the label {label!r}: a message to a label goes to {RECIPIENTS_MAX} agents and "
            f"makes {BROADCAST_BYTES_MAX} bytes at most, all copies together. Nothing was sent."
        )
    _check_minute(desk, rows, to)
    for one in to:
        _leave(
            desk, AgentMessageSent(text=message, to=one, call_id=desk.call_id, hops=[spoken(desk.searcher.agent_id)])
        )
    return f"Sent to {len(to)} agents: {', '.join(map(spoken, to[:NAMES_SHOWN]))}{', ...' * (len(to) > NAMES_SHOWN)}."


def _leave(desk: FunctionMemory, event: AgentMessageSent) -> None:
    desk.mail.append(event)
    desk.emit(event)


def _check_text(message: str) -> None:
    if not 1 <= len(message.strip()) <= TEXT_CHARS_MAX:
        raise FunctionError(f"A message has 1 to {TEXT_CHARS_MAX} characters, not {len(message)}. Nothing was sent.")


async def _send(desk: FunctionMemory, name: str, message: str, expires_at: int) -> None:
    """Leave the event of a message. Raise FunctionError for one that may not be sent."""
    _check_text(message)
    try:
        to = await desk.searcher.others.named(name)
    except (BadInput, UnknownAgent) as error:
        raise FunctionError(f"{error} Nothing was sent.") from error
    own = desk.searcher.agent_id
    if to == own:
        raise FunctionError("That is you. Nothing was sent.")
    rows = await desk.searcher.rows("message_limits")
    before = _origin(rows, desk.turn)
    hops = [*before.hops, spoken(own)]
    waiting = [*before.waiting, spoken(own)]
    if expires_at and spoken(to) in waiting:
        circle = [*waiting[waiting.index(spoken(to)) :], spoken(to)]
        raise FunctionError(
            f"That would be a circle: {' asks '.join(circle)}. Nothing was sent; answer with what you know."
        )
    if len(hops) > HOPS_MAX:
        through = ", ".join(hops)
        raise FunctionError(f"This came about through {len(hops)} messages ({through}), and {HOPS_MAX} is the most.")
    _check_rates(desk, rows, to)
    event = AgentMessageSent(
        text=message, to=to, call_id=desk.call_id, expires_at=expires_at, hops=hops, task=before.task,
        waiting=waiting if expires_at else [],
    )  # fmt: skip
    _leave(desk, event)


class _Origin(msgspec.Struct, frozen=True):
    """Messages because of which a turn runs."""

    hops: Sequence[str] = ()
    waiting: Sequence[str] = ()
    """Agents that wait for this one's answer, directly or not."""
    task: int = 0
    by_agent: bool = False
    """True if another agent's words opened the turn."""


def _origin(rows: Sequence[Mapping[str, Any]], turn: int) -> _Origin:
    """Return the messages because of which a turn runs: it was opened by one, by the end of a wait, or by neither."""
    for row in rows:
        if not row["sent"] and row["turn"] == turn:
            return _Origin(names_in(row["hops"]), names_in(row["waiting"]), row["seq"], True)
        if row["sent"] and row["ended_turn"] == turn:
            # The answer to an own question leads no further: its turn has the hops of the turn that asked. The end of
            # a message that waits for nothing does, or it would be sent again without end.
            hops = names_in(row["hops"])
            return _Origin(hops[:-1] if row["waits"] else hops, names_in(row["waiting"])[:-1], row["task"], True)
    return _Origin()


def _follow_ups(rows: Sequence[Mapping[str, Any]], turn: int) -> int:
    """Return the number of own questions that led to a turn, each asked because of the answer to the one before."""
    asked_in = {row["ended_turn"]: row["turn"] for row in rows if row["sent"] and row["ended_turn"]}
    number = 0
    while turn in asked_in:
        turn, number = asked_in[turn], number + 1
    return number


def _check_rates(desk: FunctionMemory, rows: Sequence[Mapping[str, Any]], to: str) -> None:
    """Raise FunctionError if the agent has sent as much as it may, in this turn or to that agent."""
    before = _follow_ups(rows, desk.turn)
    if before >= FOLLOW_UPS_MAX:
        raise FunctionError(
            f"{before} questions, each asked because of the answer to the one before, led to this turn, the most there "
            "may be. Nothing was sent."
        )
    in_turn = sum(row["sent"] and row["turn"] == desk.turn for row in rows) + len(desk.mail)
    if in_turn >= PER_TURN_MAX:
        raise FunctionError(f"You have sent {in_turn} messages in this turn, the most there may be. Nothing was sent.")
    _check_minute(desk, rows, [to])


def _check_minute(desk: FunctionMemory, rows: Sequence[Mapping[str, Any]], to: Sequence[str]) -> None:
    """Raise FunctionError if the agent has written to one of others as often as it may in a minute."""
    since = desk.now - 60 * MICROSECONDS
    lately = Counter(row["other"] for row in rows if row["sent"] and row["time"] > since and not row["answered"])
    lately.update(one.to for one in desk.mail)
    for one in to:
        if lately[one] >= PER_MINUTE_MAX:
            raise FunctionError(
                f"You have sent {lately[one]} messages to {spoken(one)} in a minute, the most there may be. Nothing "
                "was sent."
            )


MAIL_FUNCTIONS: Sequence[Tool] = (own_tool(_message_agent), own_tool(_ask_agent), own_tool(_message_agents))
"""Functions of messages to other agents, in the order in which the model sees them."""
NAMES = tuple(one.name for one in MAIL_FUNCTIONS)

OPTIONAL_FUNCTIONS: Sequence[Tool] = (*MEMORY_FUNCTIONS, *MAIL_FUNCTIONS)
"""All functions of everlog that an agent has only if its settings list them."""
OPTIONAL = tuple(one.name for one in OPTIONAL_FUNCTIONS)
