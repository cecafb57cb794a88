"""Carry out the commands that run no turn, on an open agent.

Used by `Host`. The first event of an edit has the id of its command: by that id a repeated command finds its event and
changes nothing.
"""

from typing import Any

from everlog.actors.agent import commands
from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import Command
from everlog.actors.deriving import memory_commands
from everlog.actors.hosting import edit_blocks
from everlog.actors.hosting.edit_memories import archive
from everlog.actors.memory.block_sync import follow, unfollow
from everlog.actors.ports.agent_constants import TIMER_AT_MAX, TIMER_EVERY_S_MAX
from everlog.actors.ports.timer_schedules import next_due
from everlog.events import BadInput, SourceAttached, SourceDetached, TimerCancelled, TimerSet, event_of
from everlog.store import source_of, stream_of


def is_plain(command: Command) -> bool:
    """Return True if a command needs no configured agent: it runs no turn, and functions may be missing."""
    if isinstance(command, commands.OpenAgent):
        return command.keep_configuration
    return isinstance(command, _PLAIN)


_PLAIN = (
    commands.SetTimer, commands.CancelTimer, commands.AttachSource, commands.DetachSource, commands.DeleteAgent,
    commands.CancelTurn, commands.InsertMemory, commands.InsertMemories, commands.UpdateMemory, commands.DeleteMemory,
    commands.AddBlock, commands.ChangeBlock, commands.RemoveBlock, commands.FollowBlock, commands.UnfollowBlock,
    *memory_commands.ALL,
)  # fmt: skip

TIMERS_MAX = 1000
"""Most timers of one agent."""


async def edit(agent: Agent, command: Command) -> Any:
    """Carry out a command that runs no turn. Return the command's value."""
    if isinstance(command, memory_commands.ALL):
        # Imported here: an agent that derives nothing loads thirty modules less.
        from everlog.actors.deriving.derived_commands import carry_out

        return await carry_out(agent, command)
    match command:
        case commands.SummarizeContext():
            return await agent.summarize()
        case commands.ExpandSummary():
            return await agent.expand()
        case commands.CancelTurn(every=every, turn=turn):
            return await agent.cancel(command.id, every=every, turn=turn)
        case commands.HideTurns(turns=turns):
            return await agent.hide(turns, event_id=command.id)
        case commands.RethinkReply(text=text):
            return await agent.rethink(text, event_id=command.id)
        case commands.ImportConversation(said=said):
            if not all(getattr(message.event, "imported", False) for message in said):
                raise BadInput("A past conversation is messages that are `imported`. Nothing of it was kept.")
            return await agent.import_messages(said, command.id)
        case commands.InsertMemory() | commands.InsertMemories() | commands.UpdateMemory() | commands.DeleteMemory():
            return await archive(agent, command)
        case commands.AddBlock() | commands.ChangeBlock() | commands.RemoveBlock():
            return await edit_blocks.change(agent, command)
        case commands.SetTimer(timer=name, text=text, due_at=due_at, every_s=every_s, cron=cron, zone=zone):
            name = name or await _free_name(agent, command.id)
            if not name or not 0 <= due_at <= TIMER_AT_MAX or not 0 <= every_s <= TIMER_EVERY_S_MAX:
                raise BadInput(
                    f"A timer has a name, is due between 1970 and 9999 (`due_at`, microseconds UTC), and repeats after "
                    f"0 (once) to {TIMER_EVERY_S_MAX} seconds (`every_s`); this one is {name!r}, {due_at}, {every_s}. "
                    "It was not set."
                )
            if cron and every_s:
                raise BadInput("A timer has either an interval (`every_s`) or a schedule (`cron`). It was not set.")
            if cron:
                next_due(cron, zone, due_at)  # raises for a schedule that could not be set again when it fires
            await _check_room(agent, name)
            timer = TimerSet(text=text, timer=name, due_at=due_at, every_s=every_s, cron=cron, zone=zone)
            await agent.commit([timer], turn=agent.turn, step=0, ids=[command.id])
            return name
        case commands.CancelTimer(timer=name):
            if not any(row["timer"] == name for row in await agent.rows("timers")):
                return bool(await agent.known(command.id, TimerCancelled))  # a repeat of this command cancelled it
            await agent.commit([TimerCancelled(timer=name)], turn=agent.turn, step=0, ids=[command.id])
            return True
        case commands.AttachSource(source=source):
            attached = SourceAttached(source=source_of(stream_of(source)))
            return await _change(agent, command.id, attached, attached=False)
        case commands.DetachSource(source=source):
            detached = SourceDetached(source=source_of(stream_of(source)))
            return await _change(agent, command.id, detached, attached=True)
        case commands.FollowBlock(block=block, label=label):
            return await follow(agent, block, label or block, command.id)
        case commands.UnfollowBlock(block=block):
            return await unfollow(agent, block, command.id)
        case _:
            raise TypeError(f"no host knows the command {type(command).__name__}")


async def _change(agent: Agent, command_id: str, event: SourceAttached | SourceDetached, *, attached: bool) -> bool:
    """Attach or detach a source. Return True if that changed anything. `attached`: the state that the command
    changes.
    """
    if any(row["source"] == event.source for row in await agent.rows("sources")) is not attached:
        return bool(await agent.known(command_id, type(event)))  # a repeat of this command has changed it
    await agent.commit([event], turn=agent.turn, step=0, ids=[command_id])
    return True


async def _check_room(agent: Agent, name: str) -> None:
    """Raise BadInput for one timer more than an agent may have. One that replaces another needs no room."""
    names = {row["timer"] for row in await agent.timers()}
    if len(names) >= TIMERS_MAX and name not in names:
        raise BadInput(
            f"{agent.agent_id!r} has {len(names)} timers, and {TIMERS_MAX} is the most. Cancel one first "
            f"(`everlog timers` lists them), or let one timer repeat. It was not set."
        )


async def _free_name(agent: Agent, command_id: str) -> str:
    """Return timer-1, or the first such name that is free; for a repeated command, the name that it got before."""
    for record in await agent.known(command_id, TimerSet):
        event = event_of(record)
        if isinstance(event, TimerSet):
            return event.timer
    taken = {row["timer"] for row in await agent.rows("timers")}
    return next(name for number in range(1, len(taken) + 2) if (name := f"timer-{number}") not in taken)
