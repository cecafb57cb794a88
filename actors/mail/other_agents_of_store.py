"""Find the other agents of a store for an agent that writes to them: one by its name, or all with a label.

Used by the system whose agents write. An agent finds agents of its own tenant only.
"""

from collections.abc import Sequence

from everlog.actors.mail.names import other_agent, tenant_of
from everlog.events import BadInput
from everlog.store import FileStore, Store, snapshot

_LABELLED = """SELECT DISTINCT l.agent_id FROM labels l JOIN agents a ON a.agent_id = l.agent_id
WHERE l.label = {label} AND a.current AND NOT a.deleted ORDER BY l.agent_id"""


class StoreAgents:
    """The agents of one store, as others look for them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def named(self, agent_id: str, name: str) -> str:
        """Return the name in the store of the agent that `agent_id` calls `name`. Raise BadInput, UnknownAgent."""
        return other_agent(agent_id, name, self._store)

    def labelled(self, agent_id: str, label: str) -> Sequence[str]:
        """Return the names in the store of all agents of the same tenant with a label, but for `agent_id`, sorted.

        Reads the newest configurations of all agents from the files of their logs, in 0.1 to 1 s. Raises BadInput for
        a blank label, and for a store without files; CorruptLog, StoreError.
        """
        if not isinstance(self._store, FileStore):
            raise BadInput("Labels are read from the files of logs, and this store has none.")
        if not label.strip():
            raise BadInput("A label is not blank.")
        own = tenant_of(agent_id)
        return [one for one in labelled_agents(self._store, label.strip()) if tenant_of(one) == own and one != agent_id]


def labelled_query(label: str) -> str:
    """Return the query over the fleet's views that returns the names of the agents with a label."""
    return _LABELLED.format(label="'" + label.replace("'", "''") + "'")


def labelled_agents(store: FileStore, label: str, until: int | None = None) -> Sequence[str]:
    """Return the names of all agents with a label, sorted. `until`: as of this time, microseconds UTC; None: now."""
    # Imported here: most agents never write to a label.
    from everlog.projections.fleet_views import FleetViews

    with (
        snapshot(store) as position,
        FleetViews(
            position.paths, position.fresh, upto=until, damage=position.damage, rare=position.rare_paths,
            older=position.older_paths,
        ) as views,
    ):  # fmt: skip
        found: list[str] = views.table(labelled_query(label)).column("agent_id").to_pylist()
        position.check_unchanged()
    return found
