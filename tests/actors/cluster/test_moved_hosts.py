"""Host of an agent that has moved to a shard: it is no host of the agent any more, and says so in its figures."""

import asyncio
from types import SimpleNamespace

import pytest

from everlog.actors.cluster import ray_api
from everlog.actors.cluster.host_actors import DedicatedActor
from everlog.actors.cluster.placement import HostedPartition
from everlog.events import HostLost


def hosting(*, active: bool, partition: str) -> DedicatedActor:
    """Return the host of sam's own partition, without Ray; the register has sam in `partition`."""
    actor = object.__new__(DedicatedActor)
    actor._place = HostedPartition("agent-sam", "sam")
    actor._host = SimpleNamespace(agent_id="sam", active=active, busy=False)  # type: ignore[assignment]
    actor._store = SimpleNamespace(partition_of=lambda _: partition)  # type: ignore[assignment]
    return actor


@pytest.mark.parametrize(
    ("active", "partition", "passive", "moved"),
    [(True, "agent-sam", 0, False), (False, "agent-sam", 1, False), (False, "shard-003", 0, True)],
)
def test_a_host_counts_its_agent_until_it_has_moved(
    active: bool, partition: str, passive: int, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is active or passive in one host at a time: after a move the old host counts none, and refuses it."""
    monkeypatch.setattr(ray_api, "own_node", lambda: "node")
    actor = hosting(active=active, partition=partition)
    found = asyncio.run(actor.status())
    assert (found.active, found.passive, found.moved) == (int(active), passive, moved)
    if moved:
        with pytest.raises(HostLost, match="has moved to another partition"):
            actor._raise_if_moved("sam")
