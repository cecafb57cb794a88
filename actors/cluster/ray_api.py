"""Wrap the parts of Ray that everlog uses: the one file that imports it. It decides nothing.

Used by the actors and clients of this folder, which are imported only where a cluster is used: no other command pays
for the import of Ray.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util import metrics

from everlog.actors.cluster.cluster_errors import not_connected_error
from everlog.actors.cluster.ray_address import answers, close_token_file, namespace
from everlog.actors.hosting.metrics import InstrumentFactory
from everlog.actors.ports.agent_constants import CALLS_MAX, OBJECT_STORE_BYTES
from everlog.events import ClusterError

__all__ = ["RayActorError", "RayError", "RayTaskError", "cloudpickle"]

MAKERS = InstrumentFactory(metrics.Counter, metrics.Gauge, metrics.Histogram)


HEAD = "node:__internal_head__"
"""Ray resource that only the head node offers."""


def connect(root: str, address: str, listen: str = "") -> None:
    """Join the cluster at `address`, or start one if it is empty. Raises ClusterError.

    `listen` is as in `ray_address.prepare`, which is called before this module is imported.
    """
    if address and address != "auto" and not answers(address):
        raise ClusterError(
            f"No Ray cluster answers at {address} (RAY_ADDRESS). Start it, clear RAY_ADDRESS, or use --runtime local."
        )
    logging.getLogger("ray").setLevel(logging.ERROR)
    started: dict[str, Any] = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    if listen:
        started["_node_ip_address"] = listen
    close_token_file()
    try:
        ray.init(
            address or "local", namespace=namespace(root), log_to_driver=False, logging_level="ERROR",
            configure_logging=False, **({} if address else started),
        )  # fmt: skip
    except (RayError, RuntimeError, ConnectionError, ValueError, OSError) as error:
        raise not_connected_error(address, ray.__version__, error) from error
    finally:
        close_token_file()  # Ray creates it with the mode of this process's umask


def connected() -> bool:
    """Return True if this process has joined a cluster."""
    return bool(ray.is_initialized())


def disconnect() -> None:
    """Leave the cluster. A cluster that this process started ends."""
    ray.shutdown()


def address() -> str:
    """Return the address at which other processes can join the cluster."""
    return str(ray.get_runtime_context().gcs_address)


def make_actor(root: str, name: str, content: type, *arguments: Any, **options: Any) -> Any:
    """Create an actor of the store in `root`; it outlives the process that created it. May raise ValueError,
    RayError.
    """
    options = {"name": name, "namespace": namespace(root), "max_concurrency": CALLS_MAX, **options}
    actor = _actor_class(content).options(lifetime="detached", num_cpus=0, enable_task_events=False, **options)
    return actor.remote(root, *arguments)


@cache
def _actor_class(content: type) -> Any:
    """Return the class as one of Ray, which sends it to the cluster once: not again for each actor."""
    return ray.remote(content)


def find_actor(root: str, name: str) -> Any | None:
    """Return the actor of that name, dead or alive; None if there is none."""
    try:
        return ray.get_actor(name, namespace=namespace(root))
    except ValueError:
        return None


def kill(handle: Any) -> None:
    """End an actor's process now."""
    ray.kill(handle)


def cancel(stream: Any) -> None:
    """Cancel a call: it stops, and returns nothing more."""
    ray.cancel(stream)


def key_of(handle: Any) -> str:
    """Return the id of this one actor process, which a later actor of the same name does not share."""
    return str(handle._actor_id.hex())  # noqa: SLF001 - Ray has no public name for it


def own_key() -> str:
    """Return the key of the actor that runs this code."""
    return str(ray.get_runtime_context().get_actor_id())


def own_node() -> str:
    """Return the address of the machine that this process runs on."""
    return str(ray.util.get_node_ip_address())


def own_node_id() -> str:
    """Return the id of the node of the cluster that this process runs on."""
    return str(ray.get_runtime_context().get_node_id())


def resources() -> Mapping[str, float]:
    """Return the sum of the resources of all nodes."""
    found: Mapping[str, float] = ray.cluster_resources()
    return found


def nodes() -> Sequence[Mapping[str, Any]]:
    """Return the nodes of the cluster, as Ray describes them."""
    found: Sequence[Mapping[str, Any]] = ray.nodes()
    return found
