"""`everlog follow`: print the records of all agents as they are committed, until Ctrl-C.

Called by `cli.command_run`. Reads the store directly, without a host; with --server, the feed of the server.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from everlog.actors.feed.store_feed import NOW, FeedFilter, StoreFeed
from everlog.actors.ports.ports import Ports
from everlog.events import Record
from everlog.interfaces.client.event_stream import FeedPart
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of
from everlog.interfaces.common.server_choice import server_of
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
    out: Any = json_shapes.JsonLines(sys.stdout) if args.json else _Lines()
    wanted = FeedFilter(agents=args.agents, types=args.kinds)
    server = server_of(args)
    if server is None:
        portions = _portions(args, world, wanted)
    else:
        portions = server.feed(args.resume or NOW, wanted)
    token = ""

    async def main() -> None:
        nonlocal token
        async with aclosing(portions):
            async for read in portions:
                if read.error is not None:
                    complain(f"{read.error} Its records follow when it is mended.")
                elif read.records:
                    out.on_records(read.records)
                token = read.token or token

    try:
        asyncio.run(main())
    finally:
        if token:
            complain(f"to continue later: everlog follow --resume {token}")
    return 0


async def _portions(args: Namespace, world: CommandEnvironment, wanted: FeedFilter) -> AsyncGenerator[FeedPart]:
    """Yield the feed of the store, each part with the position after it."""
    feed = StoreFeed(store_of(args, world), Ports(clock=world.clock, ids=world.ids))
    async with feed.reader(feed.parse(args.resume or NOW), wanted) as reader:
        yield FeedPart(reader.position.token())
        while True:
            portion = await reader.take()
            if portion is None:
                yield FeedPart(reader.position.token())
                await reader.wait()
            elif portion.error is not None:
                yield FeedPart(error=portion.error)
            elif portion.records:
                yield FeedPart(reader.position.token(), portion.records)
