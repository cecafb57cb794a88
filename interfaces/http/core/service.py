"""Hold what the routes of a server share: the agents of the store, the keys, limits, streams and figures.

One server has one service, and the service has no state that another server in front of the same store would need:
everything that lasts is in the logs and in the files of the store.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from everlog.actors.agent_system import AgentSystem
from everlog.actors.feed.log_tails import LogTails
from everlog.actors.feed.run_lookup import RunRecords, find_input, find_run
from everlog.actors.feed.store_feed import StoreFeed
from everlog.actors.functions.allowed_hosts import hosts
from everlog.actors.ports.ports import Ports
from everlog.interfaces.http.conversations.conversation_log import ConversationLog
from everlog.interfaces.http.core.http_metrics import HttpMetrics
from everlog.interfaces.http.core.keys import KeyRing
from everlog.interfaces.http.core.rate_limit import RateLimits
from everlog.interfaces.http.webhooks.webhook_delivery import WebhookDeliveries
from everlog.interfaces.http.webhooks.webhook_files import WebhookFiles
from everlog.interfaces.http.webhooks.webhook_sender import WebhookSender
from everlog.projections.engine_pool import EnginePool

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine in the header Host."""

ENGINES_IDLE_MAX = 2
"""Empty engines for questions about one agent that a server keeps. A page may use two."""


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one server."""

    requests_per_s: float = 1000.0
    """Requests of one key in a second, on average; 0: no limit. Twice as many may come at once."""
    streams_max: int = 5000
    """Streams that are open at once."""
    streams_per_key_max: int = 1000
    body_s: float = 30.0
    """Seconds in which a body arrives."""
    send_s: float = 30.0
    """Seconds in which a reader takes what was sent to it."""
    keep_alive_s: float = 15.0
    """Seconds of silence after which a stream sends a comment."""
    queries_max: int = 2
    """Queries over all agents that run at once; others wait."""
    query_s: float = 30.0
    """Seconds that such a query may take, its waiting included."""
    query_memory_mb: int = 512
    answer_bytes_max: int = 256 * 1024 * 1024
    """Size of the answer of such a query."""


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one server."""

    hosts: Sequence[str] = ()
    """Names, beside those of this machine, by which clients reach the server: what the header Host may say."""
    origins: Sequence[str] = ()
    """Origins of pages, such as https://app.example.com, that may call the server from a browser."""
    keys_required: bool = False
    """True: a request without a key is refused, also if the store has no keys."""
    webhook_hosts: Sequence[str] = ()
    """Hosts, as HOST or HOST:PORT, that webhooks may be sent to at any address; others only at public ones."""
    new_agents: Mapping[str, str] = {}
    """Settings of new agents that a request does not give, by name: those of the files of defaults."""
    limits: HttpLimits = HttpLimits()


class SendInFlight(NamedTuple):
    """A message that was received and is not in the log yet."""

    is_repeat: bool
    """True: the request says that it was sent before."""
    written: "asyncio.Future[str]"
    """Future with the id that the message has in the log; empty: it did not come into the log."""


class HttpService:
    """The shared parts of one server. Belongs to one event loop."""

    def __init__(
        self,
        system: AgentSystem,
        ports: Ports,
        options: HttpOptions,
        *,
        secret: Callable[[], str],
        chance: Callable[[], float],
    ) -> None:
        """`system`: opened with exact names. `secret` makes a secret of 256 bits, and `chance` a number from 0 to 1."""
        self.system = system
        self.ports = ports
        self.options = options
        self.secret = secret
        self.chance = chance
        self.keys = KeyRing(system.store.root)
        self.tails = LogTails(system.store, ports)
        self.feed = StoreFeed(system.store, ports)
        self.conversations = ConversationLog(system.store, ports)
        self.webhook_files = WebhookFiles(system.store.root)
        self.webhook_sender = WebhookSender(hosts(options.webhook_hosts))
        self.webhooks = WebhookDeliveries(self.webhook_files, self.feed, ports, self.webhook_sender.send, chance)
        self.metrics = HttpMetrics()
        self.rates = RateLimits(options.limits.requests_per_s, ports.clock)
        self.stopping = asyncio.Event()
        """Set when the server is about to stop: streams end with a cursor."""
        self.queries = asyncio.Semaphore(options.limits.queries_max)
        """Places for queries over all agents."""
        self.engines = EnginePool(ENGINES_IDLE_MAX)
        """Empty engines for questions about one agent."""
        self.streams_by_digest: dict[str, str] = {}
        """Agents by the digests that were looked for: a name has one digest for ever. See `runs/agent_digests.py`."""
        self.readers: dict[str, int] = {}
        """Number of open streams, by key."""
        self.sending: dict[str, SendInFlight] = {}
        """Messages that are not in a log yet, by digest: see `runs/sends_in_flight.py`."""
        self.creating: dict[str, asyncio.Lock] = {}
        """Locks of names under which something is created, for requests that are repeated before the first has ended.
        """
        self.tasks: set[asyncio.Task[object]] = set()
        """Work that continues after its request was answered."""

    async def is_known(self, stream: str, event_id: str) -> bool:
        """Return True if the log of an agent has a record with an event id."""
        reader = await self.ports.aside(self.system.store.reader, stream)
        return await self.ports.aside(find_input, reader, stream, event_id) is not None

    async def run_of(self, stream: str, run: str) -> RunRecords | None:
        """Return a run of an agent, from its log; None if there is none. Raises UnknownAgent."""
        reader = await self.ports.aside(self.system.store.reader, stream)
        found: RunRecords | None = await self.ports.aside(partial(find_run, reader, stream, run))
        return found

    def take_figures(self) -> None:
        """Copy the figures of the parts into the metrics."""
        counts = self.webhooks.counts
        self.metrics.gauges["everlog_stream_readers"] = sum(self.readers.values())
        self.metrics.gauges["everlog_webhooks"] = counts.total
        self.metrics.gauges["everlog_webhooks_parked"] = counts.parked
        self.metrics.counters["everlog_webhook_deliveries"] = counts.delivered
        self.metrics.counters["everlog_webhook_failures"] = counts.failed

    def detach(self, work: Coroutine[Any, Any, object]) -> None:
        """Continue work after its request was answered. An exception of the work is a bug, and is reported with its
        traceback.
        """
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[object]") -> None:
        self.tasks.discard(task)
        bug = None if task.cancelled() else task.exception()
        if bug is not None:
            task.get_loop().call_exception_handler({"message": "Work after a request failed", "exception": bug})

    async def close(self) -> None:
        """Stop following logs, and end the work that continues after its request."""
        self.stopping.set()
        await self.webhooks.close()
        await self.tails.close()
        await self.feed.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.engines.close()
