"""Which Ray cluster runs, and what things are called in it. Imports no Ray: reading commands and `local` must not pay
for it.
"""

import os
import socket
from pathlib import Path

import msgspec

from everlog.actors.cluster.os_processes import keeps_cluster

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    # None of Ray's words between ours.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed|worker processes have been started",
    "RAY_maximum_gcs_destroyed_actor_cached_count": "1000",  # hosts come and go
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # for what `thin` does not reach; Arrow reads it before that, on its import
}
"""How Ray and its processes are set up, where the user's environment does not say it."""

ANSWER_S = 0.5
"""A cluster that does not accept a connection in this time does not run."""


class LocalCluster(msgspec.Struct, frozen=True):
    """A local cluster that `everlog up` keeps running for a store."""

    address: str
    pid: int
    """Of the process that keeps it."""
    auth: str = ""
    """Whether it asks for Ray's token: RAY_AUTH_MODE, as it was started."""


def prepare(root: Path, address: str) -> None:
    """Set up what Ray reads from the environment when it is imported, where the user has not.

    `address`: of the cluster that is joined; empty for one that is started, which asks for Ray's token.
    """
    own = local_cluster(root)
    for key, value in ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    if not address:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    elif own is not None and own.auth and own.address.rpartition(":")[2] == address.rpartition(":")[2]:
        os.environ.setdefault("RAY_AUTH_MODE", own.auth)


def cluster_file(root: Path) -> Path:
    """Where the store in `root` says which cluster is kept for it."""
    return root / "cluster.json"


def local_cluster(root: Path) -> LocalCluster | None:
    """The cluster that is kept for the store, running or not; None if none was, or nobody can say."""
    try:
        return msgspec.json.decode(cluster_file(root).read_bytes(), type=LocalCluster)
    except (OSError, msgspec.DecodeError):
        return None


def running(root: Path) -> str:
    """The address of the cluster to join, if one runs: RAY_ADDRESS, the store's own, the machine's. Empty for none.

    Somebody else may listen where a cluster that has ended listened: the store's own runs as long as its keeper.
    """
    own = local_cluster(root)
    owned = own.address if own is not None and keeps_cluster(own.pid, root) else ""
    for address in (os.environ.get("RAY_ADDRESS", ""), owned, _local_address()):
        if address not in ("", "auto", "local") and answers(address):
            return address
    return ""


def address_to_join(root: Path) -> str:
    """The address of the cluster to join: RAY_ADDRESS, running or not, or one that runs, or empty."""
    named = os.environ.get("RAY_ADDRESS", "")
    return running(root) if named in ("", "auto", "local") else named


def answers(address: str) -> bool:
    """Whether something accepts connections at `host:port`. Other forms, as ray://, are taken at their word."""
    if "://" in address:
        return True
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        return False
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S):
            return True
    except (OSError, ValueError):  # ValueError: a name that cannot be one, a port above 65535
        return False


def _local_address() -> str:
    """Where Ray's own command left the address of the cluster that it started on this machine, if we started it."""
    file = Path(os.environ.get("RAY_TMPDIR") or "/tmp") / "ray" / "ray_current_cluster"  # noqa: S108 - Ray's place
    try:
        return file.read_text().strip() if file.stat().st_uid == os.getuid() else ""
    except (OSError, UnicodeDecodeError):
        return ""


def namespace(root: str) -> str:
    """Hosts of one store do not meet those of another."""
    return f"everlog:{root}"


def host_name(agent_id: str) -> str:
    """Where to knock for an agent; who owns its log says the epoch."""
    return f"agent:{agent_id}"
