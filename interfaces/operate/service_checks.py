"""Check the services that agents use: endpoints of models with their keys, and the cluster.

Used by `everlog doctor`. Keys are named by their variables, and never shown. Endpoints are contacted only if the caller
asks for that: a connection is opened and closed, and no request is sent.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from everlog.actors.cluster.os_processes import keeps_cluster
from everlog.actors.cluster.ray_address import answers, local_cluster, running
from everlog.actors.models.model_catalogue import catalogue_of, request_url
from everlog.events import EverlogError
from everlog.interfaces.common.installed import NOT_INSTALLED, installed_version
from everlog.interfaces.operate.findings import Finding, FindingLevel

PORTS = {"http": 80, "https": 443}
_USER = re.compile(r"(?<=://)[^/\s@]+@")


def check_models(root: Path, environment: Mapping[str, str], *, online: bool) -> Iterator[Finding]:
    """Yield the findings about the endpoints of models.toml and the default endpoint."""
    try:
        catalogue = catalogue_of(root)
    except EverlogError as error:
        yield Finding("models", "fail", str(error))
        return
    yield Finding("models", "ok", f"{len(catalogue.models)} described, {len(catalogue.found)} tested")
    places = {name: entry.url for name, entry in catalogue.endpoints.items()}
    places["default"] = request_url("")
    for name, url in places.items():
        key = catalogue.key_of(url)
        shown = _USER.sub("***@", url)
        if key and not environment.get(key):
            level: FindingLevel = "warn" if name != "default" else "ok"
            yield Finding(f"endpoint {name}", level, f"{shown}: the variable {key} with its key is not set",
                          f"export {key}=... (the model `offline` needs no key)")  # fmt: skip
        else:
            yield Finding(f"endpoint {name}", "ok", f"{shown}: {f'key in {key}' if key else 'no key'}")
        if online:
            needed = name != "default" or bool(environment.get(key))
            yield _connection(name, url, shown, "fail" if needed else "warn")


def _connection(name: str, url: str, shown: str, level: FindingLevel) -> Finding:
    """Return the finding about a connection to an endpoint, which is opened and closed."""
    parts = urlsplit(url)
    address = f"{parts.hostname}:{parts.port or PORTS.get(parts.scheme, 443)}"
    if answers(address):
        return Finding(f"endpoint {name}", "ok", f"{shown} accepts connections")
    return Finding(f"endpoint {name}", level, f"{shown} accepts no connection at {address}",
                   "Start the server, or correct the address.")  # fmt: skip


def check_cluster(root: Path, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the findings about the cluster of the store."""
    if installed_version("ray") == NOT_INSTALLED:
        yield Finding("cluster", "ok", "Ray is not installed: agents run in the process of each command")
        return
    named = environment.get("RAY_ADDRESS", "")
    if named not in ("", "auto", "local") and not answers(named):
        yield Finding("cluster", "fail", f"RAY_ADDRESS is {named}, and nothing answers there",
                      "Start that cluster, or unset RAY_ADDRESS.")  # fmt: skip
        return
    own, address = local_cluster(root), running(root)
    if address:
        yield Finding("cluster", "ok", f"a cluster accepts connections at {address}; `everlog ping` asks its health")
    elif own is not None and not keeps_cluster(own.pid, root):
        yield Finding("cluster", "warn", f"the cluster of `everlog up` (process {own.pid}) has ended without `down`",
                      f"Read {os.fspath(root / 'cluster.log')}, then run `everlog up`.")  # fmt: skip
    else:
        yield Finding("cluster", "ok", "no cluster runs: agents run in the process of each command")
