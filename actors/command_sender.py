"""Send commands to one agent wherever it runs, and send them again if their host dies.

Used by `AgentRef` and `AgentSystem`, and by nothing else: programs call the methods of those. A command is sent again
with the same id, which makes it idempotent, and only if it is safe to repeat.
"""

from collections.abc import AsyncIterator
from typing import Any

from everlog.actors.agent import commands
from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.ports.agent_constants import RESENDS_MAX
from everlog.actors.ports.ports import Ports
from everlog.actors.runtime import PreviewCallback, PriceLookup, Run, Runtime, no_prices
from everlog.events import HostLost


class CommandSender:
    """Commands to one agent."""

    def __init__(
        self,
        agent_id: str,
        runtime: Runtime,
        *,
        capabilities: SessionCapabilities | None,
        ports: Ports,
        on_commit: CommitListener | None,
        prices: PriceLookup = no_prices,
        by: str = "",
        first_id: str = "",
    ) -> None:
        """`on_commit`: called with the records of each commit that a `Run` receives. `prices`: of tokens. `by`: id of
        the key of the caller; see `Command.by`. `first_id`: id of the first command; empty: a new one.
        """
        self.agent_id = agent_id
        self.runtime = runtime
        self.capabilities = capabilities
        self.ports = ports
        self.on_commit = on_commit
        self.head = 0
        """Largest seq that was received."""
        self._prices = prices
        self._by = by
        self._first_id = first_id

    def new_id(self) -> str:
        """Return the id of a new command."""
        first, self._first_id = self._first_id, ""
        return first or self.ports.ids.new(self.ports.clock.now())

    def command(self, kind: type[Command], /, **arguments: Any) -> Command:
        """Make a command. `arguments`: its fields; a new id and the capabilities of this caller unless they say so."""
        if "id" not in arguments:
            arguments["id"] = self.new_id()
        return kind(**{"capabilities": self.capabilities, "by": self._by, **arguments})

    def run(self, command: Command, preview: PreviewCallback | None = None) -> Run:
        """Return the `Run` of a command, which is not sent yet."""
        return self._run(self._sent(command), preview, command.id)

    async def perform(self, kind: type[Command], /, **arguments: Any) -> Any:
        """Send a command with a new id, wait until it is done, and return its value.

        Raises what the command raises, and HostLost.
        """
        answer = self.run(self.command(kind, **arguments))
        await answer
        return answer.value

    def watch(self, since: int) -> Run:
        """Return a `Run` without an end: the records after seq `since` that no command asked for."""
        return self._run(self._watched(since), None, "")

    def _run(self, received: AsyncIterator[StreamItem], preview: PreviewCallback | None, event_id: str) -> Run:
        return Run(received, self._committed, preview, event_id, agent_id=self.agent_id, prices=self._prices)

    def _committed(self, records: Any) -> None:
        self.head = max(self.head, *(record.seq for record in records)) if records else self.head
        if self.on_commit is not None:
            self.on_commit(records)

    async def _watched(self, since: int) -> AsyncIterator[StreamItem]:
        """Yield unclaimed records for ever, renewing the watch each time that it expires."""
        while True:
            command = self.command(commands.WatchAgent)
            async for received in self.runtime.perform(self.agent_id, command, since):
                if isinstance(received, CommandResult):
                    since = received.value  # the next watch starts here, so that no record is missed between the two
                else:
                    yield received

    async def _sent(self, command: Command) -> AsyncIterator[StreamItem]:
        """Yield the stream of a command. After the death of its host, send the command again with the same id
        (idempotent).
        """
        seen, sent = 0, 0
        preview_item: Preview | None = None
        while True:
            sent += 1
            try:
                async for received in self.runtime.perform(self.agent_id, command, seen):
                    if isinstance(received, Preview):
                        preview_item = received
                    elif not isinstance(received, CommandResult):
                        received = [record for record in received if record.seq > seen]
                        seen = max((record.seq for record in received), default=seen)
                    yield received
                return
            except HostLost:
                # Only commands that are safe to repeat are sent again, and not for ever: a command may kill its hosts.
                if not command.repeats or sent > RESENDS_MAX:
                    raise
                if preview_item is not None:  # the next host calls the model again, so the preview begins again
                    yield Preview(preview_item.turn, preview_item.step, "restart")
                    preview_item = None
