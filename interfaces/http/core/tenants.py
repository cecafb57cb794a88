"""Names of a tenant's agents, sources and shared blocks, and the names that the store has for them. Pure.

In the store, everything of the tenant `acme` is named `acme~NAME`; the tenant says NAME. The name of a tenant has no
`~`, so no name of one tenant can mean anything of another. The operator has no tenant and says the names of the store.

Used by every route: a name of a request goes in through `inner`, and a name of an answer comes out through `outer`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from everlog.actors.mail.names import TENANT_END
from everlog.events import BadInput, Record, TurnAbandoned
from everlog.interfaces.wire.records import HttpRecord, shape_of
from everlog.projections.fleet.tenant_records import NAMES_IN_PAYLOADS
from everlog.store import BLOCK_PREFIX, SOURCE_PREFIX

SEPARATOR = TENANT_END
NAMES_IN_ROWS = ("agent_id", *NAMES_IN_PAYLOADS)
"""Columns of projections that hold names."""


class TenantNames(NamedTuple):
    """Translation of the names of one tenant."""

    tenant: str
    """Name of the tenant; empty: the operator."""

    @property
    def prefix(self) -> str:
        """Beginning of the names of the tenant's streams; empty for the operator."""
        return f"{self.tenant}{SEPARATOR}" if self.tenant else ""

    def inner(self, name: str) -> str:
        """Return the name that the store has. Raises BadInput for a name without characters."""
        if not name:
            raise BadInput("A name has at least one character.")
        return self.prefix + name

    def owns(self, stored: str) -> bool:
        """Return True if a name of the store is the tenant's."""
        return stored.startswith(self.prefix) and len(stored) > len(self.prefix)

    def stream_name(self, stream: str) -> str | None:
        """Return the name that the tenant says for a stream: of an agent, or `source:NAME` or `block:NAME`. None for
        a stream of another tenant.
        """
        kind = next((kind for kind in (SOURCE_PREFIX, BLOCK_PREFIX) if stream.startswith(kind)), "")
        stored = stream.removeprefix(kind)
        return kind + self.outer(stored) if self.owns(stored) else None

    def record(self, record: Record) -> HttpRecord:
        """Return a record of the tenant for HTTP, with the names that the tenant says."""
        if not self.tenant:
            return shape_of(record)
        payload, text = record.payload, record.text
        if self.prefix in payload:  # the SQL of a tenant changes the same fields in the same way
            for field in NAMES_IN_PAYLOADS:
                payload = payload.replace(f'"{field}":"{self.prefix}', f'"{field}":"')
        if text is not None and record.type == TurnAbandoned.kind:  # everlog's own words
            text = text.replace(self.prefix, "")
        shown = msgspec.structs.replace(record, payload=payload, text=text)
        return shape_of(shown, self.stream_name(record.agent_id))

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of a projection of the tenant's, with the names that the tenant says."""
        return {
            name: self.outer(value) if name in NAMES_IN_ROWS and isinstance(value, str) else value
            for name, value in row.items()
        }

    def outer(self, stored: str) -> str:
        """Return the name that the tenant says. The name must be the tenant's."""
        return stored.removeprefix(self.prefix)
