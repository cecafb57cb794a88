"""A system for one host, with what its callers lend it: the way from means to functions and models."""

from collections.abc import Awaitable, Callable

from everlog.actors.agent.commands import Means
from everlog.actors.agent.seats import Enter
from everlog.actors.agent.system import System
from everlog.actors.gateway.models import served_at
from everlog.actors.memory.blocks import Blocks
from everlog.actors.models.catalogue import known_at
from everlog.actors.models.spending import NOTHING, Spent
from everlog.actors.ports.effects import Answer, Archive, Clock, Hear, Ids
from everlog.store import FileStore, Store

Ask = Callable[..., Awaitable[Answer]]
"""Sends a request: a model's name, where it is served (or empty), the bytes, whose it is, what they used up today.

With `hear`, that is told the pieces of a reply that is streamed. A gateway's `ask`.
"""


class Asked:
    """A model behind a gateway, which keeps the connections."""

    __slots__ = ("_agent_id", "_ask", "_base_url", "_spent", "name")

    def __init__(self, name: str, base_url: str, ask: Ask, agent_id: str) -> None:
        self.name = name
        self._base_url = base_url
        self._ask = ask
        self._agent_id = agent_id
        self._spent = NOTHING

    async def ask(self, request: bytes) -> Answer:
        """Send exactly these bytes. Raises ModelError."""
        return await self._ask(self.name, self._base_url, request, self._agent_id, self._spent)

    def account(self, spent: Spent) -> None:
        """What the agent has used up until now, and what it may."""
        self._spent = spent

    async def ask_aloud(self, request: bytes, hear: Hear) -> Answer:
        """`ask`, where `hear` is told the pieces as they come."""
        return await self._ask(self.name, self._base_url, request, self._agent_id, self._spent, hear=hear)

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
    blocks: Blocks | None = None,
) -> System:
    """The agents of a store, with the functions of `means`, models that are asked through `ask`, their seats, the
    archive that they search and the blocks that they share.
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
        blocks=blocks,
    )
