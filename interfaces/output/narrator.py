"""Translate records into text for people: only this module decides which events people see. Pure.

Used by `everlog chat`, `everlog send` and the replay console.
"""

import shlex
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.events import (
    AgentMessageSent,
    AnyEvent,
    ApprovalDecided,
    ApprovalRequested,
    BadReply,
    BudgetExceeded,
    Call,
    ContextOverflow,
    ContextTrimmed,
    EverlogError,
    FunctionResult,
    Heartbeat,
    MessageSent,
    ModelError,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    OverBudget,
    Question,
    Record,
    ReplyRejected,
    Summary,
    SummaryExpanded,
    SystemAlert,
    TurnAbandoned,
    TurnCancelled,
    UnknownEvent,
    UserMessage,
    event_of,
    is_erased,
)
from everlog.interfaces.common.front_end import FrontEnd, Notice
from everlog.interfaces.common.plural import plural
from everlog.store import typed

_ENDINGS = (ModelReply.kind, ModelFailed.kind, TurnAbandoned.kind, TurnCancelled.kind, BudgetExceeded.kind)
"""Kinds of events that end a turn; the last one of a turn gives the reason of its end."""


class Narrator:
    """Interface that passes the meaning of an agent's records to a front end."""

    def __init__(self, front_end: FrontEnd, *, leave_out: Collection[str] = ()) -> None:
        """`leave_out`: kinds of events that the front end does not get, because the command reports them itself."""
        self._front_end = front_end
        self._leave_out = leave_out
        self._calls: dict[str, Call] = {}
        """Calls of the newest reply that have no result yet, by id."""

    def on_records(self, records: Sequence[Record]) -> None:
        """Pass each record that people should see to the front end."""
        for record in records:
            if record.type not in self._leave_out:
                self._narrate(event_of(record), record)

    def on_error(self, error: EverlogError) -> None:
        """Pass the error to the front end."""
        self._front_end.error(error)

    def _narrate(self, event: AnyEvent, record: Record) -> None:
        match event:
            case UserMessage():
                self._front_end.user_message(event.text, event.name)
            case MessageSent():
                self._front_end.assistant_message(event.text, event.name or record.agent_id)
            case ModelReply():
                self._reply(event)
            case FunctionResult():
                self._result(event)
            case ApprovalRequested():
                about, text = notice_of(event) or ("unknown", "")
                blanks = event.arguments if event.question is not None else ""
                fill_in = " Fill in" if blanks else ""
                decide = approve_command(record.agent_id, record.seq, blanks)
                self._front_end.notice(about, f"{text}{fill_in}: `{decide}`")
            case _:
                if (noticed := notice_of(event)) is not None:
                    self._front_end.notice(*noticed)

    def _reply(self, reply: ModelReply) -> None:
        calls = [replace(call, arguments=call.arguments or "{}") for call in reply.calls]
        self._calls = {call.id: call for call in calls}
        if reply.text:
            self._front_end.inner_monologue(reply.text)
        for call in calls:
            if call.name != SEND_MESSAGE:
                self._front_end.function_call(call)

    def _result(self, result: FunctionResult) -> None:
        call = self._calls.pop(result.call_id, None) or Call(result.call_id, result.name, "")
        if not result.ok or result.name != SEND_MESSAGE:
            self._front_end.function_message(call, result.text, ok=result.ok)


def abandon_reasons(records: Iterable[Record]) -> dict[int, str]:
    """Return the reasons of abandoned turns by turn number. `records` must hold each turn to its end."""
    last = {record.turn: record for record in records if record.type in _ENDINGS}
    ended = sorted(last.items())
    return {turn: end.text or "the turn was given up." for turn, end in ended if end.type != ModelReply.kind}


def abandon_code(records: Iterable[Record], turn: int) -> str:
    """Return the code of the error page that explains why `turn` was given up; empty if no page does."""
    last = [record for record in records if record.turn == turn and record.type in _ENDINGS][-1]
    match event_of(last):
        case BudgetExceeded():
            return OverBudget.code
        case ModelFailed(failure="overflow") | TurnAbandoned(reason="context"):
            return ContextOverflow.code
        case ModelFailed() as failed:
            return BadReply.code if failed.raw else ModelError.code
        case _:
            return ""


def silence(records: Sequence[Record], turn: int) -> str:
    """Return why the user got no message in a turn that was not given up; empty if there was one, or if a call waits
    for an approval, or another agent was written to. `records` must hold the turn to its end.
    """
    own = [record for record in records if record.turn == turn]
    if any(record.type in {MessageSent.kind, ApprovalRequested.kind, AgentMessageSent.kind} for record in own):
        return ""
    replies = [event for record in own if isinstance(event := event_of(record), ModelReply)]
    if replies and "unread" in replies[-1].repair:
        why = "its reply begins like a call of a function, and could not be read as one"
    elif replies and not replies[-1].calls:
        why = "it only thought"
    else:
        why = "it called no send_message"
    return f"the turn ended without a message to you: {why} (`everlog events`, turn {turn})."


def approve_command(agent: str, seq: int, blanks: str = "") -> str:
    """Return the command that approves a call. `blanks`: arguments of a call that asks, JSON text to be filled in."""
    given = f" --arguments {shlex.quote(blanks)}" if blanks else ""
    return f"everlog approve {typed(agent)} {seq}{given}"


def notice_of(event: AnyEvent) -> tuple[Notice, str] | None:
    """Return the notice of an event and its text; None if the event has no notice.

    Events without a notice are those that a person caused, calls of functions (their result has a message of its own),
    and erased records.
    """
    match event:
        case SystemAlert(source="memory_pressure"):
            return "memory_pressure", "memory pressure: the agent was warned"
        case ApprovalRequested(question=Question() as question):
            return "approval_requested", f"{event.name} asks a person: {question.text}"
        case ApprovalRequested():
            return "approval_requested", f"{event.name} waits for the approval of a person"
        case ApprovalDecided(state=str(), decision="approved"):
            return "approval_decided", f"the question of {event.name} was answered"
        case ApprovalDecided():
            return "approval_decided", f"{event.name} was {event.decision}{': ' + event.text if event.text else ''}"
        case Heartbeat() if event.reason != "manual":
            return "heartbeat", f"♥ {event.reason.replace('_', ' ')}"
        case Summary():
            return "summary", f"summarized {plural(event.summarized, 'message')}: {event.text}"
        case SummaryExpanded():
            return "summary_expanded", "the last summary was undone"
        case ContextTrimmed():
            return "context_trimmed", event.text
        case ModelSwitched():
            return "model_switched", f"{event.model} failed, {event.to} is used instead: {event.text}"
        case ReplyRejected():
            return "reply_rejected", event.text
        case UnknownEvent() if not is_erased(event.payload):
            return "unknown", f"{event.kind}, version {event.version}: written by a newer everlog, not readable here"
    return _ending(event)


def _ending(event: AnyEvent) -> tuple[Notice, str] | None:
    """Return the notice of an event that ends a turn before the agent is idle."""
    match event:
        case ModelFailed():
            return "model_failed", f"the model failed: {event.text}"
        case TurnAbandoned():
            return "turn_abandoned", f"the turn was given up: {event.text}"
        case TurnCancelled():
            return "turn_cancelled", "the turn was cancelled"
        case BudgetExceeded():
            return "budget_exceeded", f"the budget {event.budget} is used up: {event.spent:g} of {event.limit:g}"
    return None
