"""A handle on one agent: send it messages, change its memory and its settings. Part of the public API: made by
`AgentSystem`, wrapped by `sync_api`, used by the commands and by users' programs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from everlog.actors.agent import commands
from everlog.actors.agent.agent_setup import Settings, check_settings
from everlog.actors.agent.commands import OpenReport
from everlog.actors.agent.conversation_import import ImportedMessage, ImportReport
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent_memory import AgentSearches, ArchivalMemory
from everlog.actors.command_sender import CommandSender
from everlog.actors.derived_memories import AgentMemories
from everlog.actors.ports.agent_constants import BLOCK_CHARS, PAGE_RESULTS
from everlog.actors.ports.effects import ANYTHING, Filters, Page
from everlog.actors.ports.timer_schedules import first_heartbeat
from everlog.actors.prompt.message_format import PRESSURE_WARNING
from everlog.actors.reply import Reply
from everlog.actors.rules.approvals import Decision
from everlog.actors.runtime import Placement, PreviewCallback, Run
from everlog.actors.short_tracebacks import short_tracebacks
from everlog.events import BadInput, Event, Heartbeat, SystemAlert, UserMessage
from everlog.events.times import microseconds_of


class AgentNaming(NamedTuple):
    """Functions of the system that concern the names of a handle's agent."""

    rename: Callable[[str, str], Awaitable[None]]
    """Gives the agent another name."""
    check_deletion: Callable[[str], Awaitable[None]]
    """Raises BadInput if the agent has forks that are not deleted."""
    forget_names: Callable[[str], Awaitable[object]]
    """Forgets the names that were given to a deleted agent."""


