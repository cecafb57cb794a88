"""A system for one host, with what its callers lend it: the way from means to functions and models."""

from collections.abc import Awaitable, Callable

from everlog.actors.agent.activation import ActivationFactory
from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.gateway.model_factory import served_at
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.models.daily_usage import NOTHING, DailyUsage
from everlog.actors.models.model_catalogue import known_at
from everlog.actors.ports.effects import ArchiveClient, Clock, DeltaCallback, Ids, ModelResponse
from everlog.store import FileStore, Store

GatewayCall = Callable[..., Awaitable[ModelResponse]]
"""Sends a request: a model's name, where it is served (or empty), the bytes, whose it is, what they used up today.

With `hear`, that is told the pieces of a reply that is streamed. A gateway's `ask`.
"""


class GatewayModel:
    """A model behind a gateway, which keeps the connections."""

    __slots__ = ("_agent_id", "_ask", "_base_url", "_spent", "name")

    def __init__(self, name: str, base_url: str, ask: GatewayCall, agent_id: str) -> None:
        self.name = name
        self._base_url = base_url
        self._ask = ask
        self._agent_id = agent_id
        self._spent = NOTHING

    async def ask(self, request: bytes) -> ModelResponse:
        """Send exactly these bytes. Raises ModelError."""
        return await self._ask(self.name, self._base_url, request, self._agent_id, self._spent)

    def account(self, spent: DailyUsage) -> None:
        """What the agent has used up until now, and what it may."""
        self._spent = spent

    async def ask_aloud(self, request: bytes, hear: DeltaCallback) -> ModelResponse:
        """`ask`, where `hear` is told the pieces as they come."""
        return await self._ask(self.name, self._base_url, request, self._agent_id, self._spent, hear=hear)

    async def close(self) -> None:
        """Nothing to let go of."""


def lent_system(
    store: Store,
    means: SessionCapabilities,
    ask: GatewayCall,
    *,
    clock: Clock,
    ids: Ids,
    enter: ActivationFactory | None = None,
    archive: ArchiveClient | None = None,
    blocks: BlockClient | None = None,
) -> LocalSystem:
    """The agents of a store, with the functions of `means`, models that are asked through `ask`, their seats, the
    archive that they search and the blocks that they share.
    """
    root = store.root if isinstance(store, FileStore) else None

    def asked(name: str, agent_id: str) -> GatewayModel:
        url = means.base_url if root is None else served_at(root, name, means.base_url)
        return GatewayModel(name, url, ask, agent_id)

    return LocalSystem(
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
