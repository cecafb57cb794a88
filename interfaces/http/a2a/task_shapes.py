"""Turn the records of a task into the shapes of the protocol. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from everlog.events import (
    ApprovalDecided,
    ApprovalRequested,
    BudgetExceeded,
    MessageSent,
    ModelFailed,
    Record,
    TurnAbandoned,
    TurnCancelled,
    event_of,
    is_erased,
)
from everlog.events.times import moment
from everlog.interfaces.http.a2a.shapes import (
    JSON_TEXT,
    PLAIN_TEXT,
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    MessagePart,
    StatusUpdate,
    TaskStatusShape,
)
from everlog.interfaces.http.a2a.task_lookup import TaskRecords

ANSWER = "answer"
"""Id of the one artifact of a task."""
_ENDINGS = (ModelFailed.kind, BudgetExceeded.kind, TurnCancelled.kind, TurnAbandoned.kind)


class TaskPlace(msgspec.Struct, frozen=True):
    """Task of an agent, by the names that the client uses."""

    task: str
    context: str


def context_of(found: TaskRecords, agent: str) -> str:
    """Return the id of the context of a task. `agent`: name of the agent, which is its own context."""
    return found.conversation or agent


def task_shape(found: TaskRecords, place: TaskPlace, history: int | None = None) -> A2aTask:
    """Return a task as a client reads it. `history`: most messages of it that the client wants; None: all."""
    said = list(_said(found, place))
    shown = said if history is None else said[max(0, len(said) - history) :]
    parts = answer_parts(found.records)
    return A2aTask(
        id=place.task, context_id=place.context, status=status_shape(found, place),
        artifacts=[Artifact(artifact_id=ANSWER, name=ANSWER, parts=parts)] if parts else (),
        history=shown,
    )  # fmt: skip


def status_shape(found: TaskRecords, place: TaskPlace) -> TaskStatusShape:
    """Return the state of a task: with the calls that wait for a person, or the reason for which it failed."""
    last = found.records[-1]
    parts: Sequence[MessagePart] = ()
    if found.state == "TASK_STATE_INPUT_REQUIRED":
        parts = list(_question(found.waiting))
    elif found.state in ("TASK_STATE_FAILED", "TASK_STATE_CANCELED"):
        ending = next(record for record in reversed(found.records) if record.type in _ENDINGS)
        parts = [MessagePart(text=ending.text or ending.type, media_type=PLAIN_TEXT)]
    said = A2aMessage(
        message_id=last.event_id, role="ROLE_AGENT", parts=parts, context_id=place.context, task_id=place.task
    )
    return TaskStatusShape(state=found.state, timestamp=moment(last.recorded_at), message=said if parts else None)


def status_update(found: TaskRecords, place: TaskPlace) -> StatusUpdate:
    """Return the state of a task as an event."""
    return StatusUpdate(task_id=place.task, context_id=place.context, status=status_shape(found, place))


def answer_parts(records: Sequence[Record]) -> list[MessagePart]:
    """Return the messages that an agent sent, as parts of its answer."""
    return [
        MessagePart(text=str(record.text), media_type=PLAIN_TEXT)
        for record in records
        if record.type == MessageSent.kind and record.text
    ]


def answer_update(parts: Sequence[MessagePart], place: TaskPlace, *, append: bool) -> ArtifactUpdate:
    """Return new parts of an answer as an event. `append`: True if there were parts before."""
    artifact = Artifact(artifact_id=ANSWER, name=ANSWER, parts=parts)
    return ArtifactUpdate(task_id=place.task, context_id=place.context, artifact=artifact, append=append)


def _said(found: TaskRecords, place: TaskPlace) -> Iterator[A2aMessage]:
    """Yield the inputs of a task as messages of the client."""
    for record in found.records:
        if record is found.input or record.type == ApprovalDecided.kind:
            event: Any = None if is_erased(record.payload) else event_of(record)
            text = record.text or getattr(event, "decision", "")
            yield A2aMessage(
                message_id=record.event_id, role="ROLE_USER", context_id=place.context, task_id=place.task,
                parts=[MessagePart(text=str(text), media_type=PLAIN_TEXT)],
            )  # fmt: skip


def _question(waiting: Sequence[Record]) -> Iterator[MessagePart]:
    """Yield what a client has to decide: in words, and as a value with the seq by which a decision names each call."""
    calls = []
    for record in waiting:
        request = event_of(record)
        assert isinstance(request, ApprovalRequested)
        asks = None if request.question is None else request.question.text
        calls.append({"call": record.seq, "function": request.name, "arguments": request.arguments, "question": asks})
    words = [
        f"{one['function']}({one['arguments']})" + (f": {one['question']}" * bool(one["question"])) for one in calls
    ]
    yield MessagePart(
        text=f"A person has to decide about: {'; '.join(words)}. Answer with this task's id: approve, or refuse.",
        media_type=PLAIN_TEXT,
    )
    yield MessagePart(data={"approvals": calls}, media_type=JSON_TEXT)
