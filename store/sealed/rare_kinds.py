"""Say which rare records a sealed file holds, so that a query over the fleet looks for them only where they are.

Almost no file has such a record, but one anywhere changes how other records are read: an erased record is shown without
its content, a fork reads its parent's records, and an agent that was created again has several incarnations.

Used by `seal_pass`, which writes the answer into the manifest, and by the fleet's views.
"""

import pyarrow as pa

from everlog.events import AgentCreated, AgentForked, RecordsErased
from everlog.store.base.arrow_values import text_value
from everlog.store.base.lazy_pyarrow import pc

RARE_KINDS = (AgentCreated.kind, AgentForked.kind, RecordsErased.kind)
"""Kinds of rare records. `agent_created` is rare after seq 1, where a deleted name was created again."""


def rare_kinds(table: pa.Table) -> list[str]:
    """Return the kinds of rare records among the records of `table`, sorted."""
    found = set(table.column("type").unique().to_pylist()).intersection(RARE_KINDS)
    if AgentCreated.kind in found:
        born = table.column("seq").filter(pc.equal(table.column("type"), text_value(AgentCreated.kind)))
        if max(born.to_pylist()) <= 1:
            found.remove(AgentCreated.kind)
    return sorted(found)
