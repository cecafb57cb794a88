"""Deliver the records of the feed to webhooks: in order, at least once, by one server of all in front of a store.

A server delivers for the webhooks whose rights it has: locks in a folder, which the system releases when the server
dies, and claims in a bucket, which others take when they are not renewed. Before the first try the portion is durable
with its id, and only an acknowledgement moves the position: so every try of a portion has the same id and the same
records, whichever server makes it.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from everlog.actors.feed.store_feed import FeedFilter, FeedPortion, FeedReader, StoreFeed
from everlog.actors.ports.loggers import logger_of
from everlog.actors.ports.ports import Ports
from everlog.events import EverlogError, Record
from everlog.events.times import MICROSECONDS, moment
from everlog.interfaces.http.core.tenants import TenantNames
from everlog.interfaces.http.webhooks.webhook_files import (
    DeliveryRight,
    PendingPortion,
    Webhook,
    WebhookFiles,
    WebhookState,
)
from everlog.interfaces.http.webhooks.webhook_sender import WebhookSend, signed_headers
from everlog.interfaces.wire.feed import WebhookBody, WebhookData

SCAN_S = 1.0
"""Seconds between two looks for webhooks without a server that delivers."""
BUCKET_SCAN_S = 10.0
"""The same in a bucket, where each look takes some requests, which are paid for."""
FIRST_WAIT_S = 1.0
"""Seconds before the second try; each later wait is twice as long."""
WAIT_MAX_S = 900.0
PARKED_AFTER_US = 24 * 3600 * MICROSECONDS
"""Time without success after which a webhook is parked, microseconds."""
SCANNED_MAX = 20_000
"""Records that are passed over before the position is saved."""
ERROR_CHARS_MAX = 300
_log = logger_of("webhooks")


class WebhookCounts(msgspec.Struct):
    """Figures of the deliveries of one server."""

    delivered: int = 0
    failed: int = 0
    parked: int = 0
    """Webhooks of the store that are parked."""
    total: int = 0
    """Webhooks of the store."""


class WebhookDeliveries:
    """Deliveries of one server. Belongs to one event loop."""

    def __init__(
        self, files: WebhookFiles, feed: StoreFeed, ports: Ports, send: WebhookSend, chance: Callable[[], float]
    ) -> None:
        """`chance` returns a number from 0 to 1."""
        self._server = ports.ids.new(ports.clock.now())
        self._rights: dict[str, DeliveryRight] = {}
        self._files, self._feed, self._ports, self._send, self._chance = files, feed, ports, send, chance
        self._work: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self.counts = WebhookCounts()

    def start(self) -> None:
        """Begin to deliver."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop, and release all webhooks to other servers."""
        tasks = [*self._work.values(), *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._scan()
            except EverlogError as error:
                _log.error("the webhooks of the store cannot be read: %s", error)
            await self._ports.sleep(BUCKET_SCAN_S if self._files.is_in_bucket else SCAN_S)

    async def _scan(self) -> None:
        webhooks = await self._ports.aside(self._files.all)
        parked = 0
        for webhook in webhooks:
            state = await self._ports.aside(self._files.state, webhook.id)
            if state is None:
                continue
            if state.parked:
                parked += 1
            elif webhook.id not in self._work:
                task = asyncio.get_running_loop().create_task(self._held(webhook))
                self._work[webhook.id] = task
                task.add_done_callback(partial(self._done, webhook.id))
        self.counts.parked, self.counts.total = parked, len(webhooks)
        self._rights = {webhook.id: self._rights[webhook.id] for webhook in webhooks if webhook.id in self._rights}

    def _done(self, webhook_id: str, _task: "asyncio.Task[None]") -> None:
        self._work.pop(webhook_id, None)

    async def _held(self, webhook: Webhook) -> None:
        """Deliver for a webhook if no other server does, until it is parked or removed."""
        loop = asyncio.get_running_loop()
        right = self._rights.setdefault(webhook.id, self._files.right(webhook.id, self._server, loop.time))
        taking = asyncio.ensure_future(self._ports.aside(right.take))
        try:
            try:
                if await asyncio.shield(taking):
                    await self._deliver_while(right, _Delivery(webhook, self))
            finally:  # also if this server stops while it takes the right
                if await taking:
                    await self._ports.aside(right.free)
        except EverlogError as error:  # tried again at the next look
            _log.error("webhook %s: %s", webhook.id, error)

    async def _deliver_while(self, right: DeliveryRight, delivery: "_Delivery") -> None:
        """Deliver until the webhook is parked or removed, or this server has lost the right. Raises EverlogError."""
        running = asyncio.get_running_loop().create_task(delivery.run())
        try:
            while not (await asyncio.wait([running], timeout=right.beat_s))[0]:
                if not await self._ports.aside(right.keep):
                    return
            running.result()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    # What a delivery needs of its server.

    @property
    def files(self) -> WebhookFiles:
        """Files of the webhooks."""
        return self._files

    @property
    def feed(self) -> StoreFeed:
        """Feed of the store."""
        return self._feed

    @property
    def ports(self) -> Ports:
        """Effects of the process."""
        return self._ports

    async def send(self, webhook: Webhook, delivery_id: str, body: bytes) -> tuple[str, float]:
        """Send a delivery once, and return the reason why it failed, if it did, and the seconds to wait."""
        headers = signed_headers(webhook.secret, delivery_id, self._ports.clock.now() // MICROSECONDS, body)
        result = await self._send(webhook.url, body, headers)
        if result.error:
            self.counts.failed += 1
        else:
            self.counts.delivered += 1
        return result.error, result.retry_after_s

    def wait_s(self, tries: int, asked_s: float) -> float:
        """Return the seconds before the next try, with jitter so that servers and receivers do not keep step."""
        doubled = min(WAIT_MAX_S, FIRST_WAIT_S * 2.0 ** min(tries, 30))
        return max(asked_s, doubled * (0.5 + self._chance() / 2))


class _Gone(Exception):
    """The webhook was removed or parked, or another server delivers."""


class _Delivery:
    """Deliveries of one webhook, by the server that holds its lock."""

    def __init__(self, webhook: Webhook, server: WebhookDeliveries) -> None:
        self._webhook, self._server = webhook, server
        self._aside = server.ports.aside
        self._names = TenantNames(webhook.tenant)
        self._state = WebhookState(position="")

    async def run(self) -> None:
        """Deliver until the webhook is removed or parked. Raises EverlogError."""
        state = await self._aside(self._server.files.state, self._webhook.id)
        if state is None or state.parked:
            return
        self._state = state
        wanted = FeedFilter(agents=self._webhook.agents, types=self._webhook.types)
        position = self._server.feed.parse(state.position)
        async with self._server.feed.reader(position, wanted, self._names.stream_name) as reader:
            try:
                if state.pending is not None:
                    portion = await reader.again(state.pending.partition, state.pending.commit)
                    await self._deliver(state.pending.id, portion.records)
                    await self._acknowledged(reader)
                await self._go_on(reader)
            except _Gone:
                return

    async def _go_on(self, reader: FeedReader) -> None:
        scanned = 0
        while True:
            before = reader.position.copy()
            portion = await reader.take()
            if portion is None or portion.error is not None:
                if scanned and portion is None:
                    await self._save(position=reader.position.token())
                    scanned = 0
                await self._check()
                await reader.wait(SCAN_S)
                continue
            if portion.records:
                delivery_id = self._id(portion, before.of(portion.partition))
                pending = PendingPortion(partition=portion.partition, commit=portion.commit, id=delivery_id)
                await self._save(position=before.token(), pending=pending)
                await self._deliver(delivery_id, portion.records)
                await self._acknowledged(reader)
                scanned = 0
            else:
                scanned += portion.scanned
                if scanned > SCANNED_MAX:
                    await self._save(position=reader.position.token())
                    scanned = 0

    def _id(self, portion: FeedPortion, after: int) -> str:
        """Return the id of a portion: the same whenever the same records are sent."""
        named = f"{self._webhook.id}\0{portion.partition}\0{after}\0{portion.commit}"
        return f"msg_{hashlib.sha256(named.encode()).hexdigest()[:32]}"

    async def _deliver(self, delivery_id: str, records: Sequence[Record]) -> None:
        """Send a portion until the receiver acknowledges it. Raises _Gone if the webhook is parked or removed."""
        if not records:  # they were erased meanwhile
            return
        body = self._body(records)
        tries = 0
        while True:
            await self._check()
            error, asked_s = await self._server.send(self._webhook, delivery_id, body)
            if not error:
                return
            now = self._server.ports.clock.now()
            since = now if self._state.failing_since is None else self._state.failing_since
            parked = now - since >= PARKED_AFTER_US
            if parked or self._state.failing_since is None or self._state.last_error != error[:ERROR_CHARS_MAX]:
                await self._save(failing_since=since, last_error=error[:ERROR_CHARS_MAX], parked=parked)
            if parked:
                _log.error("webhook %s is parked: a day without success (%s)", self._webhook.id, error)
                raise _Gone
            await self._server.ports.sleep(self._server.wait_s(tries, asked_s))
            tries += 1

    def _body(self, records: Sequence[Record]) -> bytes:
        shapes = [self._names.record(record) for record in records]
        data = WebhookData(webhook=self._webhook.id, records=shapes)
        at = moment(records[-1].recorded_at)
        return msgspec.json.encode(WebhookBody(type="everlog.records", timestamp=at, data=data))

    async def _acknowledged(self, reader: FeedReader) -> None:
        await self._save(
            position=reader.position.token(), pending=None, delivered=self._state.delivered + 1, failing_since=None,
            last_error="",
        )  # fmt: skip

    async def _check(self) -> None:
        """Raise _Gone if the webhook was removed."""
        if not await self._aside(self._server.files.exists, self._webhook.id):
            raise _Gone

    async def _save(self, **changes: object) -> None:
        """Change the state. Raises _Gone if it was removed, or changed by another server."""
        after = msgspec.structs.replace(self._state, **changes)
        if not await self._aside(self._server.files.change, self._webhook.id, self._state, after):
            raise _Gone
        self._state = after
