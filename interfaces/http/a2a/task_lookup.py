"""Look up a task in the log of its agent: a run, and the runs that follow from the calls that waited for a person.

A task is no object of its own: its id is the event id of its input, and its state is computed from the records each
time it is asked for. So any server in front of the store gives the same answer, and a restart changes none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.fork_agent import open_turns_of
from everlog.actors.feed.run_lookup import RunStatus, find_input, status_of_ended
from everlog.events import (
    INPUTS,
    ApprovalDecided,
    ApprovalRequested,
    Record,
    TurnsHidden,
    UserMessage,
    event_of,
    is_erased,
)
from everlog.interfaces.http.a2a.shapes import TaskStateName
from everlog.store import LogReader

_ENDED: Mapping[RunStatus, TaskStateName] = {
    "done": "TASK_STATE_COMPLETED",
    "failed": "TASK_STATE_FAILED",
    "cancelled": "TASK_STATE_CANCELED",
    "abandoned": "TASK_STATE_FAILED",
}


class TaskRecords(msgspec.Struct, frozen=True, kw_only=True):
    """One task, as far as its log has it."""

    input: Record
    records: Sequence[Record]
    """Records of all turns of the task, in order, from the input on."""
    state: TaskStateName
    waiting: Sequence[Record]
    """Its `approval_requested` that wait for a person, the oldest first."""
    running: Record | None
    """Input of the turn that is at work, or waits for its place; None: all turns have ended."""

    @property
    def conversation(self) -> str:
        """Id of the client's conversation; empty: the agent's own."""
        said = None if is_erased(self.input.payload) else event_of(self.input)
        return said.conversation if isinstance(said, UserMessage) else ""

    def decision(self, event_ids: Sequence[str]) -> ApprovalDecided | None:
        """Return the decision of this task that was sent under one of some ids; None if there is none."""
        found = (event_of(record) for record in self.records if record.event_id in event_ids)
        return next((event for event in found if isinstance(event, ApprovalDecided)), None)


def find_task(reader: LogReader, agent_id: str, task: str) -> TaskRecords | None:
    """Return a task by its id; None if no input of the agent has that id, or if the input is a person's decision."""
    found = find_input(reader, agent_id, task)
    if found is None or found.type not in INPUTS or found.type == ApprovalDecided.kind:
        return None
    later = list(reader.read(agent_id, found.seq, reader.head(agent_id).seq))
    said = later[0]
    inputs, records, waiting = _followed(said, later)
    still_open = set(open_turns_of(later))
    running = next((record for turn, record in inputs.items() if turn in still_open), None)
    return TaskRecords(
        input=said, records=records, state=_state(said, records, running, waiting), waiting=waiting, running=running
    )


def _followed(said: Record, later: Sequence[Record]) -> tuple[dict[int, Record], list[Record], list[Record]]:
    """Return the inputs of a task's turns by turn, the records of these turns, and the requests that wait."""
    inputs, records, requests = {said.turn: said}, [], dict[int, Record]()
    for record in later:
        event: Any = None if is_erased(record.payload) else event_of(record)
        if isinstance(event, ApprovalDecided) and event.request in requests:
            del requests[event.request]
            inputs[record.turn] = record
        elif isinstance(event, TurnsHidden):
            requests = {seq: asked for seq, asked in requests.items() if asked.turn not in event.turns}
        if record.turn in inputs:
            records.append(record)
            if isinstance(event, ApprovalRequested):
                requests[record.seq] = record
    return inputs, records, list(requests.values())


def _state(said: Record, records: Sequence[Record], running: Record | None, waiting: Sequence[Record]) -> TaskStateName:
    if running is not None:
        return "TASK_STATE_SUBMITTED" if running is said and records[-1] is said else "TASK_STATE_WORKING"
    if waiting:
        return "TASK_STATE_INPUT_REQUIRED"
    last = records[-1].turn
    return _ENDED[status_of_ended([record for record in records if record.turn == last])]