@short_tracebacks
class AgentRef:
    """Handle on one agent, which may be unloaded between calls: all of its state is in its log.

    `ask` returns the answer to a message, and `send` the records that follow from it. `heartbeat`, `resume`, `retry`
    and `warn_memory_pressure` return a `Run`, as `send` does.
    """

    def __init__(
        self,
        sender: CommandSender,
        opened: OpenReport,
        *,
        searches: AgentSearches,
        where: str = "",
        naming: AgentNaming,
    ) -> None:
        """Create the handle; `AgentSystem.agent` does this. `where`: its store."""
        self.agent_id = sender.agent_id
        """Name of the agent in its log, which `rename` does not change."""
        self.opened = opened
        """Report of the last opening or configuration."""
        self._sender = sender
        self._where = where
        self._naming = naming
        self._searches = searches
        self.archive = ArchivalMemory(sender, searches.archive)
        """The agent's archival memory."""
        self.memories = AgentMemories(sender, searches.moments)
        """All that the agent remembers: messages, stored texts, and what was derived."""

    def __repr__(self) -> str:
        head = max(self._sender.head, self.opened.head)
        where = f" in {self._where}" if self._where else ""
        return f"<AgentRef {self.agent_id!r}{where}, model {self.opened.model}, seq {head}>"

    def notify(self, on_commit: CommitListener) -> None:
        """Call `on_commit` with the records of each commit that a `Run` of this handle receives from now on.

        It replaces the callback that was set before.
        """
        self._sender.on_commit = on_commit

    async def ask(
        self,
        message: str | Event,
        *,
        speaker: str = "",
        event_id: str | None = None,
        preview: PreviewCallback | None = None,
    ) -> Reply:
        """Send a user's message, or another input event, and return the `Reply`.

        Parameters and errors are those of `send`. With an `event_id` that was used before, nothing is sent again, and
        the reply is that of the recorded turn.
        """
        return await self.send(message, speaker=speaker, event_id=event_id, preview=preview).reply()

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
        (the message is stored), Busy if a queue is full (nothing is stored), UsageError, StoreError, HostLost. Raises
        BadInput for a message without words.
        """
        return self._sender.run(self._input(message, speaker, event_id, preview=preview is not None), preview)

    async def stream_text(
        self, message: str | Event, *, speaker: str = "", event_id: str | None = None
    ) -> AsyncIterator[str]:
        """Send a message, and yield the text of the answer in parts, while the model writes it.

        Parameters and errors are those of `send`. Joined, the parts are the text of the reply. They come in pieces if
        the agent is configured with `Settings(stream=True)`, and else as whole messages. A reply that the model begins
        again, after a failure, begins again on a new line.
        """
        run = self._sender.run(self._input(message, speaker, event_id, preview=True))
        async for part in run.text_parts():
            yield part

    def _input(self, message: str | Event, speaker: str, event_id: str | None, *, preview: bool) -> commands.Command:
        event, given = input_of(message, speaker), {"id": event_id} if event_id else {}
        return self._sender.command(commands.SendInput, event=event, preview=preview, **given)

    def heartbeat(self, text: str = "", *, preview: PreviewCallback | None = None) -> Run:
        """Run the agent once without a user's message. Return a `Run`, as `send` does.

        `text`: text that goes to the model with the heartbeat.
        """
        return self.send(Heartbeat(text=text, reason="manual"), preview=preview)

    def resume(self, *, preview: PreviewCallback | None = None) -> Run:
        """Finish the turns that are not finished. Return a `Run`, as `send` does."""
        return self._sender.run(self._sender.command(commands.ResumeTurns, preview=preview is not None), preview)

    def approve(
        self,
        request: int,
        *,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
        always: bool = False,
        event_id: str | None = None,
        preview: PreviewCallback | None = None,
    ) -> Run:
        """Approve a call that waits: it runs, and the model answers. Return a `Run`, as `send` does.

        `request`: seq of its `approval_requested`. `arguments`: those to run the call with; None: those that the model
        gave. `reason`: words for the model. `always`: calls of the function need no approval from now on. `event_id`:
        as for `send`. Raises AlreadyDecided if the call was decided or its time is over, BadInput for an unknown
        request and for arguments that the function does not take.
        """
        text = "" if arguments is None else msgspec.json.encode(arguments).decode()
        decision = Decision(request=request, approve=True, arguments=text, reason=reason, always=always)
        return self._decide(decision, event_id, preview)

    def refuse(
        self, request: int, reason: str = "", *, event_id: str | None = None, preview: PreviewCallback | None = None
    ) -> Run:
        """Refuse a call that waits: it never runs, and the model answers. Return a `Run`, and raise, as `approve`
        does.
        """
        return self._decide(Decision(request=request, approve=False, reason=reason), event_id, preview)

    def _decide(self, decision: Decision, event_id: str | None, preview: PreviewCallback | None) -> Run:
        given = {"id": event_id} if event_id else {}
        command = self._sender.command(commands.DecideApproval, decision=decision, preview=preview is not None, **given)
        return self._sender.run(command, preview)

    async def cancel(self, *, all_turns: bool = False, turn: int = 0) -> Sequence[int]:
        """Cancel the running turn, with `all_turns` all unfinished turns, or the turn with the number `turn`. Return
        the numbers of the cancelled turns.

        The list is empty if no turn is open. Events that a turn has committed stay; the rest of the turn is dropped.
        """
        ended: Sequence[int] = await self._sender.perform(
            commands.CancelTurn, capabilities=None, every=all_turns, turn=turn
        )
        return ended

    def subscribe(self, *, after: int | None = None) -> Run:
        """Subscribe to the records that no call of this process asked for, such as timed heartbeats and their turns.

        Return a `Run` that never ends and keeps the agent in memory, from the record after the seq `after`; None: after
        the head when the agent was opened here. Raises HostLost when the agent's process dies: subscribe again.
        """
        return self._sender.watch(self.opened.head if after is None else after)

    def warn_memory_pressure(self, *, preview: PreviewCallback | None = None) -> Run:
        """Send the agent the warning of memory pressure now. Return a `Run`, as `send` does."""
        return self.send(SystemAlert(text=PRESSURE_WARNING, source="memory_pressure"), preview=preview)

    def retry(self, *, preview: PreviewCallback | None = None) -> Run:
        """Exclude the newest message of a user and all that followed from the context, and send the message again.

        Return a `Run`, as `send` does. Raises BadInput if the context shows no message of a user.
        """
        return self._sender.run(self._sender.command(commands.RetryTurn, preview=preview is not None), preview)

    async def undo_turns(self, turns: int = 1) -> Sequence[int]:
        """Exclude the newest turns from the context. Return their numbers, in rising order.

        `turns`: 1 or more; all turns if the context shows fewer. Nothing is deleted, and effects of the turns stay.
        Raises BadInput if the context shows no turn.
        """
        hidden: Sequence[int] = await self._sender.perform(commands.HideTurns, turns=turns)
        return hidden

    async def edit_last_thought(self, text: str) -> None:
        """Replace the monologue of the newest reply in the context. Raises BadInput for blank text, or without a
        reply.
        """
        await self._sender.perform(commands.RethinkReply, text=text)

    async def summarize(self) -> bool:
        """Summarize the oldest part of the context now. Return False if there is nothing to summarize.

        Raises ModelError, and HostLost instead of sending the command again.
        """
        return bool(await self._sender.perform(commands.SummarizeContext))

    async def undo_summary(self) -> bool:
        """Undo the newest summary, and show its messages in the context again. Return False if there is none.

        Raises HostLost instead of sending the command again.
        """
        return bool(await self._sender.perform(commands.ExpandSummary))

    async def search(self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search messages, memories, documents and what was derived, by words and by meaning. Return one page of
        results, most relevant first.

        `page`: 0 or more. `count`: results per page, 1 or more. `filters.places` restricts the search. The `score` of a
        hit is its relevance, from 0 to 1; in one place alone it is the score of that place's own search. Of each place
        the best 50 are ranked together. Raises FunctionError for an unusable filter.
        """
        return await self._searches.everything(query, page, count, filters)

    async def configure(self, settings: Settings) -> OpenReport:
        """Change the agent's settings, and return its new state. Fields that are None stay.

        Raises BadInput for unusable settings.
        """
        check_settings(settings)
        self.opened = await self._sender.perform(commands.ConfigureAgent, settings=settings)
        return self.opened

    async def import_messages(self, messages: Sequence[ImportedMessage]) -> ImportReport:
        """Import a past conversation in one commit, without running a turn. Return what was imported.

        `messages`: in the order of the conversation. Raises BadInput, also for a time without a zone, and HostLost
        instead of sending the command again.
        """
        for number, message in enumerate(messages):
            if not isinstance(message, ImportedMessage):
                raise BadInput(
                    f"messages[{number}] is an ImportedMessage(event, said_at), not {message!r}. Nothing was imported."
                )
            microseconds_of(message.said_at, f"messages[{number}].said_at")
        imported: ImportReport = await self._sender.perform(commands.ImportConversation, said=messages)
        return imported

    async def set_timer(
        self, name: str, text: str = "", *, due_at: datetime | None = None, every: timedelta | None = None,
        cron: str = "", zone: str = "UTC",
    ) -> str:  # fmt: skip
        """Set a timer that sends the agent one heartbeat, or one after each `every`, or those of a schedule. Return the
        timer's name.

        - `name`: name of the timer; empty: a free name is chosen. A timer of the same name is replaced.
        - `text`: text that goes to the model with each heartbeat.
        - `due_at`: time of the first heartbeat, with a time zone, up to the year 9999; None: after `every`.
        - `every`: time between heartbeats, whole seconds up to about a hundred years; None: one heartbeat only.
        - `cron`, `zone`: schedule such as "0 7 * * 1-5", without `due_at` and `every`, and its time zone.

        Raises BadInput.
        """
        now = self._sender.ports.clock.now()
        at, every_s = first_heartbeat(now, due_at, every, cron, zone)
        return str(
            await self._sender.perform(
                commands.SetTimer, timer=name, text=text, due_at=at, every_s=every_s, cron=cron,
                zone=zone if cron else "",
            )
        )  # fmt: skip

    async def cancel_timer(self, name: str) -> bool:
        """Cancel a timer. Return False if there is no timer of that name."""
        return bool(await self._sender.perform(commands.CancelTimer, timer=name))

    async def add_block(
        self, label: str, value: str = "", *, limit: int = BLOCK_CHARS, description: str = "", read_only: bool = False
    ) -> None:
        """Add a memory block to core memory.

        `label`: its name, of letters, digits, `-` and `_`. `limit`: its largest size, 1 to 100,000,000 characters.
        `description`: its purpose for the model, one line of up to 1,000 characters. `read_only`: the agent sees the
        block and cannot edit it. Raises BadInput if the label exists, the value is longer than `limit`, or a value is
        unusable.
        """
        await self._sender.perform(
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
        base: int | None = None,
    ) -> bool:
        """Change a memory block, read-only ones included. Return False if nothing changed.

        An argument that is None stays. `base`: seq of the record that gave the block the value from which the edit was
        made; raises EditConflict if the block has changed since. Limits are those of `add_block`. Raises BadInput if
        there is no such block, if the block is a shared one, or if the value is longer than the limit.
        """
        changed = await self._sender.perform(
            commands.ChangeBlock, label=label, value=value, limit=limit, description=description, read_only=read_only,
            base=base,
        )  # fmt: skip
        return bool(changed)

    async def remove_block(self, label: str) -> None:
        """Remove a memory block from core memory. Its edits stay in the log. Raises BadInput for an unknown label."""
        await self._sender.perform(commands.RemoveBlock, label=label)

    async def attach_source(self, source: str) -> bool:
        """Let the agent search the documents of a source. Return False if the agent could search them before.

        The source may be loaded later. Raises BadInput for an unusable name.
        """
        return bool(await self._sender.perform(commands.AttachSource, source=source))

    async def detach_source(self, source: str) -> bool:
        """Stop the agent from searching the documents of a source. Return False if it could not search them before."""
        return bool(await self._sender.perform(commands.DetachSource, source=source))

    async def attach_block(self, block: str, label: str = "") -> bool:
        """Put a shared block into core memory, as the memory block `label` (empty: the block's own name).

        Return False if it is there already. Raises BadInput if there is no such shared block, or if the label is taken.
        """
        return bool(await self._sender.perform(commands.FollowBlock, block=block, label=label))

    async def detach_block(self, block: str) -> bool:
        """Remove a shared block from core memory. Return False if it is not there. Other agents keep the block."""
        return bool(await self._sender.perform(commands.UnfollowBlock, block=block))

    async def move(self, placement: Placement) -> None:
        """Move the agent to a shard of many agents (`shared`), or to a host and a log of its own (`dedicated`).

        Raises Busy while the agent is at work, BadInput if the store has no shards.
        """
        await self._sender.perform(commands.MoveAgent, shared=placement == "shared")

    async def delete(self) -> None:
        """Delete the agent: its name can be created again, its records stay until they are erased.

        Raises BadInput while the agent has forks that are not deleted; `AgentSystem.delete` can delete them together.
        HostLost is raised instead of sending the command again.
        """
        await self._naming.check_deletion(self.agent_id)
        await self._sender.perform(commands.DeleteAgent)
        await self._naming.forget_names(self.agent_id)

    async def rename(self, new_name: str) -> None:
        """Give the agent another name; see `AgentSystem.rename`. `agent_id` stays."""
        await self._naming.rename(self.agent_id, new_name)

    async def unload(self) -> bool:
        """Unload the agent now, so that another process can open it. Return False if the agent is at work."""
        return await self._sender.runtime.unload(self.agent_id)


def input_of(message: str | Event, speaker: str = "") -> Event:
    """Return the input event of a message. Raises BadInput for a message without words."""
    event = UserMessage(text=message, name=speaker) if isinstance(message, str) else message
    if isinstance(event, UserMessage) and isinstance(event.text, str) and not event.text.strip():
        raise BadInput("The message has no words: give at least one. Nothing was sent.")
    return event
