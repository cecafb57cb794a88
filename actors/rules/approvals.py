"""Turn a person's decision about a waiting call into its event. Pure.

Used by `hosting/host.py`, for one agent at a time: two people who decide at once are told apart there.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from everlog.actors.functions.tools import HEARTBEAT, Tool
from everlog.events import (
    AlreadyDecided,
    ApprovalDecided,
    ApprovalRequested,
    BadInput,
    FunctionError,
    Record,
    TurnsHidden,
    event_of,
    is_erased,
)
from everlog.events.times import moment


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A person's decision about a call that waits."""

    request: int
    """Seq of the `approval_requested`."""
    approve: bool
    arguments: str = ""
    """JSON object of the arguments to run the call with; empty: those that the model gave."""
    reason: str = ""
    """Words for the model."""
    always: bool = False
    """True: calls of the function need no approval from now on."""


def decided(
    agent_id: str, records: Iterable[Record], decision: Decision, tools: Mapping[str, Tool], now: int
) -> ApprovalDecided:
    """Return the event of a decision. `records`: the agent's, from the seq of the request on. `now`: microseconds UTC.

    Raises BadInput if no call asked for an approval at that seq, or if the arguments do not fit the function;
    AlreadyDecided if the call was decided, or its time is over.
    """
    request = _waiting(agent_id, records, decision.request, now)
    if not decision.approve:
        if decision.arguments or decision.always:
            raise BadInput("A call that is refused has neither arguments nor `always`. Nothing was decided.")
        return _event(request, decision, "refused")
    arguments = decision.arguments or request.arguments
    if decision.arguments:
        _check_arguments(request, decision.arguments, tools)
    if request.question is not None:
        from everlog.actors.rules.questions import check_answers  # few agents are asked anything

        check_answers(request.question, arguments)
    return msgspec.structs.replace(
        _event(request, decision, "approved"), arguments=arguments, edited=arguments != request.arguments,
        always=decision.always,
    )  # fmt: skip


def _waiting(agent_id: str, records: Iterable[Record], seq: int, now: int) -> ApprovalRequested:
    """Return the request at `seq` if it waits."""
    request: ApprovalRequested | None = None
    turn = 0
    for record in records:
        event = event_of(record)
        if record.seq == seq and isinstance(event, ApprovalRequested) and not is_erased(record.payload):
            request, turn = event, record.turn
        elif request is None:
            break
        elif isinstance(event, ApprovalDecided) and event.request == seq:
            raise _over(agent_id, request, seq, f"was {event.decision} at {_time(record.recorded_at)}")
        elif isinstance(event, TurnsHidden) and turn in event.turns:
            raise _over(agent_id, request, seq, f"was withdrawn at {_time(record.recorded_at)}, with its turn")
    if request is None:
        raise BadInput(
            f"No call of {agent_id!r} asked for an approval at seq {seq}. `everlog approvals` lists the calls that "
            "wait. Nothing was decided."
        )
    if request.expires_at and request.expires_at <= now:
        raise _over(agent_id, request, seq, f"could be approved until {_time(request.expires_at)}")
    return request


def _over(agent_id: str, request: ApprovalRequested, seq: int, how: str) -> AlreadyDecided:
    return AlreadyDecided(f"The call of {request.name} by {agent_id!r} (seq {seq}) {how}. Nothing was changed.")


def _time(at: int) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M:%S} UTC"


def expired(seq: int, request: ApprovalRequested) -> ApprovalDecided:
    """Return the event of a call whose time is over: `seq` is that of its request."""
    return ApprovalDecided(
        request=seq, call_id=request.call_id, name=request.name, decision="expired", state=_state(request)
    )


def _state(request: ApprovalRequested) -> str | None:
    return None if request.question is None else request.question.state


def _event(request: ApprovalRequested, decision: Decision, how: Literal["approved", "refused"]) -> ApprovalDecided:
    return ApprovalDecided(
        text=decision.reason,
        request=decision.request,
        call_id=request.call_id,
        name=request.name,
        decision=how,
        state=_state(request),
    )


def _check_arguments(request: ApprovalRequested, text: str, tools: Mapping[str, Tool]) -> None:
    """Raise BadInput for arguments that are no JSON object, or that the function does not take."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"The arguments are no JSON ({error}). Nothing was decided.") from error
    if not isinstance(found, dict):
        raise BadInput(f"The arguments are a JSON object, not {text[:80]!r}. Nothing was decided.")
    found.pop(HEARTBEAT, None)
    if request.question is not None:
        from everlog.actors.rules.questions import ANSWERS

        found.pop(ANSWERS, None)
    if (tool := tools.get(request.name)) is not None:
        try:
            tool.bind(found)
        except FunctionError as error:
            raise BadInput(f"{error}. Nothing was decided.") from error
