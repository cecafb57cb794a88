"""A handle on an agent, wherever it runs: send it messages, change its memory and its settings."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from everlog.actors.agent import commands
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import Command, CommandResult, OpenReport, SessionCapabilities, StreamItem
from everlog.actors.agent.conversation_import import ImportedMessage, ImportReport
from everlog.actors.agent.decide import PRESSURE_WARNING
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.ports.agent_constants import BLOCK_CHARS, PAGE_RESULTS, RESENDS_MAX
from everlog.actors.ports.effects import ANYTHING, Filters, Page
from everlog.actors.ports.ports import Ports
from everlog.actors.runtime import Placement, PreviewCallback, Run, Runtime
from everlog.events import (
    BadInput,
    Event,
    Heartbeat,
    HostLost,
    SystemAlert,
    UserMessage,
)
from everlog.events.times import MICROSECONDS

MemorySearch = Callable[[str, int, int, Filters], Awaitable[Page]]
"""Finds memories: (query, page, results on a page, filters)."""


class ArchivalMemory:
    """The archival memory of one agent: insert, update, delete, search. No call runs a turn or asks a model."""

    def __init__(self, agent: "AgentRef", search: MemorySearch) -> None:
        self._agent = agent
        self._search = search

    async def insert(self, text: str, tags: Sequence[str] = ()) -> str:
        """Insert a text, as the agent does itself. Return the id of the memory.

        A text that is there already is not inserted again: the id is that of the older memory. Raises BadInput for a
        text that is empty or too long, and for unusable tags.
        """
        return str(await self._agent.perform(commands.InsertMemory, text=text, tags=tags))

    async def insert_many(self, texts: Sequence[str], tags: Sequence[str] = ()) -> Sequence[str]:
        """Insert many texts in one commit, all or none. Return their ids, as `insert` does for one."""
        ids: Sequence[str] = await self._agent.perform(commands.InsertMemories, texts=texts, tags=tags)
        return ids

    async def update(self, memory_id: str, text: str, tags: Sequence[str] | None = None) -> None:
        """Replace the text of a memory, and its tags unless `tags` is None. Raises BadInput for an unknown id."""
        await self._agent.perform(commands.UpdateMemory, memory_id=memory_id, text=text, tags=tags)

    async def delete(self, memory_id: str) -> None:
        """Delete a memory; the log still has its text. Raises BadInput for an unknown id."""
        await self._agent.perform(commands.DeleteMemory, memory_id=memory_id)

    async def search(self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search by words and by meaning. Return one page of `count` results, best first; pages begin at 0."""
        return await self._search(query, page, count, filters)


