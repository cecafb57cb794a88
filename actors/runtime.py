"""The interface between callers and the place where agents run: the protocol `Runtime`, and the results of a command.

Implemented by `LocalRuntime` and `RayRuntime`; used by `AgentSystem` and `AgentRef`. Callers rely on both behaving the
same.
"""

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, Literal, Protocol

from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.events import MessageSent, Record, UsageError


class Runtime(Protocol):
    """Runs the agents of a store, in this process or in a cluster."""

    @property
    def blocks(self) -> BlockClient:
        """Client that edits the shared blocks of the store."""
        ...

    def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Have the agent's host carry out a command. Yield what follows.

        The command continues if the caller stops iterating. `seen`: last seq that the caller received from this
        command, if the command is sent again. Raises EverlogError; HostLost if the host has died and the outcome is
        unknown.
        """
        ...

    def check_capabilities(self, capabilities: SessionCapabilities | None) -> None:
        """Raise BadInput for functions that cannot be used where agents run."""
        ...

    def perform_many(self, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
        """Carry out many commands at once. Yield their outcomes in batches as they complete. Raises ClusterError.

        The number of a command is its index in `orders`. The error of an outcome may be HostLost: the outcome is
        unknown.
        """
        ...

    async def unload(self, agent_id: str) -> bool:
        """Unload an agent, so that another process can open it. Return False if it is at work."""
        ...

    async def close(self) -> None:
        """Disconnect from the hosts. Hosts in this process unload their agents."""
        ...


Placement = Literal["dedicated", "shared"]
"""Place of an agent: `dedicated` (a host and a partition of its own) or `shared` (a shard with other agents)."""

PreviewCallback = Callable[[Preview], None]
"""Called with each part of a reply while it is generated."""


class Run:
    """Results of one command: iterate over them as they arrive, or await all of them.

    `async for record in run` yields each Record as it becomes durable; `await run` returns the list of all records. The
    command is sent when the iteration or the await begins. A Run can be used once. After its end, `value` is the value
    of the command.
    """

    def __init__(
        self,
        received: AsyncIterator[StreamItem],
        on_commit: CommitListener | None,
        preview: PreviewCallback | None = None,
        event_id: str = "",
    ) -> None:
        self.event_id = event_id
        """Id of the command. The first event that the command appends has the same id."""
        self._received = received
        self._on_commit = on_commit
        self._preview = preview
        self._used = False
        self.value: Any = None
        self.records: list[Record] = []
        """Records received so far."""

    @property
    def text(self) -> str:
        """Messages that the agent has sent so far, one per line."""
        return "\n".join(record.text or "" for record in self.records if record.type == MessageSent.kind)

    async def __aiter__(self) -> AsyncIterator[Record]:
        if self._used:
            raise UsageError("This Run was used already: it can be awaited or iterated over once. Send again for more.")
        self._used = True
        async for received in self._received:
            if isinstance(received, CommandResult):
                self.value = received.value
                continue
            if isinstance(received, Preview):
                if self._preview is not None:
                    self._preview(received)
                continue
            if self._on_commit is not None:
                self._on_commit(received)
            for record in received:
                self.records.append(record)
                yield record

    def __await__(self) -> Generator[Any, None, list[Record]]:
        return self._all().__await__()

    async def _all(self) -> list[Record]:
        return [record async for record in self]
