"""Look up a task in the log of its agent: a run, and the runs that follow from the calls that waited for a person.

A task is no object of its own: its id is the event id of its input, and its state is computed from the records each
time it is asked for. So any server in front of the store gives the same answer, and a restart changes none.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.fork_agent import open_turns_of
from everlog.actors.feed.run_lookup import RunStatus, find_input, status_of_ended
from everlog.actors.prompt.context import is_imported
from everlog.events import (
    INPUTS,
    AgentDeleted,
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
    """Return a task by its id; None if no input of the agent has that id since it was created last, or if the input is
    a person's decision.
    """
    found = find_input(reader, agent_id, task)
    if found is None or not _begins_task(found):
        return None
    later = tasks_in(list(reader.read(agent_id, found.seq, reader.head(agent_id).seq)))
    return next((one for one in later if one.input.event_id == task), None)


def list_tasks(reader: LogReader, agent_id: str) -> list[TaskRecords]:
    """Return all tasks of an agent, the one with the newest record first. Reads the whole log."""
    tasks = tasks_in(list(reader.read(agent_id, 1, reader.head(agent_id).seq)))
    return sorted(tasks, key=lambda task: task.records[-1].seq, reverse=True)


def tasks_in(records: Sequence[Record]) -> list[TaskRecords]:
    """Return the tasks that begin in some records up to the last one of an agent, in the order of their inputs."""
    tasks: list[_Following] = []
    turns: dict[int, _Following] = {}
    asked: dict[int, _Following] = {}
    born = 0
    for at, record in enumerate(records):
        event: Any = event_of(record) if record.type in _LEADING and not is_erased(record.payload) else None
        if record.type == AgentDeleted.kind:  # turns are counted from 1 again
            tasks, turns, asked, born = [], {}, {}, at + 1
        elif isinstance(event, ApprovalDecided) and (task := asked.pop(event.request, None)) is not None:
            del task.requests[event.request]
            task.inputs[record.turn] = record
            turns[record.turn] = task
        elif isinstance(event, TurnsHidden):
            for seq in [seq for seq, task in asked.items() if task.requests[seq].turn in event.turns]:
                del asked.pop(seq).requests[seq]
        elif _begins_task(record) and record.turn not in turns:
            tasks.append(_Following({record.turn: record}))
            turns[record.turn] = tasks[-1]
        if (task := turns.get(record.turn)) is not None:
            task.records.append(record)
            if isinstance(event, ApprovalRequested):
                task.requests[record.seq] = record
                asked[record.seq] = task
    still_open = set(open_turns_of(records[born:]))
    return [task.ended(still_open) for task in tasks]


_LEADING = (ApprovalDecided.kind, ApprovalRequested.kind, TurnsHidden.kind)
"""Kinds of records that say to which task other records belong."""


def _begins_task(record: Record) -> bool:
    return (
        record.type in INPUTS
        and record.type != ApprovalDecided.kind
        and record.turn > 0
        and not record.step
        and not is_imported(event_of(record))
    )


class _Following(msgspec.Struct):
    """Task whose records are read one after the other."""

    inputs: dict[int, Record]
    """Inputs of its turns, by turn."""
    records: list[Record] = []
    requests: dict[int, Record] = {}
    """Requests for approvals that wait, by seq."""

    def ended(self, still_open: Collection[int]) -> TaskRecords:
        """Return the task after its last record. `still_open`: the unfinished turns of the agent."""
        said = next(iter(self.inputs.values()))
        waiting = list(self.requests.values())
        running = next((record for turn, record in self.inputs.items() if turn in still_open), None)
        state = _state(said, self.records, running, waiting)
        return TaskRecords(input=said, records=self.records, state=state, waiting=waiting, running=running)


def _state(said: Record, records: Sequence[Record], running: Record | None, waiting: Sequence[Record]) -> TaskStateName:
    if running is not None:
        return "TASK_STATE_SUBMITTED" if running is said and records[-1] is said else "TASK_STATE_WORKING"
    if waiting:
        return "TASK_STATE_INPUT_REQUIRED"
    last = records[-1].turn
    return _ENDED[status_of_ended([record for record in records if record.turn == last])]
