"""Query a projection over all agents of a store that are not deleted, in one pass over their states.

Used by `source_service.py` and `shared_block_service.py`.
"""

from collections.abc import Iterator
from typing import Any

from everlog.projections import DERIVER, HEAD, Projections
from everlog.store import Store


def rows_of_live_agents(store: Store, projection: str) -> Iterator[dict[str, Any]]:
    """Yield the current rows of a projection over all agents that are not deleted, in no order."""
    for states in store.states(DERIVER.maker):
        wanted = [(name, HEAD) for name in states.agents]
        with Projections() as engine:
            if states.rows is not None:
                engine.restore(states.rows)
            engine.load(states.after)
            living = {row["agent_id"] for row in engine.batch("standing", wanted) if not row["deleted"]}
            yield from (row for row in engine.batch(projection, wanted) if row["agent_id"] in living)
