"""`everlog serve` in front of a store in a bucket: agents, streams, the feed, keys and webhooks."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.interfaces.http.core.service import HttpOptions
from everlog.interfaces.http.webhooks import webhook_delivery
from everlog.store import folder_of
from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import SseEvent, served
from tests.support.http.webhook_receiver import receiving
from tests.support.store.bucket_server import make_bucket, s3_server, settings


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with s3_server() as address, settings(address, tmp_path):
        make_bucket(address, "bucket")
        yield folder_of("s3://bucket/served")


def test_a_store_in_a_bucket_is_served(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent answers over HTTP, its records are streamed, the feed has them, a key is known after a restart, and a
    webhook gets every record once, although two servers run, and the first one ends.
    """
    monkeypatch.setattr(webhook_delivery, "BUCKET_SCAN_S", 0.1)

    async def main() -> None:
        async with receiving() as receiver:
            options = HttpOptions(webhook_hosts=(f"127.0.0.1:{receiver.port}",))
            async with served(root, options=options) as second:
                async with served(root, Script([says("Ahoy")]), options=options) as first:
                    key = first.key("admin")
                    first.client.headers.update(key)
                    second.client.headers.update(key)
                    url = f"http://127.0.0.1:{receiver.port}/in"
                    await first.call("POST", "/webhooks", {"url": url, "after": "start"}, status=201)
                    await first.call("POST", "/agents", {"name": "sam"}, status=201)
                    await first.call("POST", "/agents/sam/messages", {"text": "Hello"}, status=200)
                    page = await first.call("GET", "/agents/sam/records?limit=1", status=200)
                    expected = {"sam": list(range(1, page["as_of"] + 1))}
                    await receiver.until(lambda it: it.received() == expected and it.deliveries[-1].acknowledged)
                    seqs: list[int] = []

                    def is_last(event: SseEvent) -> bool:
                        one = [event.data] if event.kind == "record" else []
                        seqs.extend(record["seq"] for record in event.data.get("records", one))
                        return seqs == expected["sam"]

                    await asyncio.wait_for(first.events("/feed?after=start", until=is_last), 30)
                    seqs.clear()
                    await asyncio.wait_for(first.events("/agents/sam/stream?after=0", until=is_last), 30)
                await second.call("GET", "/agents/sam", status=200)
                await second.call("POST", "/agents", {"name": "tom"}, status=201)
                await receiver.until(lambda it: "tom" in it.received())
            assert len({delivery.id for delivery in receiver.deliveries}) == len(receiver.deliveries)

    asyncio.run(main())