class AgentRef:
    """An agent to talk to. It may run here or far away, and be unloaded in between: it is its log."""

    def __init__(
        self,
        agent_id: str,
        runtime: Runtime,
        *,
        capabilities: SessionCapabilities | None,
        ports: Ports,
        on_commit: CommitListener | None,
        search: MemorySearch,
        check_deletion: Callable[[str], None] | None = None,
    ) -> None:
        """`search` finds memories of the agent. `check_deletion` raises BadInput if the agent has living forks."""
        self.agent_id = agent_id
        self.opened: OpenReport
        """How it was when it was opened, or set up last."""
        self._runtime = runtime
        self._capabilities = capabilities
        self._clock, self._ids = ports.clock, ports.ids
        self._on_commit = on_commit
        self._check_deletion = check_deletion
        self.archive = ArchivalMemory(self, search)
        """The agent's archival memory."""

    def notify(self, on_commit: CommitListener) -> None:
        """Call `on_commit` with every commit that an answer brings from now on, and no longer what was called
        before.
        """
        self._on_commit = on_commit

    def send(
        self,
        message: str | Event,
        *,
        speaker: str = "",
        event_id: str | None = None,
        preview: PreviewCallback | None = None,
    ) -> Run:
        """Send a user's message, or another input event. Return the records that follow.

        `speaker` names one of several users. `event_id`, a UUIDv7, makes the call idempotent: an input of that id is
        appended once. `preview` is called with parts of a reply while it is generated, if the agent is configured to
        stream; the records hold the final text. Raises ModelError if the model failed (the message is stored),
        UsageError, StoreError, HostLost.
        """
        event = UserMessage(text=message, name=speaker) if isinstance(message, str) else message
        say = commands.SendInput(
            id=event_id or self._new_id(), capabilities=self._capabilities, event=event, preview=preview is not None
        )
        return self._do(say, preview)

    def heartbeat(self, text: str = "", *, preview: PreviewCallback | None = None) -> Run:
        """Run the agent once without a user."""
        return self.send(Heartbeat(text=text, reason="manual"), preview=preview)

    def resume(self, *, preview: PreviewCallback | None = None) -> Run:
        """Finish the turns that are not finished."""
        return self._do(self._command(commands.ResumeTurns, preview=preview is not None), preview)

    async def cancel(self, *, every: bool = False) -> Sequence[int]:
        """End the turn that runs, at whatever it is doing, or `every` one that is not finished; their numbers.

        None where no turn is open. What a turn has committed stays, and nothing else of it is kept.
        """
        ended: Sequence[int] = await self.perform(commands.CancelTurn, capabilities=None, every=every)
        return ended

    def subscribe(self) -> Run:
        """Return the records that no call of this process asked for: timed heartbeats, and what they lead to.

        The iteration never ends, and keeps the agent in memory. Raises HostLost when the agent's process dies:
        subscribe again.
        """
        return Run(self._watched(), self._on_commit)

    def warn(self, *, preview: PreviewCallback | None = None) -> Run:
        """Warn the agent of memory pressure by hand."""
        return self.send(SystemAlert(text=PRESSURE_WARNING, source="memory_pressure"), preview=preview)

    def retry(self, *, preview: PreviewCallback | None = None) -> Run:
        """Hide the newest turn that a user opened, and what came after it, and say the same again."""
        return self._do(self._command(commands.RetryTurn, preview=preview is not None), preview)

    async def undo(self, turns: int = 1) -> Sequence[int]:
        """Exclude the newest turns, 1 or more, from the context. Return their numbers. Nothing is deleted."""
        hidden: Sequence[int] = await self.perform(commands.HideTurns, turns=turns)
        return hidden

    async def rethink(self, text: str) -> None:
        """Put other words in the place of the agent's last monologue."""
        await self.perform(commands.RethinkReply, text=text)

    async def summarize(self) -> bool:
        """Summarize the oldest part of the context now; False if there is nothing to summarize."""
        return bool(await self.perform(commands.SummarizeContext))

    async def expand(self) -> bool:
        """Take the newest summary back; False if there is none."""
        return bool(await self.perform(commands.ExpandSummary))

    async def configure(self, settings: Settings) -> OpenReport:
        """Set the agent up anew."""
        self.opened = await self.perform(commands.ConfigureAgent, settings=settings)
        return self.opened

    async def import_messages(self, messages: Sequence[ImportedMessage]) -> ImportReport:
        """Import a past conversation in one commit. Return what was imported. No turn runs."""
        imported: ImportReport = await self.perform(commands.ImportConversation, said=messages)
        return imported

    async def set_timer(self, name: str, text: str = "", *, due_at: int | None = None, every_s: int = 0) -> str:
        """Have heartbeats sent at `due_at` (microseconds UTC; None: after `every_s`), then every `every_s` seconds.

        Gives back the timer's name; an empty one is chosen. `every_s` 0 is once. One of the same name is replaced.
        """
        if not isinstance(every_s, int) or (due_at is None and not every_s):
            raise BadInput("A timer has a time (`due_at`), or a number of seconds between its heartbeats (`every_s`).")
        at = self._clock.now() + every_s * MICROSECONDS if due_at is None else due_at
        return str(await self.perform(commands.SetTimer, timer=name, text=text, due_at=at, every_s=every_s))

    async def cancel_timer(self, name: str) -> bool:
        """Send no more heartbeats for this timer; False if there is none of that name."""
        return bool(await self.perform(commands.CancelTimer, timer=name))

    async def add_block(
        self, label: str, value: str = "", *, limit: int = BLOCK_CHARS, description: str = "", read_only: bool = False
    ) -> None:
        """Give it another memory block, of up to `limit` characters. Raises BadInput where there is one of that label.

        `description`: what it is for, in words for the model. `read_only`: the agent sees it and cannot edit it.
        """
        await self.perform(
            commands.AddBlock, label=label, value=value, limit=limit, description=description, read_only=read_only
        )

    async def update_block(
        self,
        label: str,
        value: str | None = None,
        *,
        limit: int | None = None,
        description: str | None = None,
        read_only: bool | None = None,
    ) -> bool:
        """Change a memory block, one that is read-only too; what is None stays. False if nothing is otherwise.

        Raises BadInput where there is none, or where the value is longer than the limit.
        """
        changed = await self.perform(
            commands.ChangeBlock, label=label, value=value, limit=limit, description=description, read_only=read_only
        )
        return bool(changed)

    async def remove_block(self, label: str) -> None:
        """Take a memory block out of core memory; the log still has it. Raises BadInput where there is none."""
        await self.perform(commands.RemoveBlock, label=label)

    async def attach_source(self, source: str) -> bool:
        """Let the agent search the documents of a source. Return False if it could already.

        The source may be loaded later.
        """
        return bool(await self.perform(commands.AttachSource, source=source))

    async def detach_source(self, source: str) -> bool:
        """Stop the agent from searching the documents of a source. Return False if it could not before."""
        return bool(await self.perform(commands.DetachSource, source=source))

    async def attach_block(self, block: str, label: str = "") -> bool:
        """Put a shared block into core memory, as the memory block `label` (empty: the block's own name).

        Return False if it is there already. Raises BadInput where there is no such block, or the label is taken.
        """
        return bool(await self.perform(commands.FollowBlock, block=block, label=label))

    async def detach_block(self, block: str) -> bool:
        """Take a shared block out of core memory. Return False if it is not there. Other agents keep it."""
        return bool(await self.perform(commands.UnfollowBlock, block=block))

    async def move(self, placement: Placement) -> None:
        """Move the agent to a shard that many agents share, or to a host and a partition of its own.

        Raises Busy while it is at work, BadInput where the store has no shards.
        """
        await self.perform(commands.MoveAgent, shared=placement == "shared")

    async def delete(self) -> None:
        """End the agent: its name can be created again, its records stay until they are erased.

        Raises BadInput while it has forks that live; `AgentSystem.delete` can end them with it.
        """
        if self._check_deletion is not None:
            self._check_deletion(self.agent_id)
        await self.perform(commands.DeleteAgent)

    async def unload(self) -> bool:
        """Unload the agent now, so that another process can open it. Return False if it is at work."""
        return await self._runtime.unload(self.agent_id)

    async def open(
        self, settings: Settings, *, create: bool, take_over: bool, command: str, keep_configuration: bool = False
    ) -> None:
        """Bring it into memory; `System.agent` does so."""
        capabilities = (
            self._capabilities if keep_configuration else self._capabilities or SessionCapabilities()
        )  # what others lent it stays, as it is
        self.opened = await self.perform(
            commands.OpenAgent, capabilities=capabilities, settings=settings, create=create, take_over=take_over,
            keep_configuration=keep_configuration, command=command,
        )  # fmt: skip

    def _new_id(self) -> str:
        return self._ids.new(self._clock.now())

    def _do(self, command: Command, preview: PreviewCallback | None = None) -> Run:
        return Run(self._sent(command), self._on_commit, preview, command.id)

    async def _watched(self) -> AsyncIterator[StreamItem]:
        since = self.opened.head  # a timer may have gone off before anybody could watch
        while True:
            command = self._command(commands.WatchAgent)
            async for received in self._runtime.perform(self.agent_id, command, since):
                if isinstance(received, CommandResult):
                    since = received.value  # what happens until it is watched again is told then
                else:
                    yield received

    async def perform(self, command: type[Command], /, **arguments: Any) -> Any:
        """Send a command with a new id. Return its value."""
        answer = self._do(self._command(command, **arguments))
        await answer
        return answer.value

    def _command(self, command: type[Command], /, **arguments: Any) -> Command:
        return command(id=self._new_id(), **{"capabilities": self._capabilities, **arguments})

    async def _sent(self, command: Command) -> AsyncIterator[StreamItem]:
        """What a command leads to. Where its host died it is sent again: its id makes it count once."""
        seen, sent = 0, 0
        preview_item: Preview | None = None
        while True:
            sent += 1
            try:
                async for received in self._runtime.perform(self.agent_id, command, seen):
                    if isinstance(received, Preview):
                        preview_item = received
                    elif not isinstance(received, CommandResult):
                        received = [record for record in received if record.seq > seen]
                        seen = max((record.seq for record in received), default=seen)
                    yield received
                return
            except HostLost:
                if not command.repeats or sent > RESENDS_MAX:
                    raise
                if preview_item is not None:  # who takes the turn up asks the model anew
                    yield Preview(preview_item.turn, preview_item.step, "restart")
                    preview_item = None
