"""Readers of a server that is killed: one of its feed, whose connections are cut, and one behind a webhook.

Both have to end with every record of every agent: the feed each once and in order, the webhook each at least once, and
in order without what came again.
"""

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tests.support.http.served_store import body_of
from tests.support.http.webhook_receiver import Receiver

CUT_MAX = 400_000
"""Bytes of the feed after which a connection is cut at the latest: more than one event has, which is taken whole or
not at all.
"""
SILENT_S = 1.0
"""Seconds without a byte after which the reader connects again."""
LOOK_S = 0.1
"""Seconds between two looks at what the readers have."""
FAILURES = ("error", "silent", "middle", "busy")
FAILED = 0.3
"""Part of the deliveries that the receiver does not acknowledge."""


class FeedCopy:
    """Reader of the feed, with all that it has received."""

    def __init__(self, port: int, chance: random.Random) -> None:
        self.seqs: dict[str, list[int]] = {}
        self.connections = 0
        self._port, self._chance = port, chance
        self._position = "start"

    async def run(self) -> None:
        """Read for ever, over connections that are cut at any byte."""
        while True:
            with suppress(OSError, TimeoutError):
                await self._read(self._chance.randrange(1, CUT_MAX))
            await asyncio.sleep(0.01)

    async def _read(self, cut: int) -> None:
        """Read one answer until it is cut, and take the whole events of it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        received = b""
        try:
            self.connections += 1
            head = f"GET /api/v1/feed?after={self._position} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            writer.write(head.encode())
            while len(received) < cut:
                part = await asyncio.wait_for(reader.read(cut - len(received)), SILENT_S)
                if not part:
                    return
                received += part
        finally:
            writer.close()
            for event in body_of(received).split(b"\n\n")[:-1]:
                self._take(event.decode())

    def _take(self, event: str) -> None:
        fields = dict(line.split(": ", 1) for line in event.split("\n") if line and not line.startswith(":"))
        if "data" not in fields:
            return
        for record in json.loads(fields["data"]).get("records", ()):
            self.seqs.setdefault(record["agent"], []).append(record["seq"])
        self._position = fields.get("id", self._position)


def failing(receiver: Receiver, chance: random.Random) -> None:
    """Have a receiver fail now and then, in each of several ways."""
    receiver.answer = lambda _: chance.choice(FAILURES) if chance.random() < FAILED else "ok"


async def until(holds: Callable[[], bool], limit_s: float) -> None:
    """Wait until a condition holds, or a number of seconds has passed."""
    for _ in range(int(limit_s / LOOK_S)):
        if holds():
            return
        await asyncio.sleep(LOOK_S)


def whole(seqs: Mapping[str, Sequence[int]], heads: Mapping[str, int]) -> bool:
    """Return True if each agent's seqs are all up to its head, in order."""
    return {agent: list(found) for agent, found in seqs.items()} == {
        agent: list(range(1, head + 1)) for agent, head in heads.items()
    }
