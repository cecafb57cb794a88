"""States: where an agent stands, kept beside its log, so that activation does not grow with history.

A state is a part of the records, with what the engine had worked out of them: enough to answer for now, and never the
only place of anything. It names what made it, so that another version of the projections passes it over.
"""

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

from events import CATALOGUE
from store import LogReader

from .catalogue import batched, sql
from .engine import Projections


class Deriver:
    """Makes the states of a store: its `Derive`."""

    @property
    def maker(self) -> str:
        """A digest of all that a state depends on."""
        parts = [sql(name) for name in ("hot", "add", "count_all", "end_life", "thaw")]
        parts += [batched("settle"), batched("state")]
        parts += [f"{kind} {cls.version}" for kind, cls in sorted(CATALOGUE.items())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def __call__(self, earlier: pa.Table | None, records: pa.Table) -> pa.Table:
        """The states after `records`, of every agent in `earlier` or in them.

        An agent that took a summary back since its earlier state has none: it needs records from before that.
        """
        with Projections() as engine:
            if earlier is not None:
                expanded = records.filter(pc.equal(records.column("type"), "summary_expanded")).column("agent_id")
                unclear = pc.is_in(earlier.column("agent_id"), expanded.combine_chunks())
                left_out = earlier.filter(unclear).column("agent_id").combine_chunks()
                earlier = earlier.filter(pc.invert(unclear))
                records = records.filter(pc.invert(pc.is_in(records.column("agent_id"), left_out)))
                engine.restore(earlier)
            engine.load(records)
            names = set(records.column("agent_id").to_pylist())
            if earlier is not None:
                names.update(earlier.column("agent_id").to_pylist())
            return engine.states(sorted(names))


DERIVER = Deriver()


def activate(projections: Projections, reader: LogReader, agent_id: str) -> None:
    """Fill `projections` with an agent: from its newest state and the records after it, or from all of them."""
    state = reader.state(agent_id, DERIVER.maker)
    if state is None:
        projections.load(reader.table(agent_id))
        return

    def history(head: int) -> pa.Table:
        records = reader.table(agent_id)
        return records.filter(pc.less_equal(records.column("seq"), head))

    projections.resume(agent_id, state.rows, history)
    projections.load(reader.table(agent_id, state.seq + 1))
