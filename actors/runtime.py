"""The interface between callers and the place where agents run: the protocol `Runtime`, and the results of a command.

Implemented by `LocalRuntime` and `RayRuntime`; used by `AgentSystem` and `AgentRef`. Callers rely on both behaving the
same.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from typing import Any, Literal, Protocol

from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.answer_text import AnswerText
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.models.prices import PriceList
from everlog.actors.reply import Reply
from everlog.actors.short_tracebacks import shorten
from everlog.events import BadInput, EverlogError, Record, UsageError


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


PriceLookup = Callable[[], Awaitable[PriceList | BadInput]]
"""Returns the prices of tokens, or the error for which they are not known."""


async def no_prices() -> BadInput:
    """Return an error: there is no store to look for prices in."""
    return BadInput("The prices of tokens are not known here: this handle belongs to no store.")


class Run:
    """Records that follow from one command: iterate over them, or await all of them, once.

    `async for record in run` yields each Record as it becomes durable, `await run` returns the list of all records, and
    `await run.reply()` returns a `Reply`. The command is sent when this begins. After its end, `value` is the value of
    the command.
    """

    def __init__(
        self,
        received: AsyncIterator[StreamItem],
        on_commit: CommitListener | None,
        preview: PreviewCallback | None = None,
        event_id: str = "",
        *,
        agent_id: str = "",
        prices: PriceLookup = no_prices,
    ) -> None:
        """Wrap the stream of a command to the agent `agent_id`."""
        self.agent_id = agent_id
        """Name of the agent."""
        self.event_id = event_id
        """Id of the command. The first event that the command appends has the same id."""
        self._received = received
        self._on_commit = on_commit
        self._preview = preview
        self._prices = prices
        self._used = False
        self._ended = False
        self.value: Any = None
        """Value of the command after its end; for a message, its record."""
        self.records: list[Record] = []
        """Records received so far."""

    async def reply(self) -> Reply:
        """Wait for the end, and return the `Reply`. After a whole iteration it returns at once."""
        if not self._ended:
            await self
        return Reply(self.agent_id, self.event_id, self.records, self.value, await self._prices())

    async def text_parts(self) -> AsyncIterator[str]:
        """Yield the answer in parts, while the model writes if the command asked for previews.

        Joined, the parts are the text of the reply, unless a reply was withdrawn and written again.
        """
        answer = AnswerText()
        async for received in self.items():
            if isinstance(received, Preview):
                parts = [answer.preview(received)]
            else:
                parts = [answer.record(record) for record in received]
            for part in parts:
                if part:
                    yield part

    async def __aiter__(self) -> AsyncIterator[Record]:
        async for received in self.items():
            if not isinstance(received, Preview):
                for record in received:
                    yield record

    async def items(self) -> AsyncIterator[Sequence[Record] | Preview]:
        """Yield each commit as it becomes durable, and the previews in between, after the callbacks have had them."""
        if self._used:
            raise UsageError("This Run was used already: it can be awaited or iterated over once. Send again for more.")
        self._used = True
        try:
            async for received in self._received:
                if isinstance(received, CommandResult):
                    self.value = received.value
                    continue
                if isinstance(received, Preview):
                    if self._preview is not None:
                        self._preview(received)
                else:
                    self.records.extend(received)
                    if self._on_commit is not None:
                        self._on_commit(received)
                yield received
            self._ended = True
        except EverlogError as error:
            shorten(error)
            raise

    def __await__(self) -> Generator[Any, None, list[Record]]:
        return self._all().__await__()

    async def _all(self) -> list[Record]:
        return [record async for record in self]

    def __repr__(self) -> str:
        return f"<Run of {self.agent_id!r}, {len(self.records)} records so far>"
