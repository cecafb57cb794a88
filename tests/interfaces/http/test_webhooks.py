"""Webhooks over HTTP: created, signed, delivered to a receiver that fails in every way, and taken over after a kill."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from everlog.actors.functions.allowed_hosts import hosts
from everlog.events import BadInput, CorruptLog
from everlog.interfaces.http.core.service import HttpOptions
from everlog.interfaces.http.webhooks import webhook_delivery
from everlog.interfaces.http.webhooks.webhook_files import WebhookFiles
from everlog.interfaces.http.webhooks.webhook_sender import WebhookSender, secret_of, signed_headers
from tests.support.cli.command_line import Script, says
from tests.support.feed.restless_store import RestlessStore
from tests.support.http.served_store import Served, served
from tests.support.http.webhook_receiver import Receiver, is_signed, receiving
from tests.support.store.open_paths import open_paths

ROOT = Path(__file__).resolve().parents[3]


def options(receiver: Receiver) -> HttpOptions:
    return HttpOptions(webhook_hosts=(f"127.0.0.1:{receiver.port}",))


async def talk(server: Served, *agents: str) -> dict[str, list[int]]:
    """Create agents, talk to each, and return their seqs."""
    found = {}
    for agent in agents:
        await server.call("POST", "/agents", {"name": agent})
        await server.call("POST", f"/agents/{agent}/messages", {"text": "Hello"}, status=200)
        page = await server.call("GET", f"/agents/{agent}/records?limit=1", status=200)
        found[agent] = list(range(1, page["as_of"] + 1))
    return found


def test_records_are_delivered_signed_and_the_secret_is_shown_once(tmp_path: Path) -> None:
    """A webhook from `start` gets every record, each delivery signed with the secret of the answer that created it;
    the secret is in no other answer, and in no file that others may read.
    """

    async def main() -> None:
        async with (
            receiving() as receiver,
            served(tmp_path, Script([says("Ahoy")]), options=options(receiver)) as server,
        ):
            url = f"http://127.0.0.1:{receiver.port}/in"
            expected = await talk(server, "sam", "ann")
            made = await server.call("POST", "/webhooks", {"url": url, "after": "start"}, status=201)
            await receiver.until(lambda it: it.received() == expected)
            assert all(is_signed(delivery, made["secret"]) for delivery in receiver.deliveries)
            assert not is_signed(receiver.deliveries[0], secret_of("another"))
            listed = await server.call("GET", "/webhooks", status=200)
            assert "secret" not in json.dumps(listed)
            assert [one["id"] for one in listed["webhooks"]] == [made["id"]]
            assert open_paths(tmp_path / "webhooks") == {}
            await server.call("DELETE", f"/webhooks/{made['id']}", status=200)
            await server.call("GET", f"/webhooks/{made['id']}", status=404)
            assert await server.call("GET", "/webhooks", status=200) == {"webhooks": []}

    asyncio.run(main())


def test_a_receiver_that_fails_in_every_way_gets_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After refusals, hangs, errors, answers that end in the middle and redirects, every record has arrived, in order,
    and each portion kept its id.
    """
    monkeypatch.setattr(webhook_delivery, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(webhook_delivery, "WAIT_MAX_S", 0.02)
    ways = ["error", "hang", "silent", "middle", "redirect", "noise", "ok", "hang", "error"]

    async def main() -> None:
        async with (
            receiving() as receiver,
            served(tmp_path, Script([says("Ahoy")]), options=options(receiver)) as server,
        ):
            receiver.answer = lambda number: ways[number] if number < len(ways) else "accepted"
            server.service.webhook_sender._limit_s = 0.3
            expected = await talk(server, "sam")
            url = f"http://127.0.0.1:{receiver.port}/in"
            made = await server.call("POST", "/webhooks", {"url": url, "after": "start"}, status=201)
            await receiver.until(lambda it: any(d.acknowledged for d in it.deliveries))
            expected |= await talk(server, "ann")
            await receiver.until(lambda it: it.received() == expected and it.deliveries[-1].acknowledged)
            assert len({delivery.id for delivery in receiver.deliveries[:7]}) == 1
            for delivery in receiver.deliveries:
                same = next(one for one in receiver.deliveries if one.id == delivery.id)
                assert delivery.body == same.body
            metrics = (await server.client.get("/metrics")).text
            assert "everlog_webhooks_parked 0" in metrics
            assert "everlog_webhook_failures_total 0" not in metrics
            assert made["id"] not in metrics

    asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/", "file:///etc/passwd", "http://127.0.0.1:1/", "http://localhost/", "http://[::1]/",
        "http://169.254.169.254/latest", "http://10.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://2130706433/",
        "http://user:pass@example.org/", "", "http://", "example.org",
    ],
)  # fmt: skip
def test_only_public_addresses_of_the_web_are_accepted(url: str) -> None:
    """A URL that is none of the web, or whose host is not public, is refused when the webhook is created, and when it
    is sent to.
    """

    async def resolve(host: str, _port: int) -> list[str]:
        return ["127.0.0.1"] if host == "localhost" else [host]

    async def main() -> None:
        sender = WebhookSender(hosts(()), resolve)
        with pytest.raises(BadInput):
            await sender.check(url)
        assert (await sender.send(url, b"{}", {})).error

    asyncio.run(main())


def test_a_host_that_becomes_private_later_gets_nothing() -> None:
    """The addresses are checked at each try, and the connection goes to the checked one: a name that is bound to
    another address later leads nowhere else.
    """

    async def main() -> None:
        async with receiving() as receiver:

            async def resolve(_host: str, _port: int) -> list[str]:
                return ["127.0.0.1"]

            result = await WebhookSender(hosts(()), resolve).send(f"http://example.org:{receiver.port}/", b"{}", {})
            assert "not an address of the public network" in result.error
            assert receiver.deliveries == []

    asyncio.run(main())


