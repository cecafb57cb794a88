"""What the supervisor, the gateway and Ray say of themselves, as `status` has it."""

from collections.abc import Mapping, Sequence
from typing import Any

from everlog.actors.cluster import placement
from everlog.actors.cluster.ray_placement import SLOT
from everlog.actors.gateway import gateway as gateways
from everlog.actors.hosting import cluster_status


def supervisor(seen: placement.SupervisorCounters) -> cluster_status.SupervisorStatus:
    """The supervisor's figures."""
    return cluster_status.SupervisorStatus(
        living=seen.hosts,
        starting=seen.starting,
        waiting=sum(seen.waiting.values()),
        recovering=seen.recovering + seen.recoveries_waiting,
        recoveries=seen.deaths,
        timers=seen.timed_agents,
        next_due=seen.next_due,
    )


def gateway(seen: gateways.GatewayCounters) -> cluster_status.GatewayStatus:
    """The gateway's figures; failures and tokens are those of all endpoints together."""
    tokens = seen.tokens_in + seen.tokens_out
    return cluster_status.GatewayStatus(
        endpoints=[
            cluster_status.EndpointStatus(
                endpoint=one.base_url,
                under_way=one.under_way,
                waiting=one.waiting,
                asked=seen.asked if number == 0 else 0,
                tokens=tokens if number == 0 else 0,
                failures=dict(seen.failed) if number == 0 else {},
            )
            for number, one in enumerate(seen.endpoints)
        ]
    )


def node(seen: Mapping[str, Any], hosts: Sequence[cluster_status.HostStatus]) -> cluster_status.NodeStatus:
    """What Ray says of a node, with the hosts on it."""
    offers = seen.get("Resources", {})
    mine = [host for host in hosts if host.node == seen["NodeManagerAddress"]]
    slots = int(offers.get(SLOT, 0))
    return cluster_status.NodeStatus(
        node=seen["NodeManagerAddress"],
        lives=bool(seen["Alive"]),
        hosts=len(mine),
        slots_used=min(len(mine), slots),
        slots=slots,
        memory_used_bytes=sum(host.memory_bytes for host in mine),
        memory_bytes=int(offers.get("memory", 0)),
    )
