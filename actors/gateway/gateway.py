"""The gateway: the one place from which model endpoints are called, and that tries again what can be tried again.

One for all agents of a process, or of a cluster. Agents are served in rounds, so that none starves the rest; what is
too much, too fast or too dear is refused, with the reason. Its time is the event loop's; the clock says only which day
it is.
"""

import asyncio
import os
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from operator import attrgetter
from pathlib import Path

import msgspec

from everlog.actors.gateway.budgets import Budgets
from everlog.actors.gateway.circuit_breaker import CircuitBreaker
from everlog.actors.gateway.endpoint_queue import EndpointQueue, QueueTicket
from everlog.actors.gateway.gateway_limits import GatewayLimits, limits_from
from everlog.actors.gateway.gateway_status import GatewayStatus
from everlog.actors.gateway.model_factory import ModelFactory, real_models
from everlog.actors.gateway.request_batch import ModelOutcome, ModelRequest, RequestBatch, ResponseItem
from everlog.actors.gateway.store_prices import prices_at
from everlog.actors.models import daily_usage
from everlog.actors.models.daily_usage import BYTES_PER_TOKEN
from everlog.actors.models.failure_classes import RETRIED
from everlog.actors.models.model_types import file_of
from everlog.actors.ports import real_clock
from everlog.actors.ports.agent_constants import ASKS_GATHER_S, BACKOFF_S, BACKOFF_S_MAX, OFFLINE, PAUSE_S_MAX
from everlog.actors.ports.effects import NOTHING, Clock, DeltaCallback, Model, ModelResponse, ReplyDelta, Spent
from everlog.events import BadInput, BadReply, ModelError, Usage

DROPPED_MAX = 1000
"""Calls that are remembered for what was dropped of them before they came."""


class _Listener:
    """Whoever is told the pieces of a reply; those of a try that failed are taken back before the next one."""

    __slots__ = ("_has_sent", "_on_delta")

    def __init__(self, on_delta: DeltaCallback | None) -> None:
        self._on_delta = on_delta
        self._has_sent = False

    def next_try(self) -> DeltaCallback | None:
        """Return what is told the pieces of the try that begins; None where nobody listens."""
        if self._on_delta is None:
            return None
        if self._has_sent:
            self._on_delta(ReplyDelta(restart=True))
            self._has_sent = False
        return self._forward

    def _forward(self, piece: ReplyDelta) -> None:
        if self._on_delta is not None:
            self._has_sent = True
            self._on_delta(piece)


