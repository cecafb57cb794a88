"""Shapes of Letta's runs and steps, made from the records of a run. Pure."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from everlog.actors.feed.run_lookup import RunRecords
from everlog.events import ModelFailed, ModelReply, Record, UserMessage, event_of, is_erased
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds
from everlog.interfaces.http.letta.translation.run_streams import stop_reason_of

COMPLETED = ("end_turn", "max_steps", "requires_approval")
"""Reasons for which a run counts as completed."""


class LettaRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run."""

    id: str
    agent_id: str
    status: str
    stop_reason: str | None
    background: bool | None = None
    conversation_id: str | None = None
    created_at: datetime
    completed_at: datetime | None
    total_duration_ns: int | None
    metadata: dict[str, str] = {}


class LettaStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the model in a run."""

    id: str
    run_id: str
    agent_id: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_input_tokens: int
    status: str
    stop_reason: str | None = None
    error_type: str | None = None


def run_shape(ids: LettaIds, found: RunRecords, *, background: bool | None = None) -> LettaRun:
    """Return a run. `background`: True, False, or None if it is not known."""
    reason = stop_reason_of(found.status, found.records)
    ended = found.records[-1].recorded_at if reason else None
    event = None if is_erased(found.input.payload) else event_of(found.input)
    conversation = event.conversation if isinstance(event, UserMessage) else ""
    return LettaRun(
        id=ids.run(found.input.seq), agent_id=ids.agent, status=run_status(reason), stop_reason=reason or None,
        background=background, conversation_id=conversation or None, created_at=found.input.time,
        completed_at=found.records[-1].time if reason else None,
        total_duration_ns=None if ended is None else (ended - found.input.recorded_at) * 1000,
    )  # fmt: skip


def run_status(reason: str) -> str:
    """Return Letta's status of a run that ended for a reason; empty: it has not ended."""
    if not reason:
        return "running"
    if reason in COMPLETED:
        return "completed"
    return "cancelled" if reason == "cancelled" else "failed"


def steps_of(ids: LettaIds, run_id: str, records: Sequence[Record]) -> Sequence[LettaStep]:
    """Return the steps of a run, in order."""
    return [step for record in records if (step := step_of(ids, run_id, record)) is not None]


def step_of(ids: LettaIds, run_id: str, record: Record) -> LettaStep | None:
    """Return the step whose reply, or failure, a record is; None: it is another record."""
    if record.type not in {ModelReply.kind, ModelFailed.kind} or is_erased(record.payload):
        return None
    event = event_of(record)
    assert isinstance(event, ModelReply | ModelFailed)
    failed = event.failure if isinstance(event, ModelFailed) else None
    return LettaStep(
        id=ids.step(record.turn, record.step), run_id=run_id, agent_id=ids.agent, model=event.model,
        prompt_tokens=event.usage.prompt, completion_tokens=event.usage.completion, total_tokens=event.usage.total,
        cached_input_tokens=event.usage.cached, status="failed" if failed else "success", error_type=failed,
    )  # fmt: skip
