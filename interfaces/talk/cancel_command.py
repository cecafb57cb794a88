"""`everlog cancel`: end the current turn of an agent, at any point of the turn.

Called by `cli.command_run`. A wrong name must create neither a store nor an agent.
"""

import asyncio
from argparse import Namespace
from collections.abc import Sequence

from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import without_take_over
from everlog.interfaces.output import json_shapes
from everlog.store import name_of


def cancel(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `cancel`."""
    name = name_of(args.name)
    with open_view(system_of(args, world), name, notify=False), without_take_over():  # creates no store and no agent
        turns = asyncio.run(_cancel(args, world, name))
    if args.json:
        print(json_shapes.line({"agent": name, "cancelled": list(turns)}))
    elif turns:
        said = f"turn {turns[0]}" if len(turns) == 1 else f"turns {', '.join(map(str, turns))}"
        print(escape_line(f"Cancelled {said} of {name}."))
    else:
        print(escape_line(f"Nothing was cancelled: {name} has no open turn."))
    return 0


async def _cancel(args: Namespace, world: CommandEnvironment, name: str) -> Sequence[int]:
    async with agents_of(args, world) as system:
        return await system.cancel(name, all_turns=args.waiting)
