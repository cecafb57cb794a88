"""A handle on one agent: send it messages, change its memory and its settings. Part of the public API: made by
`AgentSystem`, wrapped by `sync_api`, used by the commands and by users' programs.
"""

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
"""Function that searches memories: (query, page, results per page, filters) to a page of results."""


class ArchivalMemory:
    """Archival memory of one agent: insert, update, delete and search texts. No method runs a turn or calls a model."""

    def __init__(self, agent: "AgentRef", search: MemorySearch) -> None:
        self._agent = agent
        self._search = search

    async def insert(self, text: str, tags: Sequence[str] = ()) -> str:
        """Insert a text, and return the id of the memory that holds it.

        `text`: 1 to 1,000,000 characters, without the white space around it. `tags`: up to 32, each of 1 to 100
        characters. If a memory holds exactly this text already, nothing is inserted and the id of that memory is
        returned. Raises BadInput for an unusable text or tag.
        """
        return str(await self._agent.perform(commands.InsertMemory, text=text, tags=tags))

    async def insert_many(self, texts: Sequence[str], tags: Sequence[str] = ()) -> Sequence[str]:
        """Insert many texts in one commit, all or none. Return the ids of their memories in the order of `texts`.

        `tags` are the tags of each text. Limits and errors are those of `insert`.
        """
        ids: Sequence[str] = await self._agent.perform(commands.InsertMemories, texts=texts, tags=tags)
        return ids

    async def update(self, memory_id: str, text: str, tags: Sequence[str] | None = None) -> None:
        """Replace the text of a memory, and its tags unless `tags` is None.

        Limits are those of `insert`. Raises BadInput for an unknown id, and for an unusable text or tag.
        """
        await self._agent.perform(commands.UpdateMemory, memory_id=memory_id, text=text, tags=tags)

    async def delete(self, memory_id: str) -> None:
        """Delete a memory. Its text stays in the log until it is erased. Raises BadInput for an unknown id."""
        await self._agent.perform(commands.DeleteMemory, memory_id=memory_id)

    async def search(self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search memories and documents by words and by meaning. Return one page of results, best match first.

        `page`: 0 or more. `count`: results per page, 1 or more. Raises FunctionError for an unusable filter.
        """
        return await self._search(query, page, count, filters)


class AgentRef:
    """Handle on one agent, which may be unloaded between calls: all of its state is in its log."""

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
        """Create the handle; `AgentSystem.agent` does this. `search` finds memories of the agent. `check_deletion`
        raises BadInput if the agent has forks that are not deleted.
        """
        self.agent_id = agent_id
        self.opened: OpenReport
        """Report of the last opening or configuration."""
        self._runtime = runtime
        self._capabilities = capabilities
        self._clock, self._ids = ports.clock, ports.ids
        self._on_commit = on_commit
        self._check_deletion = check_deletion
        self.archive = ArchivalMemory(self, search)
        """The agent's archival memory."""

    def notify(self, on_commit: CommitListener) -> None:
        """Call `on_commit` with the records of each commit that a `Run` of this handle receives from now on.

        It replaces the callback that was set before.
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
        """Send a user's message, or another input event. Return a `Run` of the records that follow.

        - `message`: text of a user, or an input event such as `UserLogin()`.
        - `speaker`: name of the user, if the agent has several users.
        - `event_id`: UUIDv7 of the input, which makes the call idempotent: an input of that id is appended once. None:
          a new id.
        - `preview`: called with parts of a reply while the model generates it, if the agent is configured to stream.
          Previews are not durable; the records hold the final text.

        Nothing is sent before the `Run` is awaited or iterated over. The `Run` raises ModelError if the model failed
        (the message is stored), Busy if a queue is full (nothing is stored), UsageError, StoreError, HostLost.
        """
        event = UserMessage(text=message, name=speaker) if isinstance(message, str) else message
        say = commands.SendInput(
            id=event_id or self._new_id(), capabilities=self._capabilities, event=event, preview=preview is not None
        )
        return self._do(say, preview)

    def heartbeat(self, text: str = "", *, preview: PreviewCallback | None = None) -> Run:
        """Run the agent once without a user's message. Return a `Run`, as `send` does.

        `text`: text that goes to the model with the heartbeat.
        """
        return self.send(Heartbeat(text=text, reason="manual"), preview=preview)

    def resume(self, *, preview: PreviewCallback | None = None) -> Run:
        """Finish the turns that are not finished. Return a `Run`, as `send` does."""
        return self._do(self._command(commands.ResumeTurns, preview=preview is not None), preview)

    async def cancel(self, *, every: bool = False) -> Sequence[int]:
        """Cancel the running turn, or with `every` all unfinished turns. Return the numbers of the cancelled turns.

        The list is empty if no turn is open. Events that a turn has committed stay; the rest of the turn is dropped.
        """
        ended: Sequence[int] = await self.perform(commands.CancelTurn, capabilities=None, every=every)
        return ended

    def subscribe(self) -> Run:
        """Subscribe to the records that no call of this process asked for, such as timed heartbeats and their turns.

        Return a `Run` that never ends. It starts after the last record that the agent had when it was opened here, and
        keeps the agent in memory. Raises HostLost when the agent's process dies: subscribe again.
        """
        return Run(self._watched(), self._on_commit)

    def warn(self, *, preview: PreviewCallback | None = None) -> Run:
        """Send the agent the warning of memory pressure now. Return a `Run`, as `send` does."""
        return self.send(SystemAlert(text=PRESSURE_WARNING, source="memory_pressure"), preview=preview)

    def retry(self, *, preview: PreviewCallback | None = None) -> Run:
        """Exclude the newest message of a user and all that followed from the context, and send the message again.

        Return a `Run`, as `send` does. Raises BadInput if the context shows no message of a user.
        """
        return self._do(self._command(commands.RetryTurn, preview=preview is not None), preview)

    async def undo(self, turns: int = 1) -> Sequence[int]:
        """Exclude the newest turns from the context. Return their numbers, in rising order.

        `turns`: 1 or more; all turns if the context shows fewer. Nothing is deleted, and effects of the turns stay.
        Raises BadInput if the context shows no turn.
        """
        hidden: Sequence[int] = await self.perform(commands.HideTurns, turns=turns)
        return hidden

    async def rethink(self, text: str) -> None:
        """Replace the monologue of the newest reply in the context. Raises BadInput for blank text, or without a
        reply.
        """
        await self.perform(commands.RethinkReply, text=text)

    async def summarize(self) -> bool:
        """Summarize the oldest part of the context now. Return False if there is nothing to summarize.

        Raises ModelError, and HostLost instead of sending the command again.
        """
        return bool(await self.perform(commands.SummarizeContext))

    async def expand(self) -> bool:
        """Undo the newest summary, and show its messages in the context again. Return False if there is none.

        Raises HostLost instead of sending the command again.
        """
        return bool(await self.perform(commands.ExpandSummary))

    async def configure(self, settings: Settings) -> OpenReport:
        """Change the agent's settings, and return its new state. Fields that are None stay.

        Raises BadInput for unusable settings.
        """
        self.opened = await self.perform(commands.ConfigureAgent, settings=settings)
        return self.opened

    async def import_messages(self, messages: Sequence[ImportedMessage]) -> ImportReport:
        """Import a past conversation in one commit, without running a turn. Return what was imported.

        `messages`: `UserMessage` and `MessageSent` events with `imported=True`, in order, and their times in
        microseconds UTC. Raises BadInput, and HostLost instead of sending the command again.
        """
        imported: ImportReport = await self.perform(commands.ImportConversation, said=messages)
        return imported

    async def set_timer(self, name: str, text: str = "", *, due_at: int | None = None, every_s: int = 0) -> str:
        """Set a timer that sends the agent one heartbeat, or one every `every_s` seconds. Return the timer's name.

        - `name`: name of the timer; empty: a free name is chosen. A timer of the same name is replaced.
        - `text`: text that goes to the model with each heartbeat.
        - `due_at`: time of the first heartbeat, microseconds UTC, up to the year 9999; None: in `every_s` seconds.
        - `every_s`: whole seconds between heartbeats, 0 (one heartbeat only) to about a hundred years.

        Raises BadInput.
        """
        if not isinstance(every_s, int) or (due_at is None and not every_s):
            raise BadInput(
                "A timer needs `due_at` (microseconds UTC), `every_s` (whole seconds between heartbeats), or both. No "
                "timer was set."
            )
        at = self._clock.now() + every_s * MICROSECONDS if due_at is None else due_at
        return str(await self.perform(commands.SetTimer, timer=name, text=text, due_at=at, every_s=every_s))

    async def cancel_timer(self, name: str) -> bool:
        """Cancel a timer. Return False if there is no timer of that name."""
        return bool(await self.perform(commands.CancelTimer, timer=name))

    async def add_block(
        self, label: str, value: str = "", *, limit: int = BLOCK_CHARS, description: str = "", read_only: bool = False
    ) -> None:
        """Add a memory block to core memory.

        `label`: its name, of letters, digits, `-` and `_`. `limit`: its largest size, 1 to 100,000,000 characters.
        `description`: its purpose for the model, one line of up to 1,000 characters. `read_only`: the agent sees the
        block and cannot edit it. Raises BadInput if the label exists, the value is longer than `limit`, or a value is
        unusable.
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
        """Change a memory block, read-only ones included. Return False if nothing changed.

        An argument that is None stays. Limits are those of `add_block`. Raises BadInput if there is no such block, if
        the block is a shared one, or if the value is longer than the limit.
        """
        changed = await self.perform(
            commands.ChangeBlock, label=label, value=value, limit=limit, description=description, read_only=read_only
        )
        return bool(changed)

    async def remove_block(self, label: str) -> None:
        """Remove a memory block from core memory. Its edits stay in the log. Raises BadInput for an unknown label."""
        await self.perform(commands.RemoveBlock, label=label)

    async def attach_source(self, source: str) -> bool:
        """Let the agent search the documents of a source. Return False if the agent could search them before.

        The source may be loaded later. Raises BadInput for an unusable name.
        """
        return bool(await self.perform(commands.AttachSource, source=source))

    async def detach_source(self, source: str) -> bool:
        """Stop the agent from searching the documents of a source. Return False if it could not search them before."""
        return bool(await self.perform(commands.DetachSource, source=source))

    async def attach_block(self, block: str, label: str = "") -> bool:
        """Put a shared block into core memory, as the memory block `label` (empty: the block's own name).

        Return False if it is there already. Raises BadInput if there is no such shared block, or if the label is taken.
        """
        return bool(await self.perform(commands.FollowBlock, block=block, label=label))

    async def detach_block(self, block: str) -> bool:
        """Remove a shared block from core memory. Return False if it is not there. Other agents keep the block."""
        return bool(await self.perform(commands.UnfollowBlock, block=block))

    async def move(self, placement: Placement) -> None:
        """Move the agent to a shard of many agents (`shared`), or to a host and a log of its own (`dedicated`).

        Raises Busy while the agent is at work, BadInput if the store has no shards.
        """
        await self.perform(commands.MoveAgent, shared=placement == "shared")

    async def delete(self) -> None:
        """Delete the agent: its name can be created again, its records stay until they are erased.

        Raises BadInput while the agent has forks that are not deleted; `AgentSystem.delete` can delete them together.
        HostLost is raised instead of sending the command again.
        """
        if self._check_deletion is not None:
            self._check_deletion(self.agent_id)
        await self.perform(commands.DeleteAgent)

    async def unload(self) -> bool:
        """Unload the agent now, so that another process can open it. Return False if the agent is at work."""
        return await self._runtime.unload(self.agent_id)

    async def open(
        self, settings: Settings, *, create: bool, take_over: bool, command: str, keep_configuration: bool = False
    ) -> None:
        """Open the agent, and set `opened`. `AgentSystem.agent` calls this; its arguments are documented there."""
        # None keeps the capabilities that other callers gave the agent: this caller runs no turn and needs none.
        capabilities = self._capabilities if keep_configuration else self._capabilities or SessionCapabilities()
        self.opened = await self.perform(
            commands.OpenAgent, capabilities=capabilities, settings=settings, create=create, take_over=take_over,
            keep_configuration=keep_configuration, command=command,
        )  # fmt: skip

    def _new_id(self) -> str:
        return self._ids.new(self._clock.now())

    def _do(self, command: Command, preview: PreviewCallback | None = None) -> Run:
        return Run(self._sent(command), self._on_commit, preview, command.id)

    async def _watched(self) -> AsyncIterator[StreamItem]:
        """Yield unclaimed records for ever, renewing the watch each time that it expires."""
        since = self.opened.head  # a timer may have fired between the opening and the first watch
        while True:
            command = self._command(commands.WatchAgent)
            async for received in self._runtime.perform(self.agent_id, command, since):
                if isinstance(received, CommandResult):
                    since = received.value  # the next watch starts here, so that no record is missed between the two
                else:
                    yield received

    async def perform(self, command: type[Command], /, **arguments: Any) -> Any:
        """Send a command of `everlog.actors.agent.commands` with a new id, wait until it is done, and return its value.

        `arguments` are the other fields of the command. Raises what the command raises, and HostLost.
        """
        answer = self._do(self._command(command, **arguments))
        await answer
        return answer.value

    def _command(self, command: type[Command], /, **arguments: Any) -> Command:
        return command(id=self._new_id(), **{"capabilities": self._capabilities, **arguments})

    async def _sent(self, command: Command) -> AsyncIterator[StreamItem]:
        """Yield the stream of a command. After the death of its host, send the command again with the same id
        (idempotent).
        """
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
                # Only commands that are safe to repeat are sent again, and not for ever: a command may kill its hosts.
                if not command.repeats or sent > RESENDS_MAX:
                    raise
                if preview_item is not None:  # the next host calls the model again, so the preview begins again
                    yield Preview(preview_item.turn, preview_item.step, "restart")
                    preview_item = None
