"""Deliveries: at least once, in order, by one server, whatever the receiver answers and whichever server dies."""

import asyncio
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st

from everlog.actors.feed import store_watch
from everlog.actors.feed.store_feed import START, StoreFeed
from everlog.actors.ports.ports import Ports
from everlog.interfaces.http.webhooks import webhook_delivery
from everlog.interfaces.http.webhooks.webhook_delivery import PARKED_AFTER_US, WAIT_MAX_S, WebhookDeliveries
from everlog.interfaces.http.webhooks.webhook_files import Webhook, WebhookFiles, WebhookState
from everlog.interfaces.http.webhooks.webhook_sender import DeliveryResult, secret_of
from tests.support import virtual_time
from tests.support.feed.restless_store import RestlessStore
from tests.support.law import law

Sent = list[tuple[str, list[tuple[str, int]]]]


class Server:
    """A server's deliveries, with a receiver that answers as the test says."""

    def __init__(self, world: RestlessStore, answer: Any) -> None:
        """`answer` gets the id and the records of a try, and returns a result or raises."""
        self.ports = Ports(clock=virtual_time.WallClock(), aside=world.aside)
        self.files = WebhookFiles(world.store.root)
        self.feed = StoreFeed(world.store, self.ports)
        self.answer = answer
        self.deliveries = WebhookDeliveries(self.files, self.feed, self.ports, self.send, lambda: 0.5)

    async def send(self, _url: str, body: bytes, headers: Mapping[str, str]) -> DeliveryResult:
        records = [(record["agent"], record["seq"]) for record in msgspec.json.decode(body)["data"]["records"]]
        return await self.answer(headers["webhook-id"], records)

    def add(self, name: str = "one", **fields: Any) -> None:
        """Create a webhook that gets everything from the beginning."""
        webhook = Webhook(id=name, url="https://example.org/", secret=secret_of("x"), created_at=1, **fields)
        position = self.feed.parse(START)
        assert position is not None
        self.files.add(webhook, position.token())

    def state(self, name: str = "one") -> WebhookState:
        state = self.files.state(name)
        assert state is not None
        return state

    async def close(self) -> None:
        """Stop as a server that ends, or dies, does: the locks are free."""
        await self.deliveries.close()
        await self.feed.close()


@law(st.integers(0, 2**32), few=2, many=500)
def test_every_record_is_delivered_whichever_server_dies(seed: int) -> None:
    """While tries fail, answers are lost and servers stop in the middle of a delivery, the receiver gets every record
    at least once, in the order of each log; one id always has the same records, and one server delivers at a time.
    """
    with tempfile.TemporaryDirectory() as folder:
        world = RestlessStore(Path(folder), seed)
        sent: Sent = []
        busy: list[str] = []

        async def answer(delivery_id: str, records: list[tuple[str, int]]) -> DeliveryResult:
            assert not busy, "two servers deliver at once"
            busy.append(delivery_id)
            try:
                await asyncio.sleep(world.random.random())
                fate = world.random.choice(("ok", "ok", "ok", "lost", "never"))
                if fate != "never":
                    sent.append((delivery_id, records))
                return DeliveryResult() if fate == "ok" else DeliveryResult(fate)
            finally:
                busy.remove(delivery_id)

        async def main() -> None:
            Server(world, answer).add()
            servers: list[Server] = []
            for _ in range(12):
                server = Server(world, answer)
                server.deliveries.start()
                servers.append(server)
                await asyncio.sleep(world.random.uniform(0, 8))
                if len(servers) > 1:
                    await servers.pop(world.random.randrange(2)).close()
                world.act_by_itself()
            world.finish()
            world.say("ann")
            await asyncio.sleep(300)
            for server in servers:
                await server.close()

        virtual_time.run(main, collect=False)
        by_id: dict[str, list[tuple[str, int]]] = {}
        for delivery_id, records in sent:
            assert by_id.setdefault(delivery_id, records) == records
        found: dict[str, list[int]] = {}
        for records in by_id.values():
            for agent, seq in records:
                found.setdefault(agent, []).append(seq)
        assert found == {agent: [r.seq for r in world.log_of(agent) if r.agent_id == agent] for agent in world.agents}
        world.close()


