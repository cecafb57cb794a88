"""Names of a tenant's agents, sources and shared blocks, and the names that the store has for them. Pure.

In the store, everything of the tenant `acme` is named `acme~NAME`; the tenant says NAME. The name of a tenant has no
`~`, so no name of one tenant can mean anything of another. The operator has no tenant and says the names of the store.

Used by every route: a name of a request goes in through `inner`, and a name of an answer comes out through `outer`.
"""

from typing import NamedTuple

from everlog.events import BadInput
from everlog.store import BLOCK_PREFIX, SOURCE_PREFIX

SEPARATOR = "~"


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

    def outer(self, stored: str) -> str:
        """Return the name that the tenant says. The name must be the tenant's."""
        return stored.removeprefix(self.prefix)
