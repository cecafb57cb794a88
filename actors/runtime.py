"""Where agents run, as callers see it: the protocol of a runtime, and the answer to a command."""

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, Literal, Protocol

from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.events import MessageSent, Record, UsageError


class Runtime(Protocol):
    """Where agents run."""

    @property
    def blocks(self) -> BlockClient:
        """The shared blocks of the store, as whoever owns them here gives them."""
        ...

    def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Have the agent's host carry out a command; it goes on when nobody listens any more.

        `seen`: the last seq that was heard of this command, when it is sent again. Raises EverlogError; HostLost when
        the host is gone and nobody knows how far it came.
        """
        ...

    def check_capabilities(self, capabilities: SessionCapabilities | None) -> None:
        """Raises BadInput for functions that cannot be had where agents run."""
        ...

    def perform_many(self, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
        """Have many commands carried out at once; what became of each, as it does, many together. Raises ClusterError.

        The number of an order is its place in `orders`. An outcome may be HostLost: nobody knows how far it came.
        """
        ...

    async def unload(self, agent_id: str) -> bool:
        """Unload an agent, so that another process can open it. Return False if it is at work."""
        ...

    async def close(self) -> None:
        """Stop talking to hosts; those in this process let go of their agents."""
        ...


Placement = Literal["dedicated", "shared"]
"""Where an agent runs: with a host and a partition of its own, or in a shard among others."""

PreviewCallback = Callable[[Preview], None]
"""Called with each part of a reply while it is generated."""


class Run:
    """What follows from a command: iterate over it as it happens, or await it for all of it at once.

    `async for record in answer` gives each Record as it becomes durable; `await answer` the list of them. Nothing is
    sent before either is done. When it has ended, `value` is what the command gives back.
    """

    def __init__(
        self,
        received: AsyncIterator[StreamItem],
        on_commit: CommitListener | None,
        preview: PreviewCallback | None = None,
        event_id: str = "",
    ) -> None:
        self.event_id = event_id
        """The id of the command, and of the first event that it leaves."""
        self._received = received
        self._on_commit = on_commit
        self._preview = preview
        self._used = False
        self.value: Any = None
        self.records: list[Record] = []
        """Those that were received so far."""

    @property
    def text(self) -> str:
        """The messages that the agent has sent so far, one a line."""
        return "\n".join(record.text or "" for record in self.records if record.type == MessageSent.kind)

    async def __aiter__(self) -> AsyncIterator[Record]:
        if self._used:
            raise UsageError("An answer is heard once; send again for another.")
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
