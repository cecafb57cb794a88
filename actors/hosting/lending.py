"""A system for one host, with what its callers lend it: the way from means to functions and models."""

from collections.abc import Awaitable, Callable

from actors.catalogue import known_at
from actors.commands import Means
from actors.effects import Answer, Archive, Clock, Hear, Ids
from actors.seats import Enter
from actors.system import System
from store import FileStore, Store

from .models import served_at

Ask = Callable[..., Awaitable[Answer]]
"""Sends a request: a model's name, where it is served (or empty), the bytes, whose it is; `hear` is told the pieces of a
reply that is streamed. A gateway's `ask`.
"""


class Asked:
    """A model behind a gateway, which keeps the connections."""

    __slots__ = ("_agent_id", "_ask", "_base_url", "name")

    def __init__(self, name: str, base_url: str, ask: Ask, agent_id: str) -> None:
        self.name = name
        self._base_url = base_url
        self._ask = ask
        self._agent_id = agent_id

    async def ask(self, request: bytes) -> Answer:
        """Send exactly these bytes. Raises ModelError."""
        return await self._ask(self.name, self._base_url, request, self._agent_id)

    async def ask_aloud(self, request: bytes, hear: Hear) -> Answer:
        """`ask`, where `hear` is told the pieces as they come."""
        return await self._ask(self.name, self._base_url, request, self._agent_id, hear=hear)

    async def close(self) -> None:
        """Nothing to let go of."""


def lent_system(
    store: Store,
    means: Means,
    ask: Ask,
    *,
    clock: Clock,
    ids: Ids,
    enter: Enter | None = None,
    archive: Archive | None = None,
) -> System:
    """The agents of a store, with the functions of `means`, models that are asked through `ask`, their seats, and the
    archive that they search.
    """
    root = store.root if isinstance(store, FileStore) else None

    def asked(name: str, agent_id: str) -> Asked:
        url = means.base_url if root is None else served_at(root, name, means.base_url)
        return Asked(name, url, ask, agent_id)

    return System(
        store,
        models_of=lambda agent_id: lambda name: asked(name, agent_id),
        known=None if root is None else lambda name: known_at(root, name, means.base_url),
        tools=means.tools,
        grants=means.grants,
        clock=clock,
        ids=ids,
        enter=enter,
        archive=archive,
    )
