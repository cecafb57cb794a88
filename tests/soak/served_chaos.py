"""Chaos over HTTP: messages to agents of an `everlog serve` that is killed, over connections that are cut at any byte.

A round sends one message with an id of its own, reads its stream until a byte that chance chooses, cuts the connection,
perhaps kills the server with SIGKILL, and then does what a client does: it resumes the stream after its last id, sends
the message again if it never arrived, and continues until the end of the run.
"""

import asyncio
import json
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from everlog.actors.ports.real_clock import RealClock, RealIds
from tests.soak.chaos_readers import FeedCopy, failing, until, whole
from tests.support.http.killable_server import KillableServer
from tests.support.http.served_store import body_of
from tests.support.http.webhook_receiver import Receiver, receiving

AGENTS = 5
BYTES_MAX = 6000
"""Bytes of a stream after which a connection is cut at the latest."""
KILLED = 0.15
"""Part of the rounds in which the server is killed."""
READERS_S = 120.0
"""Seconds in which the readers receive the last records."""
TRIES_MAX = 200
"""Connections that one round may take."""


class Cut(Exception):
    """A connection that ended before its answer."""


async def ask(
    port: int, method: str, path: str, body: object = None, cut_after: int | None = None
) -> tuple[int, bytes]:
    """Send a request over a connection of its own, and return status and body.

    `cut_after`: close the connection after so many bytes of the answer, and return what arrived as status 0.
    """
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        raise Cut from error
    received = b""
    try:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n" if content else "\r\n"
        writer.write(head.encode() + content)
        await writer.drain()
        while part := await reader.read(2**16):
            received += part
            if cut_after is not None and len(received) >= cut_after:
                return 0, body_of(received[:cut_after])
    except OSError as error:
        if cut_after is None:
            raise Cut from error
        return 0, body_of(received)
    finally:
        writer.close()
    if b"\r\n\r\n" not in received:
        raise Cut
    return int(received.split(b" ", 2)[1]), body_of(received)