class Gateway:
    """Asks models on behalf of agents."""

    def __init__(
        self,
        models: ModelFactory | None = None,
        limits: GatewayLimits | None = None,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = real_clock.chance,
        root: Path | None = None,
    ) -> None:
        """`models`: None are the real ones, as the store in `root` describes them; `limits`: None are those without any
        variable set.

        `chance` gives numbers from 0 (inclusive) to 1 (exclusive).
        """
        self._limits = limits or GatewayLimits()
        self._make = models or real_models(self._limits, root)
        self._chance = chance
        self._budgets = Budgets(self._limits, clock or real_clock.RealClock(), partial(prices_at, root, self._limits))
        self._models: dict[tuple[str, str], Model] = {}
        self._queues: OrderedDict[str, EndpointQueue] = OrderedDict()
        self._breakers: dict[tuple[str, str], CircuitBreaker] = {}
        """By place and name."""
        self._inside: Counter[str] = Counter()
        """Requests that have come and not gone, by agent."""
        self._entered = self._under_way = 0
        self._wake: asyncio.TimerHandle | None = None

    async def ask(
        self,
        name: str,
        base_url: str,
        request: bytes,
        agent_id: str = "",
        spent: Spent = NOTHING,
        *,
        on_delta: DeltaCallback | None = None,
    ) -> ModelResponse:
        """Send exactly these bytes to the model of that name at that place (empty: the client's default).

        `agent_id`: whose request it is; those of nobody, "", share one queue, and have no budget of their own.
        `spent`: what the agent's log says that it used up today, and what it may itself. `on_delta` is told the
        pieces of a reply that is streamed. Raises ModelError: the endpoint's; `busy` where too much waits and `budget`
        (OverBudget) where a budget is used up, both before anything is sent. Who is cancelled waits no more, from that
        moment, and the connection is closed.
        """
        if name == OFFLINE:  # in this process, at once, for nothing
            return await self._model(name, base_url).ask(request)
        queue = self._queue_of(base_url)
        with queue.counted():
            return await self._answer(ModelRequest(agent_id, name, base_url, request, spent), queue, on_delta)

    def gathered(self, askings: Sequence[ModelRequest], gather_s: float = ASKS_GATHER_S) -> RequestBatch:
        """`ask` for many at once. What comes back has its place in `askings`; the outcome of each comes once."""
        return RequestBatch(askings, self.outcome, gather_s)

    def ask_many(
        self, askings: Sequence[ModelRequest], gather_s: float = ASKS_GATHER_S
    ) -> AsyncGenerator[list[tuple[int, ResponseItem]], None]:
        """`gathered`, for one who listens to all of it."""
        return self.gathered(askings, gather_s).batches()

    async def outcome(self, asking: ModelRequest, on_delta: DeltaCallback | None = None) -> ModelOutcome:
        """`ask`, with a ModelError as a value."""
        try:
            return await self.ask(
                asking.name, asking.base_url, asking.request, asking.agent_id, asking.spent, on_delta=on_delta
            )
        except ModelError as error:
            return error

    def status(self) -> GatewayStatus:
        """What goes on."""
        now = _now()
        return GatewayStatus(
            endpoints=[queue.status(now) for queue in sorted(self._queues.values(), key=attrgetter("base_url"))],
            left_alone=[s for (url, name), b in self._breakers.items() if (s := b.status(url, name, now)) is not None],
            spent=self._budgets.spent,
        )

    async def close(self) -> None:
        """Let go of all connections. Idempotent."""
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        for model in self._models.values():
            await model.close()
        self._models.clear()

    async def _answer(
        self, asking: ModelRequest, queue: EndpointQueue, on_delta: DeltaCallback | None
    ) -> ModelResponse:
        model = self._model(asking.name, asking.base_url)
        ticket = QueueTicket(asking.agent_id, len(asking.request) // BYTES_PER_TOKEN)
        self._raise_if_full(queue, ticket.agent_id)
        held = self._budgets.hold(
            ticket.agent_id, file_of(asking.name)[0] or asking.name, ticket.estimate, asking.spent
        )
        used = Usage()
        self._enter(queue, ticket)
        try:
            answer = await self._tried(model, asking, queue, ticket, _Listener(on_delta))
            used = _used(queue, asking.request, answer)
            queue.succeeded(ticket, used, _now())
        except BadReply as error:
            if error.raw:
                used = _used(queue, asking.request, ModelResponse(error.raw, 0))
            raise
        finally:
            self._leave(queue, ticket)
            self._budgets.settle(held, used)
        return answer

    async def _tried(
        self, model: Model, asking: ModelRequest, queue: EndpointQueue, ticket: QueueTicket, listener: _Listener
    ) -> ModelResponse:
        """Try until it is answered, or trying again is of no use."""
        attempts = 0
        breaker = self._breakers.setdefault((asking.base_url, asking.name), CircuitBreaker())
        while True:
            breaker.check(_now())
            await self._granted(queue, ticket, again=attempts > 0)
            try:
                answer = await self._sent(model, asking.request, breaker, listener)
                return msgspec.structs.replace(answer, attempts=attempts + 1)
            except ModelError as error:
                attempts += error.attempts
                backoff_s = self._backoff_s(attempts)
                self._fail_tickets(queue.failed(error, backoff_s, _now()), queue)
                given_up = queue.shut or breaker.open or attempts >= self._limits.attempts_max
                if error.kind not in RETRIED or given_up or error.retry_after_s > PAUSE_S_MAX:
                    error.attempts = attempts
                    raise
                waits = 0.0 if error.kind == "rate_limited" else max(backoff_s, error.retry_after_s)
            finally:
                self._under_way -= 1
                queue.end(_now())
                self._pump()
            queue.count_retry()
            if waits:  # beside the queue: the others need not wait for it
                await asyncio.sleep(waits)

    async def _sent(self, model: Model, request: bytes, breaker: CircuitBreaker, listener: _Listener) -> ModelResponse:
        """Send it once. Raises ModelError; one of no attempts where the model is left alone."""
        probing = breaker.begin(_now())
        try:
            answer = await model.ask(request, on_delta=listener.next_try())
        except ModelError as error:
            breaker.failed(error, _now())
            raise
        finally:
            if probing:
                breaker.end()
        breaker.succeeded()
        return answer

    def _backoff_s(self, attempts: int) -> float:
        """Doubled with each attempt; a random half of it is left out, so that those who failed together come apart."""
        return min(BACKOFF_S * 2 ** (attempts - 1), BACKOFF_S_MAX) * (1 - self._chance() / 2)

    async def _granted(self, queue: EndpointQueue, ticket: QueueTicket, *, again: bool) -> None:
        """Wait until the request may be sent: it is under way then. Raises ModelError where the lane is shut."""
        ticket.granted = asyncio.get_running_loop().create_future()
        queue.enter(ticket, _now(), again=again)
        self._pump()
        try:
            await ticket.granted
        except asyncio.CancelledError:
            if ticket.granted.done() and not ticket.granted.cancelled() and ticket.granted.exception() is None:
                self._under_way -= 1  # it was its turn, in the same moment
                queue.end(_now())
                self._pump()
            raise

    def _pump(self) -> None:
        """Send what may be sent, by lanes in rounds, and in each by agents in rounds; time does the rest."""
        now, soonest = _now(), float("inf")
        while self._under_way < self._limits.asks_max:
            queue, soonest = self._readiest(now)
            if queue is None:
                break
            self._queues.move_to_end(queue.base_url)
            self._under_way += 1
            queue.next(now).granted.set_result(None)
        if self._under_way < self._limits.asks_max and soonest < float("inf"):
            self._wake_in(soonest, now)

    def _wake_in(self, seconds: float, now: float) -> None:
        """Look again then, unless that is done earlier anyway."""
        if self._wake is not None:
            if self._wake.when() <= now + seconds:
                return
            self._wake.cancel()
        self._wake = asyncio.get_running_loop().call_later(seconds, self._woken)

    def _woken(self) -> None:
        self._wake = None
        self._pump()

    def _readiest(self, now: float) -> tuple[EndpointQueue | None, float]:
        """The first lane, in the order of the round, from which something may be sent; else None, and how soon."""
        soonest = float("inf")
        for queue in self._queues.values():
            wait = queue.wait(now)
            if wait <= 0:
                return queue, 0
            soonest = min(soonest, wait)
        return None, soonest

    def _fail_tickets(self, tickets: Sequence[QueueTicket], queue: EndpointQueue) -> None:
        for ticket in tickets:
            if not ticket.granted.done():
                ticket.granted.set_exception(queue.refusal(_now()))

    def _raise_if_full(self, queue: EndpointQueue, agent_id: str) -> None:
        """Raises ModelError where nothing more may wait."""
        limits, full = self._limits, ""
        if self._entered >= limits.waiting_max + limits.asks_max:
            full = f"{self._entered} requests wait for model endpoints already"
        elif agent_id and self._inside[agent_id] >= limits.agent_waiting_max:
            full = f"{self._inside[agent_id]} requests of {agent_id!r} wait for model endpoints already"
        if full:
            hint = queue.hint(_now())
            raise ModelError(
                f"{full}, the most that may. Try again in {hint:.0f} s. Your message is kept, and answered together "
                "with the next.",
                kind="busy",
                attempts=0,
                retry_after_s=hint,
            )

    def _enter(self, queue: EndpointQueue, ticket: QueueTicket) -> None:
        queue.arrive()
        self._entered += 1
        self._inside[ticket.agent_id] += 1

    def _leave(self, queue: EndpointQueue, ticket: QueueTicket) -> None:
        queue.leave(ticket)
        self._entered -= 1
        self._inside[ticket.agent_id] -= 1
        if not self._inside[ticket.agent_id]:
            del self._inside[ticket.agent_id]

    def _queue_of(self, base_url: str) -> EndpointQueue:
        if base_url not in self._queues:
            self._queues[base_url] = EndpointQueue(base_url, self._limits)
        return self._queues[base_url]

    def _model(self, name: str, base_url: str) -> Model:
        """Connections are kept, one model for each name and place. Raises ModelError where there can be none."""
        if (name, base_url) not in self._models:
            self._models[name, base_url] = self._make(name, base_url)
        return self._models[name, base_url]


class GatewayActor:
    """The Ray actor that talks to model endpoints: the only process of a cluster that imports their client.

    Its limits come from the variables of the node that it runs on. Its constructor cannot fail: limits that cannot be
    are what every request is told.
    """

    def __init__(self, root: str, limits: GatewayLimits | None = None) -> None:
        self._unusable = ""
        try:
            limits = limits or limits_from(os.environ)
        except BadInput as error:
            self._unusable = str(error)
        self._gateway = Gateway(limits=limits, root=Path(root))
        self._gatherings: dict[str, RequestBatch] = {}
        self._dropped: OrderedDict[str, Sequence[int]] = OrderedDict()
        """What was dropped of calls that have not come."""

    async def ask(
        self, name: str, base_url: str, request: bytes, agent_id: str = "", spent: Spent = NOTHING
    ) -> ModelResponse | ModelError:
        """`Gateway.ask`, with a ModelError as a value."""
        if self._unusable:
            return self._refusal()
        return await self._gateway.outcome(ModelRequest(agent_id, name, base_url, request, spent))

    async def ask_many(
        self, askings: Sequence[ModelRequest], key: str = ""
    ) -> AsyncIterator[list[tuple[int, ResponseItem]]]:
        """`Gateway.ask_many`: one call for all that a host's tick asks. `key`: what `drop` knows it by."""
        if self._unusable:
            yield [(place, self._refusal()) for place in range(len(askings))]
            return
        gathering = self._gateway.gathered(askings)
        gathering.drop(self._dropped.pop(key, ()))
        self._gatherings[key] = gathering
        try:
            async with aclosing(gathering.batches()) as batches:
                async for batch in batches:
                    yield batch
        finally:
            del self._gatherings[key]

    async def drop(self, places: Mapping[str, Sequence[int]]) -> None:
        """Nobody waits any more for these places of those calls of `ask_many`."""
        for key, dropped in places.items():
            if key in self._gatherings:
                self._gatherings[key].drop(dropped)
            else:  # it has not begun yet, or has ended
                self._dropped[key] = dropped
                if len(self._dropped) > DROPPED_MAX:
                    self._dropped.popitem(last=False)

    async def status(self) -> GatewayStatus:
        """`Gateway.status`."""
        return self._gateway.status()

    def _refusal(self) -> ModelError:
        return ModelError(f"The gateway sends nothing: {self._unusable}", kind="rejected", attempts=0)


def _used(queue: EndpointQueue, request: bytes, answer: ModelResponse) -> Usage:
    """Return what an answer cost, as the endpoint says, and count it; where it does not say, a guess by the bytes."""
    used = daily_usage.usage_of_answer(request, answer)
    queue.count_tokens(used)
    return used


def _now() -> float:
    return asyncio.get_running_loop().time()
