"""Look up a run in the log of its agent: the input that has the id of the run, and what followed from it.

A run is what HTTP calls a turn and what followed from its input; its id is the event id of the input. An id carries its
time, and a log accepts an id for a day, so only the records of a day are read.

Used by the server; nothing here starts a host.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
import pyarrow as pa

from everlog.actors.agent.fork_agent import open_turns_of
from everlog.events import INPUTS, Record, time_of
from everlog.events.times import MICROSECONDS
from everlog.store import LogReader, records_of
from everlog.store.base.arrow_schema import id_bytes
from everlog.store.base.lazy_pyarrow import pc

RunStatus = Literal["running", "done", "failed", "cancelled", "abandoned"]
"""Status of a run. `running`: it waits for its turn, or works."""

EARLY_US = 3600 * MICROSECONDS
"""Largest lead of the clock that made an id over the clock of the log, microseconds."""
LATE_US = 25 * 3600 * MICROSECONDS
"""Age at which the log refuses an id, and an hour."""

_ENDINGS: dict[str, RunStatus] = {
    "model_failed": "failed",
    "budget_exceeded": "failed",
    "turn_cancelled": "cancelled",
    "turn_abandoned": "abandoned",
}


class RunRecords(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as far as its log has it."""

    input: Record
    records: Sequence[Record]
    """Records of the turn, from the input on."""
    status: RunStatus
    head: int
    """Seq of the agent's last record when the log was read."""


def find_input(reader: LogReader, agent_id: str, event_id: str) -> Record | None:
    """Return the record of an agent with an event id; None if there is none, or if the id is no UUIDv7.

    Only records that were written from an hour before the time in the id until a day after it are read.
    """
    at = time_of(event_id)
    if at is None:
        return None
    first = reader.seq_at(agent_id, at - EARLY_US) + 1
    last = reader.seq_at(agent_id, at + LATE_US)
    if last < first:
        return None
    table = reader.table(agent_id, first, last)
    wanted = pa.scalar(id_bytes(event_id), pa.binary(16))
    found = [pc.equal(chunk.storage, wanted) for chunk in table.column("event_id").chunks]
    return next(records_of(table.filter(pa.chunked_array(found, pa.bool_()))), None)


def find_run(reader: LogReader, agent_id: str, run: str) -> RunRecords | None:
    """Return a run by its id; None if no input of the agent has that id."""
    said = find_input(reader, agent_id, run)
    if said is None or said.type not in INPUTS:
        return None
    head = reader.head(agent_id).seq
    later = list(reader.read(agent_id, said.seq, head))
    records = [record for record in later if record.turn == said.turn]
    status: RunStatus = "running" if said.turn in open_turns_of(later) else status_of_ended(records)
    return RunRecords(input=said, records=records, status=status, head=head)


def status_of_ended(records: Sequence[Record]) -> RunStatus:
    """Return the status of a run that has ended, from the records of its turn."""
    return next((_ENDINGS[record.type] for record in reversed(records) if record.type in _ENDINGS), "done")
