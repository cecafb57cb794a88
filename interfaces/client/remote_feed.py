"""Read the feed of a server: the records of all agents as they are committed, over as many connections as it takes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from everlog.actors.feed.store_feed import FeedFilter
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import chance
from everlog.events import ClusterError, EverlogError
from everlog.interfaces.client.event_stream import FeedPart
from everlog.interfaces.client.server_address import ServerAddress, WireRequest, decoded, refusal_of
from everlog.interfaces.client.server_channel import ServerChannel, StreamCut
from everlog.interfaces.wire.feed import FeedRecords, FeedRequest
from everlog.interfaces.wire.problems import Problem
from everlog.interfaces.wire.records import record_of


async def read_feed(address: ServerAddress, after: str, wanted: FeedFilter, ports: Ports) -> AsyncGenerator[FeedPart]:
    """Yield the parts of the feed after a position, for ever, each record once.

    Raises the error that the server answers, and ClusterError if there has been no server for PATIENCE_S.
    """
    channel = ServerChannel(address, ports, chance)
    patience, token = channel.patience(), after
    try:
        while True:
            failure: EverlogError = ClusterError("The feed of the server ended.")
            try:
                async with aclosing(_parts(channel, token, wanted)) as parts:
                    async for part in parts:
                        patience.renew()
                        token = part.token
                        yield part
            except StreamCut as cut:
                failure = cut.error
            await patience.wait(failure)
    finally:
        await channel.close()


async def _parts(channel: ServerChannel, after: str, wanted: FeedFilter) -> AsyncGenerator[FeedPart]:
    """Yield the parts of one connection. The position goes in the body: it grows with the store."""
    body = FeedRequest(after=after, agents=wanted.agents, types=wanted.types)
    token = after
    async with channel.events(WireRequest("POST", "/feed", body, streams=True)) as events:
        async for event in events:
            token = event.id or token
            if event.kind == "records":
                yield FeedPart(token, [record_of(one) for one in decoded(event.data, FeedRecords).records])
            elif event.kind == "problem":
                yield FeedPart(token, error=refusal_of(decoded(event.data, Problem)))
            elif event.kind == "position":
                yield FeedPart(token)
