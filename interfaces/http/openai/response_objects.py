"""Say what a run is as a response: its status, its answer, its tokens."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from everlog.actors.reply import Reply
from everlog.events import Record
from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.conversations.conversation_run import root_of
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.http.openai.client_conversations import PREFIX
from everlog.interfaces.http.openai.response_events import ResponseOf, message_item
from everlog.interfaces.http.openai.response_ids import MESSAGE, RESPONSE, RunPlace, id_of_run
from everlog.interfaces.http.openai.response_shapes import (
    ConversationRef,
    InputDetails,
    ResponseFailure,
    ResponseShape,
    ResponseStatus,
    ResponseUsage,
)
from everlog.interfaces.http.openai.surface import error_body
from everlog.interfaces.http.runs.run_items import RunEnded, RunLeft
from everlog.interfaces.wire.runs import RunStatusName

STATUSES: Mapping[RunStatusName, ResponseStatus] = {
    "running": "in_progress",
    "done": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "abandoned": "incomplete",
}


class ResponseFacts(NamedTuple):
    """Contents of a response beside its run."""

    place: RunPlace
    asked_at: int
    """Time of the question, microseconds UTC."""
    previous: str = ""
    """Id of the response before it; empty: none."""
    conversation: str = ""
    background: bool = False
    metadata: Mapping[str, Any] = {}


def response_maker(call: HttpCall, facts: ResponseFacts) -> ResponseOf:
    """Return the function that makes the response of a run from its records."""
    return partial(_response, call, facts)


def item_id_of(place: RunPlace) -> str:
    """Return the id of the message with the answer of a run."""
    return id_of_run(MESSAGE, *place)


def _response(
    call: HttpCall, facts: ResponseFacts, records: Sequence[Record], end: RunEnded | RunLeft | None
) -> ResponseShape:
    status: ResponseStatus = "in_progress"
    if isinstance(end, RunLeft):
        status = "incomplete"  # for this reader: the run continues, and GET tells how it ends
    elif end is not None:
        status = STATUSES[end.status]
    reply = Reply(facts.place.stream, facts.place.run, records)
    tokens = reply.tokens
    error = error_body(problem_for(end.error, call.names)).error if end is not None and end.error else None
    ended = isinstance(end, RunEnded)
    return ResponseShape(
        id=id_of_run(RESPONSE, *facts.place),
        created_at=facts.asked_at // MICROSECONDS,
        status=status,
        model=call.shown(root_of(facts.place.stream)),
        output=[message_item(item_id_of(facts.place), reply.text, "completed" if ended else "in_progress")]
        if reply.text
        else (),
        error=ResponseFailure(code=error.code or "", message=error.message) if error else None,
        usage=ResponseUsage(
            input_tokens=tokens.input, input_tokens_details=InputDetails(cached_tokens=tokens.cached),
            output_tokens=tokens.output, total_tokens=tokens.total,
        ) if ended else None,
        previous_response_id=facts.previous or None,
        conversation=ConversationRef(id=facts.conversation) if facts.conversation.startswith(PREFIX) else None,
        background=facts.background,
        completed_at=records[-1].recorded_at // MICROSECONDS if ended and records else None,
        metadata=facts.metadata,
    )  # fmt: skip
