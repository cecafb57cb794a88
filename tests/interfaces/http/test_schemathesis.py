"""Random requests made from the OpenAPI document: no bug, and no answer that the document does not describe."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from everlog.interfaces.http.core.service import HttpOptions
from everlog.interfaces.http.native.sources import DOCUMENT_TYPES
from everlog.interfaces.http.native.transfer import EXPORT
from tests.interfaces.http.test_every_route import RECEIVER, _prepared
from tests.support.cli.command_line import Script
from tests.support.http.served_store import served

schemathesis = pytest.importorskip("schemathesis", reason="it is no package of `dev`: pip install 'schemathesis>=4.32'")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")
FailureGroup = pytest.importorskip("schemathesis.core.failures").FailureGroup

EXAMPLES = int(os.environ.get("EVERLOG_EXAMPLES", "40"))
"""Random requests of each operation."""
CHECKS = [
    pytest.importorskip("schemathesis.checks").not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
LASTING = ("DELETE /api/v1/agents/{agent}",)
"""Operations that would leave nothing to ask for: they get random names only."""
MOMENTS = ("as_of", "since", "until", "at", "now", "agent")
"""Parameters that are left out beside names that exist: a random text is no time."""
LEFT_OUT = ("/stream", "/feed", "/metrics")
"""Ends of paths whose answers do not end, or are no JSON."""


@schemathesis.serializer(EXPORT, *DOCUMENT_TYPES)
def _as_bytes(_: Any, value: Any) -> bytes:
    """Return any value as the bytes of a body that is no JSON."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.mark.long
@pytest.mark.commands
@pytest.mark.parametrize("tenant", ["acme", ""])
def test_random_requests_meet_no_bug_and_get_what_the_document_says(tmp_path: Path, tenant: str) -> None:
    """An answer to a random request, with names that exist or with others, is one that the document describes."""
    faults: dict[str, str] = {}
    with _server(tmp_path, tenant) as (address, headers, values):
        document = schemathesis.openapi.from_url(f"{address}/openapi.json")
        for found in document.get_all_operations():
            operation = found.ok()
            if operation.path.endswith(LEFT_OUT):
                continue
            try:
                _try(operation, headers, values)
            except (FailureGroup, AssertionError) as error:
                faults[operation.label] = str(error)
    assert not faults, "\n\n".join(f"{label}\n{fault}" for label, fault in faults.items())


def _try(operation: Any, headers: dict[str, str], values: dict[str, Any]) -> None:
    """Send random requests to one operation. Raises what is wrong with an answer."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), known=strategies.booleans())
    def send(case: Any, known: bool) -> None:
        if known and not operation.label.endswith(LASTING):
            mine = {name: value for name, value in values.items() if name in case.path_parameters}
            case.path_parameters.update(mine)
            for name in MOMENTS:
                (case.query or {}).pop(name, None)
        answer = case.call(headers=headers, timeout=60)
        case.validate_response(answer, checks=CHECKS)

    send()


@contextmanager
def _server(root: Path, tenant: str) -> Iterator[tuple[str, dict[str, str], dict[str, Any]]]:
    """Serve a store with some agents in another thread, and yield the address, the header of a key, and names."""
    ready, stop = threading.Event(), threading.Event()
    found: list[Any] = []

    async def main() -> None:
        async with served(root, Script([]), options=HttpOptions(webhook_hosts=(RECEIVER,))) as server:
            key = server.key(tenant=tenant)
            found.append((server.address, key, {**await _prepared(server, key), "agent": "sam"}))
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert ready.wait(60), "the server is ready"
        yield found[0]
    finally:
        stop.set()
        thread.join()