def test_waits_grow_and_a_day_without_success_parks_the_webhook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tries grow apart to a limit; after a day the webhook is parked and nothing is sent, also by a new server; when
    it is resumed, it continues with the same delivery.
    """
    monkeypatch.setattr(webhook_delivery, "SCAN_S", 60.0)  # a day has many looks
    monkeypatch.setattr(store_watch, "REST_S", 60.0)
    world = RestlessStore(tmp_path, 1, calm=True)
    tries: list[tuple[float, str]] = []
    good: list[bool] = []

    async def answer(delivery_id: str, _records: Any) -> DeliveryResult:
        tries.append((asyncio.get_running_loop().time(), delivery_id))
        return DeliveryResult("" if good else "no")

    async def main() -> None:
        server = Server(world, answer)
        server.add()
        server.deliveries.start()
        await asyncio.sleep(PARKED_AFTER_US / 1e6 + WAIT_MAX_S + 10)
        waits = [later - earlier for (earlier, _), (later, _) in pairwise(tries)]
        assert waits[:3] == [0.75, 1.5, 3.0]
        assert waits == sorted(waits)
        assert max(waits) <= WAIT_MAX_S
        assert len({delivery_id for _, delivery_id in tries}) == 1
        assert server.state().parked
        assert server.state().delivered == 0
        assert server.state().last_error == "no"
        assert (server.deliveries.counts.parked, server.deliveries.counts.total) == (1, 1)
        await server.close()
        count = len(tries)
        another = Server(world, answer)
        another.deliveries.start()
        await asyncio.sleep(10_000)
        assert len(tries) == count
        good.append(True)
        resumed = msgspec.structs.replace(another.state(), parked=False, failing_since=None)
        assert another.files.change("one", another.state(), resumed)
        await asyncio.sleep(200)
        assert tries[count][1] == tries[0][1]
        assert another.state().failing_since is None
        assert another.state().delivered == len(tries) - count
        assert another.deliveries.counts.parked == 0
        await another.close()

    virtual_time.run(main)


def test_a_webhook_that_is_removed_gets_nothing_more(tmp_path: Path) -> None:
    """Removing a webhook ends its deliveries, also those that are tried again and again, and leaves no file."""
    world = RestlessStore(tmp_path, 1, calm=True)
    tries: list[str] = []

    async def answer(delivery_id: str, _records: Any) -> DeliveryResult:
        tries.append(delivery_id)
        return DeliveryResult("no")

    async def main() -> None:
        server = Server(world, answer)
        server.add()
        server.deliveries.start()
        await asyncio.sleep(5)
        assert tries
        server.files.remove("one")
        count = len(tries)
        await asyncio.sleep(5000)
        assert len(tries) <= count + 1
        assert list((tmp_path / "webhooks").iterdir()) == []
        await server.close()

    virtual_time.run(main)


def test_a_tenants_webhook_has_its_own_records_only(tmp_path: Path) -> None:
    """A webhook of a tenant gets the records of the tenant, under the names that the tenant has for its agents."""
    world = RestlessStore(tmp_path, 1, calm=True)
    world.say("acme~sam", 2)
    world.say("rival~sam", 2)
    sent: Sent = []

    async def answer(delivery_id: str, records: list[tuple[str, int]]) -> DeliveryResult:
        sent.append((delivery_id, records))
        return DeliveryResult()

    async def main() -> None:
        server = Server(world, answer)
        server.add(tenant="acme")
        server.deliveries.start()
        await asyncio.sleep(20)
        await server.close()

    virtual_time.run(main)
    assert [records for _, records in sent] == [[("sam", 1), ("sam", 2)]]
