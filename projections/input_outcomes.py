"""Report from the logs what became of acknowledged inputs, as an independent check.

The check queries the records themselves, all of a partition at once, and uses no projection.

Used by `interfaces/fleet/load_generator.py`, for `everlog fleet`.
"""

from collections.abc import Iterable, Sequence

import duckdb
import msgspec
import pyarrow as pa

from everlog.projections.projection_constants import THREADS
from everlog.projections.sql_catalogue import sql
from everlog.store import LogReader
from everlog.store.base.arrow_values import text_array


class InputOutcome(msgspec.Struct):
    """Outcome of one input."""

    times: int = 0
    """Number of records with this id in the logs: 1 if all is well."""
    answered: bool = False
    """True if its turn sent a message, or recorded a failure of the model."""
    ended: bool = False
    """True if the model replied in its turn, or the turn was stopped."""

    @property
    def lost(self) -> bool:
        """True if it is in no log, or has no outcome."""
        return not self.times or not (self.answered or self.ended)


def input_outcomes(logs: Iterable[LogReader], event_ids: Sequence[str]) -> dict[str, InputOutcome]:
    """Return the outcome of each of these inputs, by its id, from the records of `logs`. Raise StoreError."""
    found = {event_id: InputOutcome() for event_id in event_ids}
    inputs = pa.table({"event_id": text_array(found)})
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
