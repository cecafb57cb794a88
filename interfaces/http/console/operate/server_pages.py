"""Show what runs the agents: the hosts of a cluster, and the keys of the server. Keys themselves are shown nowhere."""

from typing import Any

import msgspec
from starlette.responses import Response

from everlog.actors.hosting.cluster_status import HostStatus, StatusSource, faults_of
from everlog.interfaces.http.console.page_response import page
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall

HOSTS_SHOWN = 200


class ShownKey(msgspec.Struct, frozen=True, kw_only=True):
    """Key for a page, without the key."""

    id: str
    name: str
    role: str
    tenant: str
    created_at: int
    """Microseconds UTC, as the other times."""
    expires_at: int
    """0: never."""
    revoked_at: int
    """0: it was not."""
    valid: bool
    own: bool
    """True: the browser is signed in with it."""


async def show_cluster(call: HttpCall) -> Response:
    """Show the nodes and hosts of the cluster, or that this server runs the agents itself."""
    if call.names.tenant:
        raise Refusal(403, "forbidden", "Only the operator sees the machines that run the agents.")
    runtime = call.service.system.runtime
    now = await runtime.status() if isinstance(runtime, StatusSource) else None
    hosts = sorted(now.hosts, key=_busiest_first) if now else []
    values: dict[str, Any] = {
        "status": now, "hosts": hosts[:HOSTS_SHOWN], "left": max(0, len(hosts) - HOSTS_SHOWN),
        "faults": list(faults_of(now)) if now else (), "now": call.service.ports.clock.now(),
        "agents": len(call.service.system.store.agents()) if now is None else 0, "role": call.caller.role,
    }  # fmt: skip
    return page(call.request, "cluster.html", values)


async def show_keys(call: HttpCall) -> Response:
    """List the keys that the caller may know of: an operator's all, a tenant's own."""
    now, tenant = call.service.ports.clock.now(), call.names.tenant
    entries = await call.service.ports.aside(call.service.keys.all)
    keys = [
        ShownKey(
            id=one.id, name=one.name, role=one.role, tenant=one.tenant, created_at=one.created_at,
            expires_at=one.expires_at or 0, revoked_at=one.revoked_at or 0, valid=one.is_valid(now),
            own=one.id == call.caller.key_id,
        )
        for one in entries
        if not tenant or one.tenant == tenant
    ]  # fmt: skip
    values = {"keys": keys[::-1], "valid": sum(one.valid for one in keys), "now": now, "tenant": tenant}
    return page(call.request, "keys.html", values)


def _busiest_first(host: HostStatus) -> tuple[bool, int, str]:
    return not host.busy, -host.lag_us, host.place
