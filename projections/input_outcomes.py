"""What the logs say became of inputs that were acknowledged, for whoever wants to know and not to believe.

It asks the records themselves, all of a partition by one query, and no projection that was kept meanwhile.
"""

from collections.abc import Iterable, Sequence

import duckdb
import msgspec
import pyarrow as pa

from everlog.projections.projection_constants import THREADS
from everlog.projections.sql_catalogue import sql
from everlog.store import LogReader


class InputOutcome(msgspec.Struct):
    """What became of one input."""

    times: int = 0
    """How often it is in the logs: once, if all is well."""
    answered: bool = False
    """In its turn a message was sent, or the model failed and that was recorded."""
    ended: bool = False
    """The model replied in its turn, or the turn was given up."""

    @property
    def lost(self) -> bool:
        """It is in no log, or nothing came of it."""
        return not self.times or not (self.answered or self.ended)


def input_outcomes(logs: Iterable[LogReader], event_ids: Sequence[str]) -> dict[str, InputOutcome]:
    """The fate of each of these inputs, by its id, as the records of `logs` have it. Raises StoreError."""
    found = {event_id: InputOutcome() for event_id in event_ids}
    inputs = pa.table({"event_id": pa.array(found, pa.string())})
    for log in logs:
        for event_id, times, answered, ended in _look_up(log.table(), inputs):
            fate = found[event_id]
            fate.times += times
            fate.answered |= answered
            fate.ended |= ended
    return found


def _look_up(records: pa.Table, inputs: pa.Table) -> list[tuple[str, int, bool, bool]]:
    with duckdb.connect(":memory:", config={"threads": THREADS, "autoinstall_known_extensions": "false"}) as db:
        db.register("records", records.select(["agent_id", "event_id", "turn", "type"]))
        db.register("inputs", inputs)
        return db.execute(sql("fates")).fetchall()
