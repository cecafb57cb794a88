"""What a host is made with: the link to whoever starts it, and a system with what its callers lend it."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from everlog.actors.agent.activation import ActivationFactory
from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.agent.local_system import AgentServices, LocalSystem, ModelLookup
from everlog.actors.gateway.model_factory import served_at
from everlog.actors.hosting.timer_schedule import DueTimer
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.models.model_catalogue import defaults_at
from everlog.actors.ports.effects import NOTHING, ArchiveClient, DeltaCallback, ModelResponse, Spent
from everlog.actors.ports.ports import Ports
from everlog.store import FileStore, Store

GatewayCall = Callable[..., Awaitable[ModelResponse]]
"""Sends a request: a model's name, where it is served (or empty), the bytes, whose it is, what they used up today.

`on_delta` is told the pieces of a reply that is streamed. A gateway's `ask`.
"""


TimerCallback = Callable[[str, Sequence[DueTimer]], None]
"""Hears what the timers of an agent are, whenever they change."""


class HostLink(msgspec.Struct, frozen=True, kw_only=True):
    """What connects a host, or a shard, with whoever started it."""

    fence: str = ""
    """`HostHandle.owner` of the host before, which is declared dead: it is fenced should it hold the log; empty for
    none.
    """
    notify_timers: TimerCallback | None = None
    """Hears what the timers of an agent are, whenever they change."""
    on_idle: Callable[[], Awaitable[None]] | None = None
    """Called when nobody has used any of its agents for a while; None: they are let go of."""
    on_fenced: Callable[[], None] | None = None
    """Called when another process owns a shard now."""


NO_LINK = HostLink()


class GatewayModel:
    """A model behind a gateway, which keeps the connections."""

    __slots__ = ("_agent_id", "_ask", "_base_url", "name")

    def __init__(self, name: str, base_url: str, ask: GatewayCall, agent_id: str) -> None:
        self.name = name
        self._base_url = base_url
        self._ask = ask
        self._agent_id = agent_id

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Send exactly these bytes. Raises ModelError."""
        return await self._ask(self.name, self._base_url, request, self._agent_id, spent, on_delta=on_delta)

    async def close(self) -> None:
        """Nothing to let go of."""


def models_through(ask: GatewayCall, agent_id: str, root: Path | None, base_url: str) -> ModelLookup:
    """Return the models of one agent, each asked through `ask` at the place where it is served.

    `root`: the store whose descriptions say where that is; None: at `base_url`.
    """

    def asked(name: str) -> GatewayModel:
        return GatewayModel(name, base_url if root is None else served_at(root, name, base_url), ask, agent_id)

    return asked


def session_system(
    store: Store,
    capabilities: SessionCapabilities,
    ask: GatewayCall,
    *,
    ports: Ports,
    enter: ActivationFactory | None = None,
    archive: ArchiveClient | None = None,
    blocks: BlockClient | None = None,
) -> LocalSystem:
    """The agents of a store, with the functions of `capabilities`, models that are asked through `ask`, their seats,
    the archive that they search and the blocks that they share.
    """
    root = store.root if isinstance(store, FileStore) else None

    return LocalSystem(
        store,
        tools=capabilities.tools,
        grants=capabilities.grants,
        ports=ports,
        enter=enter,
        services=AgentServices(
            models_of=lambda agent_id: models_through(ask, agent_id, root, capabilities.base_url),
            known=None if root is None else lambda name: defaults_at(root, name, capabilities.base_url),
            archive=archive,
            blocks=blocks,
        ),
    )
