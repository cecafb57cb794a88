"""Names of agents in messages between them. Pure, but for the look into the store for a name.

In the store, the agents of a tenant have its name and a `~` before theirs. Agents write to agents of the same tenant
only, and by the names that the tenant says: so no name of one tenant means anything of another.
"""

import difflib
from typing import Protocol

from everlog.events import BadInput, UnknownAgent
from everlog.store import check_not_reserved, name_of

TENANT_END = "~"
"""End of the name of a tenant, which has none itself, before the name of an agent of it in the store."""


COMPARED_MAX = 1000
"""Most names that an unknown one is compared with: a host runs other agents, and 10,000 names take it 0.2 s."""


class Registry(Protocol):
    """Store, as far as names are concerned."""

    def agents(self) -> list[str]:
        """Return the names of all agents."""
        ...

    def partition_of(self, agent_id: str) -> str:
        """Return the partition of an agent. Raises UnknownAgent."""
        ...


def spoken(agent_id: str) -> str:
    """Return the name of an agent as agents of its tenant say it."""
    return agent_id.partition(TENANT_END)[2] or agent_id


def tenant_of(agent_id: str) -> str:
    """Return the beginning of the names of a tenant's agents, from the name of one; empty for one without a tenant."""
    return agent_id.removesuffix(spoken(agent_id))


def other_agent(agent_id: str, name: str, registry: Registry) -> str:
    """Return the name in the store of the agent that `agent_id` calls `name`. Raise BadInput for an impossible name,
    and UnknownAgent, with similar names of the same tenant, if there is no such agent.
    """
    prefix = tenant_of(agent_id)
    stored = name_of(prefix + name.strip())
    check_not_reserved(stored)
    if not prefix and TENANT_END in stored:
        raise BadInput(f"{name!r} is no name of an agent that you can write to.")
    try:
        registry.partition_of(stored)
    except UnknownAgent:
        there = [spoken(one) for one in registry.agents() if one != agent_id and tenant_of(one) == prefix]
        near = difflib.get_close_matches(name, there, n=3, cutoff=0.5) if len(there) <= COMPARED_MAX else ()
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UnknownAgent(f"There is no agent {name!r}.{hint} Nothing was sent.") from None
    return stored
