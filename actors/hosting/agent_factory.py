"""Build the parts of a host: its link to the component that starts it, and a system with its callers' capabilities.

Used by `Host`, `Shard` and the runtimes that start hosts; `actors.rerun_runtime` takes its models from here too. A
system made here never opens a connection to a model endpoint: every model request goes through `ask`, the gateway.
"""

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
from everlog.actors.postbox.postbox import LetterSender
from everlog.events import PartitionBusy
from everlog.store import FileStore, Store

GatewayCall = Callable[..., Awaitable[ModelResponse]]
"""Sends a model request: the model's name, its base URL (or empty), the bytes, the agent, the agent's use of today.

`on_delta` is called with the chunks of a streamed reply. A request without bytes is not sent: it checks that the model
can be asked. A gateway's `ask`.
"""


TimerCallback = Callable[[str, Sequence[DueTimer]], None]
"""Called with an agent's name and all of its timers whenever they change."""


class HostLink(msgspec.Struct, frozen=True, kw_only=True):
    """Connection of a host, or a shard, to the component that started it."""

    may_fence: Callable[[PartitionBusy], bool] = lambda _: False
    """Returns True if the owner of the log is an earlier host, which was declared dead: it is fenced if it still holds
    the log.
    """
    notify_timers: TimerCallback | None = None
    """Called with an agent's name and all of its timers whenever they change."""
    send_letters: LetterSender | None = None
    """Delivers messages of its agents to others. None: they stay in the log."""
    on_idle: Callable[[], Awaitable[None]] | None = None
    """Called when all agents of the host have been idle for a while; None: the host unloads them itself."""
    on_rest: Callable[[], None] = lambda: None
    """Called when a shard is at rest after work, to give back memory outside of it that only work needs."""
    on_fenced: Callable[[], None] | None = None
    """Called when another process has taken over a shard."""


NO_LINK = HostLink()


class GatewayModel:
    """Model behind a gateway. The gateway holds the connections."""

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

    async def check(self) -> None:
        """Raise ModelError if the gateway cannot ask the model; see `CheckedModel`."""
        await self._ask(self.name, self._base_url, b"", self._agent_id, NOTHING)

    async def close(self) -> None:
        """Do nothing: the gateway closes its connections."""


def models_through(ask: GatewayCall, agent_id: str, root: Path | None, base_url: str) -> ModelLookup:
    """Return a lookup of one agent's models, which are called through `ask` at their endpoints.

    `root`: store whose descriptions of models name the endpoints; None: all are at `base_url`.
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
    """Return the agents of a store with the functions of `capabilities`, and models that are called through `ask`.

    `enter`: factory of their activations; `archive`: index that they search; `blocks`: client of shared blocks.
    """
    root = store.root if isinstance(store, FileStore) else None

    return LocalSystem(
        store,
        tools=capabilities.tools,
        grants=capabilities.grants,
        ports=ports,
        enter=enter,
        has_shards=True,
        services=AgentServices(
            models_of=lambda agent_id: models_through(ask, agent_id, root, capabilities.base_url),
            known=None if root is None else lambda name: defaults_at(root, name, capabilities.base_url),
            archive=archive,
            blocks=blocks,
        ),
    )
