"""Compute a projection of an agent's whole life from the few kinds of records that it reads.

An engine that continues from a state would load every record of the log for such a question, which takes seconds for a
long life. A law checks that the rows are the same.

Used by `actors/agent/agent_view.py`.
"""

from collections.abc import Mapping, Sequence

from everlog.projections.engine import Projections
from everlog.projections.hot.rows import Row
from everlog.store import LogReader
from everlog.store.base.arrow_values import text_array
from everlog.store.base.lazy_pyarrow import pc

READ_KINDS: Mapping[str, Sequence[str]] = {
    "approvals": ("agent_created", "approval_decided", "approval_requested", "turns_hidden"),
    "memory_history": ("agent_created", "block_removed", "memory_edited"),
}
"""Kinds of records that a projection reads, by its name; a new incarnation ends the life of earlier records."""


def narrow_rows(
    engine: Projections, name: str, reader: LogReader, agent_id: str, from_seq: int = 1, to_seq: int | None = None
) -> list[Row]:
    """Return the rows of the projection `name` as of `to_seq` (inclusive; None: now), in the order of the log.

    `engine`: holds nothing of the agent before. `name`: one of `READ_KINDS`. `from_seq`: first record that is read.
    """
    records = reader.table(agent_id, from_seq, to_seq)
    wanted = pc.is_in(records.column("type"), text_array(READ_KINDS[name]))
    engine.load(records.filter(wanted))
    return engine.rows(name, agent_id)