def events(body: bytes) -> list[tuple[str, dict[str, Any], int]]:
    """Return kind, data and id of each whole event."""
    found = []
    for block in body.split(b"\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            found.append((fields["event"], json.loads(fields["data"]), int(fields.get("id", 0))))
    return found


class Chaos:
    """Rounds of chaos, and what they counted."""

    def __init__(self, store: Path, chance: random.Random) -> None:
        self.server = KillableServer(store)
        self._store = store
        self.counts: Counter[str] = Counter()
        self.sent: dict[str, tuple[str, str]] = {}
        """Agent and text of each message, by run."""
        self._chance = chance
        self._clock, self._ids = RealClock(), RealIds()

    async def run(self, rounds: int) -> None:
        """Run the rounds, one after the other, with a reader of the feed and one behind a webhook; stop the server."""
        async with receiving() as receiver:
            failing(receiver, random.Random(self._chance.random()))
            self.server = KillableServer(self._store, ("--webhook-host", f"127.0.0.1:{receiver.port}"))
            copy = FeedCopy(self.server.port, random.Random(self._chance.random()))
            reading = asyncio.ensure_future(copy.run())
            try:
                await self._run(rounds, receiver)
                heads = await self.check()
                await until(lambda: whole(copy.seqs, heads) and whole(receiver.received(), heads), READERS_S)
            finally:
                reading.cancel()
                await asyncio.wait([reading])
            assert whole(copy.seqs, heads), f"the feed had {copy.seqs} and the logs end at {heads}"
            assert whole(receiver.received(), heads), f"the webhook had {receiver.received()}, the logs end at {heads}"
            self.counts["connections of the feed"] = copy.connections
            self.counts["deliveries of the webhook"] = len(receiver.deliveries)
        self.server.kill(signal.SIGTERM)

    async def _run(self, rounds: int, receiver: Receiver) -> None:
        self.server.start()
        hook = {"url": f"http://127.0.0.1:{receiver.port}/hook", "after": "start"}
        status, body = await ask(self.server.port, "POST", "/webhooks", hook)
        assert status == 201, body
        for number in range(AGENTS):
            status, body = await ask(self.server.port, "POST", "/agents", {"name": f"agent-{number}"})
            assert status == 201, body
        for number in range(rounds):
            await self._round(number)

    async def _round(self, number: int) -> None:
        agent, text = f"agent-{self._chance.randrange(AGENTS)}", f"Message {number}: I like book {number}."
        run = self._ids.new(self._clock.now())
        self.sent[run] = (agent, text)
        seen: list[int] = []
        is_sent = False
        for _ in range(TRIES_MAX):
            cut = self._chance.randrange(1, BYTES_MAX)
            try:
                received = await self._read(agent, text, run, seen, cut, is_sent=is_sent)
            except Cut:
                self.counts["refused connections"] += 1
                received = None
            if received is not None:
                is_sent = True
                for kind, data, seq in received:
                    if kind == "record":
                        assert not seen or seq > seen[-1], f"record {seq} came after {seen[-1]}"
                        assert data["seq"] == seq
                        seen.append(seq)
                if received and received[-1][0] == "end":
                    assert received[-1][1]["status"] == "done", received[-1]
                    await self._check_run(agent, run, seen)
                    return
                self.counts["cut connections"] += 1
            if self._chance.random() < KILLED:
                self.server.kill()
                self.server.start()
                self.counts["killed servers"] += 1
        raise AssertionError(f"the run of message {number} did not end in {TRIES_MAX} connections")

    async def _read(
        self, agent: str, text: str, run: str, seen: list[int], cut: int, *, is_sent: bool
    ) -> list[tuple[str, dict[str, Any], int]] | None:
        """Send the message, or resume its stream, over a connection that is cut. Return the whole events; None if the
        message has not arrived.
        """
        port = self.server.port
        if is_sent:
            after = f"?after={seen[-1]}" if seen else ""
            status, body = await ask(port, "GET", f"/agents/{agent}/runs/{run}/stream{after}", cut_after=cut)
            self.counts["resumed streams"] += 1
            if status == 404:
                raise AssertionError("a message whose stream had begun is not in the log")
        else:
            body = await self._send(agent, text, run, cut)
            status = 0
        assert status in {0, 200}, (status, body)
        received = events(body)
        return received if received or is_sent else None

    async def _send(self, agent: str, text: str, run: str, cut: int) -> bytes:
        """Send the message with its id, which makes it safe to send again."""
        reader, writer = await self._connect()
        try:
            content = json.dumps({"text": text, "stream": True}).encode()
            head = (
                f"POST /api/v1/agents/{agent}/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: {run}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            ).encode() + content
            if self._chance.random() < 0.3:  # the request itself is cut
                writer.write(head[: self._chance.randrange(len(head))])
                await writer.drain()
                self.counts["cut requests"] += 1
                return b""
            writer.write(head)
            await writer.drain()
            received = b""
            while len(received) < cut and (part := await reader.read(cut - len(received))):
                received += part
        except OSError as error:
            raise Cut from error
        finally:
            writer.close()
        return body_of(received)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_connection("127.0.0.1", self.server.port)
        except OSError as error:
            raise Cut from error

    async def _check_run(self, agent: str, run: str, seen: list[int]) -> None:
        status, body = await ask(self.server.port, "GET", f"/agents/{agent}/runs/{run}/records")
        assert status == 200, body
        assert [record["seq"] for record in json.loads(body)["records"]] == seen, "the stream had other records"
        self.counts["complete streams"] += 1

    async def check(self) -> dict[str, int]:
        """Check that the logs have each message once, under its own id. Return the last seq of each agent."""
        heads: dict[str, int] = {}
        found: dict[str, tuple[str, str]] = {}
        for number in range(AGENTS):
            after = 0
            while True:
                path = f"/agents/agent-{number}/records?limit=1000&after={after}"
                status, body = await ask(self.server.port, "GET", path)
                assert status == 200, body
                page = json.loads(body)
                for record in page["records"]:
                    if record["type"] == "user_message":
                        assert record["event_id"] not in found, "a message is in the log twice"
                        found[record["event_id"]] = (record["agent"], record["text"])
                heads[f"agent-{number}"] = page["as_of"]
                if page["next"] is None:
                    break
                after = page["next"]
        assert found == self.sent, "the logs have other messages than those that were sent"
        self.counts["messages in the logs, each once"] = len(found)
        return heads
