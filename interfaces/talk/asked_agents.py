"""Stay until other agents have answered an agent: the answers open turns of it after the turn that asked has ended.

Used by `everlog send`. In the runtime of a command alone, other agents work only while the command stays.
"""

from argparse import Namespace
from collections.abc import Sequence

from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.models.model_types import GROUP
from everlog.events import AgentMessageSent, ModelReply, Record, event_of
from everlog.interfaces.common.bootstrap import agents_of
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment


def asks(records: Sequence[Record]) -> bool:
    """Return True if an agent asked another one in these records of it."""
    events = (event_of(record) for record in records if record.type == AgentMessageSent.kind)
    return any(isinstance(event, AgentMessageSent) and event.expires_at for event in events)


def is_of_group(records: Sequence[Record]) -> bool:
    """Return True if these records are of a group: a rule gave the replies."""
    events = (event_of(record) for record in records if record.type == ModelReply.kind)
    return any(isinstance(event, ModelReply) and event.model.startswith(GROUP) for event in events)


async def until_answered(
    args: Namespace, world: CommandEnvironment, asked: Sequence[Record], on_commit: CommitListener
) -> Sequence[Record]:
    """Wait until no question of the turn of `asked` and of the turns that followed from it is open, for a group until
    none at all is: the turn may have joined a round that an earlier one began, and a line on stderr says so. Return the
    records that came meanwhile; `on_commit` is called with them.
    """
    name, first = asked[-1].agent_id, 0 if is_of_group(asked) else asked[0].seq
    found: list[Record] = []
    async with agents_of(args, world, timers=True) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command=f"everlog {args.command}")

        async def is_over() -> bool:
            """Take what the log has now. Return True if that holds no open question and no open turn."""
            async with await system.view(name) as view:
                seen = (found or asked)[-1].seq
                if new := [*system.store.reader(name).read(name, seen + 1, view.head)] if view.head > seen else []:
                    on_commit(new)
                    found.extend(new)
                rows = [row for row in await view.rows("agent_messages") if row["seq"] >= first and row["expires_us"]]
                waits = any(row["state"] in {"pending", "waiting"} for row in rows)
                return not waits and not await view.rows("open_turns")

        if not await is_over():
            if not asks(asked):
                complain(f"{name}: a round of the group runs already. Your message joins it, and the answers follow.")
            async for _ in agent.subscribe(after=asked[-1].seq):
                if await is_over():
                    break
    return found
