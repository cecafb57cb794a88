"""`everlog follow`: print the records of all agents as they are committed, until Ctrl-C.

Called by `cli.command_run`. Reads the store directly; no host and no server is asked.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from typing import Any

from everlog.actors.feed.store_feed import NOW, FeedFilter, FeedReader, StoreFeed
from everlog.actors.ports.ports import Ports
from everlog.events import Record
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of
from everlog.interfaces.common.time_text import clock
from everlog.interfaces.output import json_shapes
from everlog.interfaces.output.terminal_output import detail


class _Lines:
    """Prints a line for each record, for people."""

    def on_records(self, records: Sequence[Record]) -> None:
        """Print the records and flush."""
        for record in records:
            where = f"{record.agent_id} {record.seq}"
            print(escape_line(f"{clock(record.recorded_at)}  {where:<24} {record.type:<18} {detail(record)}".rstrip()))
        sys.stdout.flush()


def follow(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog follow` until Ctrl-C, and print the position on stderr at the end."""
    store = store_of(args, world)
    feed = StoreFeed(store, Ports(clock=world.clock, ids=world.ids))
    position = feed.parse(args.resume or NOW)
    out: Any = json_shapes.JsonLines(sys.stdout) if args.json else _Lines()
    wanted = FeedFilter(agents=args.agents, types=args.kinds)
    token = ""

    async def main() -> None:
        nonlocal token
        async with feed.reader(position, wanted) as reader:
            token = reader.position.token()
            async for printed in _printed(reader, out):
                token = printed

    try:
        asyncio.run(main())
    finally:
        if token:
            complain(f"to continue later: everlog follow --resume {token}")
    return 0


async def _printed(reader: FeedReader, out: Any) -> AsyncIterator[str]:
    """Print all records, and yield the position after those that were printed."""
    while True:
        portion = await reader.take()
        if portion is None:
            yield reader.position.token()
            await reader.wait()
        elif portion.error is not None:
            complain(f"{portion.error} Its records follow when it is mended.")
        elif portion.records:
            out.on_records(portion.records)
            yield reader.position.token()