def test_the_time_that_a_receiver_asks_for_is_waited() -> None:
    """`Retry-After` of an answer is passed on in seconds; a connection that is refused is a failure as any other."""

    async def main() -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: "busy"
            sender = WebhookSender(hosts((f"127.0.0.1:{receiver.port}",)))
            headers = signed_headers(secret_of("x"), "msg_1", 1, b"{}")
            body = b'{"data":{"records":[]}}'
            result = await sender.send(f"http://127.0.0.1:{receiver.port}/", body, headers)
            assert (result.error, result.retry_after_s) == ("the receiver answered 503", 7)
        assert (await sender.send(f"http://127.0.0.1:{receiver.port}/", b"{}", headers)).error

    asyncio.run(main())


def test_webhooks_are_their_tenants_and_bad_ones_are_refused(tmp_path: Path) -> None:
    """A tenant's webhook does not exist for another tenant; creating needs the role admin; a repeated request creates
    one webhook, and another one under the same key is refused.
    """

    async def main() -> None:
        async with receiving() as receiver, served(tmp_path, options=options(receiver)) as server:
            body = {"url": f"http://127.0.0.1:{receiver.port}/in"}
            acme, rival = server.key(tenant="acme"), server.key(tenant="rival", name="r")
            talker = server.key("talk", tenant="acme", name="t")
            await server.call("POST", "/webhooks", body, headers=talker, status=403)
            key = {**acme, "Idempotency-Key": "one"}
            made = await server.call("POST", "/webhooks", body, headers=key, status=201)
            assert (await server.call("POST", "/webhooks", body, headers=key, status=201)) == made
            await server.call("POST", "/webhooks", {**body, "types": ["x"]}, headers=key, status=422)
            path = f"/webhooks/{made['id']}"
            assert (await server.call("GET", path, headers=acme, status=200))["status"] == "active"
            assert (await server.call("POST", f"{path}/resume", headers=acme, status=200))["status"] == "active"
            for method, where in (("GET", path), ("DELETE", path), ("POST", f"{path}/resume")):
                await server.call(method, where, headers=rival, status=404)
            for wrong in ("..%2Fkeys", "x", "%00", "..%2F..%2Fetc%2Fpasswd"):
                await server.call("GET", f"/webhooks/{wrong}", headers=acme, status=404)
            assert (await server.call("GET", "/webhooks", headers=rival, status=200))["webhooks"] == []
            for url in ("http://127.0.0.1:1/", "nonsense"):
                await server.call("POST", "/webhooks", {"url": url}, headers=acme, status=400)
            await server.call("POST", "/webhooks", {**body, "after": "nonsense"}, headers=acme, status=400)

    asyncio.run(main())


async def serve_process(store: Path, port: int) -> tuple[asyncio.subprocess.Process, str]:
    """Start a server in a process of its own; return it and its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "everlog", "--store", str(store), "serve", "--port", "0", "--json", "--runtime", "local",
        "--webhook-host", f"127.0.0.1:{port}",
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    return process, json.loads(await process.stdout.readline())["address"]


@pytest.mark.long
@pytest.mark.soak
def test_a_server_that_is_killed_in_a_delivery_is_taken_over(tmp_path: Path) -> None:
    """A server is killed while the receiver holds its delivery: the other server sends the same delivery again, and
    then the rest; every record has arrived, in order.
    """
    world = RestlessStore(tmp_path / "store", 1, calm=True)
    world.say("ann", 3)
    expected = {agent: [r.seq for r in world.log_of(agent)] for agent in world.agents}
    files = WebhookFiles(world.store.root)

    async def main() -> None:
        async with receiving() as receiver:
            receiver.answer = lambda number: "hang" if number == 1 else "ok"
            first, address = await serve_process(world.store.root, receiver.port)
            second = None
            try:
                async with served_client(address) as client:
                    body = {"url": f"http://127.0.0.1:{receiver.port}/", "after": "start"}
                    made = (await client.post("/api/v1/webhooks", json=body)).json()
                second, _ = await serve_process(world.store.root, receiver.port)
                await receiver.until(lambda it: len(it.deliveries) == 2)
                first.send_signal(signal.SIGKILL)
                await first.wait()
                await receiver.until(lambda it: it.received() == expected and it.deliveries[-1].acknowledged)
                assert receiver.deliveries[2].id == receiver.deliveries[1].id
                assert receiver.deliveries[2].body == receiver.deliveries[1].body
            finally:
                for process in (first, second):
                    if process is not None and process.returncode is None:
                        process.terminate()
                        await process.wait()
            state = files.state(made["id"])
            assert state is not None
            assert state.pending is None

    asyncio.run(main())
    world.close()


def served_client(address: str):
    import httpx2

    return httpx2.AsyncClient(base_url=address, timeout=30, trust_env=False)


def test_a_damaged_file_of_a_webhook_is_an_error(tmp_path: Path) -> None:
    """A file that is no webhook any more is told, and is not taken for a webhook that does not exist."""

    async def main() -> None:
        async with receiving() as receiver, served(tmp_path, options=options(receiver)) as server:
            body = {"url": f"http://127.0.0.1:{receiver.port}/"}
            made = await server.call("POST", "/webhooks", body, status=201)
            (tmp_path / "webhooks" / f"{made['id']}.json").write_text("{")
            problem = await server.call("GET", f"/webhooks/{made['id']}", status=500)
            assert problem["code"] == CorruptLog.code

    asyncio.run(main())
