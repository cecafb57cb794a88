"""Find agents by the names and labels that are used in messages between them. Pure, but for looks into the store.

In the store, the agents of a tenant have its name and a `~` before theirs. Agents write to agents of the same tenant
only, and by the names that the tenant says: so no name of one tenant means anything of another.
"""

import difflib
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Protocol

import msgspec

from everlog.events import BadInput, UnknownAgent
from everlog.store import Store, check_not_reserved, name_of

TENANT_END = "~"
"""End of the name of a tenant, which has none itself, before the name of an agent of it in the store."""


COMPARED_MAX = 1000
"""Most names that an unknown one is compared with: a host runs other agents, and 10,000 names take it 0.2 s."""


class Registry(Protocol):
    """Store, as far as names are concerned."""

    def agents(self) -> list[str]:
        """Return the names of all agents."""
        ...

    def stream_of(self, name: str) -> str:
        """Return the stream of the agent that people call `name`; the name itself if there is none."""
        ...

    def partition_of(self, agent_id: str) -> str:
        """Return the partition of an agent. Raises UnknownAgent."""
        ...


def spoken(agent_id: str) -> str:
    """Return the name of an agent as agents of its tenant say it."""
    return agent_id.partition(TENANT_END)[2] or agent_id


def _tenant_of(agent_id: str) -> str:
    """Return the beginning of the names of a tenant's agents, from the name of one; empty for one without a tenant."""
    return agent_id.removesuffix(spoken(agent_id))


def other_agent(agent_id: str, name: str, registry: Registry) -> str:
    """Return the name in the store of the agent that `agent_id` calls `name`. Raise BadInput for an impossible name,
    and UnknownAgent, with similar names of the same tenant, if there is no such agent: the caller says what was left
    undone.
    """
    prefix = _tenant_of(agent_id)
    given = name_of(prefix + name.strip())
    check_not_reserved(given)
    if not prefix and TENANT_END in given:
        raise BadInput(f"{name!r} is no name of an agent that you can write to.")
    stored = registry.stream_of(given)
    try:
        registry.partition_of(stored)
    except UnknownAgent:
        there = [spoken(one) for one in registry.agents() if one != agent_id and _tenant_of(one) == prefix]
        near = difflib.get_close_matches(name, there, n=3, cutoff=0.5) if len(there) <= COMPARED_MAX else ()
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UnknownAgent(f"There is no agent {name!r}.{hint}") from None
    return stored


_LABELLED = """SELECT l.agent_id FROM labels l JOIN agents a ON a.agent_id = l.agent_id
WHERE l.label IN ({labels}) AND a.current AND NOT a.deleted
GROUP BY l.agent_id HAVING count(DISTINCT l.label) = {count} ORDER BY l.agent_id"""


class _Watched(msgspec.Struct):
    """Part of a configuration."""

    background: str = ""


_UNCHANGED = "Nothing was changed."


class StoreAgents:
    """The agents of a store, as one of them looks for the others. See `effects.OtherAgents` for the contract."""

    def __init__(self, store: Store, agent_id: str) -> None:
        self._store = store
        self._agent_id = agent_id

    async def named(self, name: str, *, living: bool = False) -> str:
        """Return the name in the store of the agent that this one calls `name`. Raise BadInput, UnknownAgent."""
        found = other_agent(self._agent_id, name, self._store)
        if living and self._background_of(found) is None:
            raise UnknownAgent(f"The agent {name!r} was deleted.")
        return found

    async def labelled(self, label: str) -> Sequence[str]:
        """Return the names in the store of the other agents of the tenant with a label, sorted.

        One query over the logs of all agents: 0.2 s for 10,000. Raises BadInput for a blank label; CorruptLog,
        StoreError.
        """
        if not label.strip():
            raise BadInput("A label is not blank.")
        from everlog.actors.memory.fleet_sql import fleet_rows  # most agents never write to a label

        found = [row["agent_id"] for row in fleet_rows(self._store, labelled_query([label.strip()]))]
        own = _tenant_of(self._agent_id)
        return [one for one in found if _tenant_of(one) == own and one != self._agent_id]

    async def background(self, name: str) -> str:
        """Return the name, as the tenant says it, of the agent that is to be the background agent of this one.

        Raises UnknownAgent, also for a deleted one; BadInput for the agent itself, and for a circle of agents that
        would tell each other what they do. Reads the newest configurations of the agents in a row.
        """
        try:
            own, other = spoken(self._agent_id), other_agent(self._agent_id, name, self._store)
        except UnknownAgent as error:
            raise UnknownAgent(f"{error} {_UNCHANGED}") from None
        circle = [own, spoken(other)]
        if other == self._agent_id:
            raise BadInput(f"An agent cannot work in its own background. Name another agent. {_UNCHANGED}")
        following = self._background_of(other)
        if following is None:
            raise UnknownAgent(f"The agent {circle[1]!r} was deleted. {_UNCHANGED}")
        while following:
            if following == own:
                *tells, last = [f"{one} would tell {to}" for one, to in pairwise([*circle, own])]
                told = f"{', '.join(tells)}, and {last}"
                raise BadInput(f"That would be a circle of background agents: {told}. {_UNCHANGED}")
            if following in circle:  # made at the same time in two places; turns that come of it wake none of them
                break
            circle.append(following)
            following = self._background_of(_tenant_of(self._agent_id) + following)
        return circle[1]

    def _background_of(self, name: str) -> str | None:
        """Return the background agent of an agent, as its tenant says it; empty for none, None if it was deleted."""
        from everlog.projections import HEAD, Projections, activate

        with Projections() as engine:
            activate(engine, self._store.reader(name), name, HEAD)
            standing = engine.rows("standing", name)
            configured = engine.rows("configurations", name)
        if not standing or standing[0]["deleted"]:
            return None
        return msgspec.json.decode(configured[-1]["payload"], type=_Watched).background if configured else ""


def labelled_query(labels: Collection[str]) -> str:
    """Return the query over the fleet's views that returns the names of the agents that have all of some labels."""
    texts = ["'" + label.replace("'", "''") + "'" for label in sorted(set(labels))]
    return _LABELLED.format(labels=", ".join(texts), count=len(texts))
