"""Find the Ray cluster that runs, and name things in it. Imports no Ray: commands that only read, and `local`, must not
pay for that import.

Used by `open_system`, by `everlog up` and `down`, and by the files of this folder. Processes find each other by these
names and by the recorded address: a process with other names does not find the actors of a running cluster.
"""

import ipaddress
import os
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from everlog.actors.cluster.os_processes import keeps_cluster
from everlog.store.base.disk import RealDisk

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    # Without this, Ray prints these lines between everlog's own.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed|worker processes have been started",
    "RAY_maximum_gcs_destroyed_actor_cached_count": "1000",  # many hosts start and end
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # `minimize_reserves` comes too late for processes that import Arrow early
}
"""Environment of Ray and its processes, for each variable that the user has not set."""

NETWORK_SWITCH = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Variable of Ray, read when Ray is imported: with 0 all processes of Ray listen on 127.0.0.1 only, as they always do
on Windows and macOS. Ray turns an explicit address 127.0.0.1 into that of the network card.
"""

RECORD_BYTES_MAX = 64 * 1024
"""Bytes of the record of a cluster that are read; it has some hundred."""
ANSWER_S = 0.5
"""Seconds within which a running cluster accepts a connection."""


class LocalCluster(msgspec.Struct, frozen=True):
    """Local cluster that `everlog up` keeps running for a store."""

    address: str
    pid: int
    """Process id of the daemon that runs the cluster."""
    auth: str = ""
    """RAY_AUTH_MODE at the start of the cluster: whether it asks for Ray's token."""


def prepare(root: Path, address: str, listen: str = "") -> None:
    """Set the variables that Ray reads when it is imported, unless the user has set them.

    `address`: cluster to join; empty for a new cluster, which asks for Ray's token. `listen`: address of this machine
    at which other machines reach a new cluster; empty for a cluster of this machine only.
    """
    own = local_cluster(root)
    for key, value in ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    if listen:
        os.environ[NETWORK_SWITCH] = "1"
    elif not address or is_loopback(address):
        os.environ.setdefault(NETWORK_SWITCH, "0")
    if not address:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    elif own is not None and own.auth and own.address.rpartition(":")[2] == address.rpartition(":")[2]:
        os.environ.setdefault("RAY_AUTH_MODE", own.auth)


def is_loopback(address: str) -> bool:
    """Return True if `address`, as `host:port` or a host, can be reached from this machine only."""
    host = address.rpartition(":")[0].strip("[]") or address
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def cluster_file(root: Path) -> Path:
    """Return the file in which the store in `root` records its cluster."""
    return root / "cluster.json"


def local_cluster(root: Path) -> LocalCluster | None:
    """Return the cluster that is recorded for the store, running or not; None if there is no readable record."""
    try:
        content = RealDisk().read(cluster_file(root), 0, RECORD_BYTES_MAX)  # never waits for a pipe, nor reads a device
        return msgspec.json.decode(content, type=LocalCluster)
    except (OSError, msgspec.DecodeError):
        return None


def running(root: Path) -> str:
    """Return the address of the cluster to join, if one runs: RAY_ADDRESS, the store's own, the machine's. Empty for
    none.

    The store's own cluster counts only while its daemon runs: another program may listen on the port of an ended
    cluster.
    """
    own = local_cluster(root)
    owned = own.address if own is not None and keeps_cluster(own.pid, root) else ""
    for address in (os.environ.get("RAY_ADDRESS", ""), owned, _local_address()):
        if address not in ("", "auto", "local") and answers(address):
            return address
    return ""


def address_to_join(root: Path) -> str:
    """Return the address of the cluster to join: RAY_ADDRESS, running or not, else one that runs, else empty."""
    named = os.environ.get("RAY_ADDRESS", "")
    return running(root) if named in ("", "auto", "local") else named


def answers(address: str) -> bool:
    """Return True if something accepts connections at `host:port`. Other forms, as ray://, are assumed to be
    reachable.
    """
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
    """Return the address that Ray's own command recorded for its cluster on this machine, if the same user
    started it.
    """
    file = Path(os.environ.get("RAY_TMPDIR") or "/tmp") / "ray" / "ray_current_cluster"  # noqa: S108 - Ray's place
    try:
        return file.read_text().strip() if file.stat().st_uid == os.getuid() else ""
    except (OSError, UnicodeDecodeError):
        return ""


def namespace(root: str) -> str:
    """Return the Ray namespace of a store: hosts of different stores must not find each other."""
    return f"everlog:{root}"


def host_name(agent_id: str) -> str:
    """Return the name of an agent's actor. The name only says where to look; the epoch in a log says which process owns
    it.
    """
    return f"agent:{agent_id}"


def _token_file() -> Path:
    """Return the file in which Ray keeps the token that it makes."""
    return Path.home() / ".ray" / "auth_token"


def close_token_file() -> None:
    """Keep Ray's token closed to other users: it is all that a program needs to run code in the cluster.

    Make the folder of Ray's token with mode 0700 if it is missing, and take the permissions of other users away from
    an existing file.

    A file that cannot be changed is left as it is: it belongs to another user, who decides. Ray finds its token in the
    order RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH, ~/.ray/auth_token; only the last is Ray's own file, so only it is closed.
    """
    file = _token_file()
    with suppress(OSError):
        file.parent.mkdir(mode=0o700)  # so that the file is never readable, not even before the next line
    with suppress(OSError):
        if file.stat().st_mode & 0o077:
            file.chmod(0o600)
