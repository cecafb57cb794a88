"""Call model endpoints for all agents of a process or cluster, and retry requests that can be retried.

Used by `open_system` in this process, and by `GatewayClient` through `GatewayActor` in a cluster.

Agents are served in rounds, so that none starves the others. A request that is too much, too fast or too expensive is
refused with the reason. Times are those of `GatewayTime`; the clock only tells the day.
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
from everlog.actors.gateway.call_deadline import call_s_of, until
from everlog.actors.gateway.call_log import failures_logged, log_answer
from everlog.actors.gateway.circuit_breaker import CircuitBreaker
from everlog.actors.gateway.delta_forwarder import DeltaForwarder
from everlog.actors.gateway.endpoint_queue import EndpointQueue, QueueTicket
from everlog.actors.gateway.gateway_limits import GatewayLimits, limits_from
from everlog.actors.gateway.gateway_status import GatewayStatus
from everlog.actors.gateway.gateway_time import GatewayTime, LoopTime
from everlog.actors.gateway.model_factory import ModelFactory, checked, real_models
from everlog.actors.gateway.request_batch import ModelOutcome, ModelRequest, RequestBatch, ResponseItem
from everlog.actors.gateway.store_prices import prices_at
from everlog.actors.models import daily_usage
from everlog.actors.models.daily_usage import BYTES_PER_TOKEN
from everlog.actors.models.failure_classes import RETRIED
from everlog.actors.models.model_types import file_of
from everlog.actors.ports import real_clock
from everlog.actors.ports.agent_constants import BACKOFF_S, BACKOFF_S_MAX, MODEL_REPLIES_GATHER_S, OFFLINE, PAUSE_S_MAX
from everlog.actors.ports.effects import NOTHING, Clock, DeltaCallback, Model, ModelResponse, Spent
from everlog.events import BadInput, BadReply, ModelError, Usage
from everlog.store import store_folder

DROPPED_MAX = 1000
"""Calls for which cancelled requests are remembered, if the cancellation arrives before the call."""


class Gateway:
    """Sends requests of agents to models."""

    def __init__(
        self,
        models: ModelFactory | None = None,
        limits: GatewayLimits | None = None,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = real_clock.chance,
        root: Path | None = None,
        time: GatewayTime | None = None,
    ) -> None:
        """Create the gateway. `models`: None: the real ones, as the store in `root` describes them. `limits`: None:
        defaults.

        `chance` returns random numbers from 0 (inclusive) to 1 (exclusive). `time`: None: that of the event loop.
        """
        self._time = time or LoopTime()
        self._limits = limits or GatewayLimits()
        self._make = models or real_models(self._limits, root)
        self._chance = chance
        self._budgets = Budgets(self._limits, clock or real_clock.RealClock(), partial(prices_at, root, self._limits))
        self._models: dict[tuple[str, str], Model] = {}
        self._queues: OrderedDict[str, EndpointQueue] = OrderedDict()
        self._breakers: dict[tuple[str, str], CircuitBreaker] = {}
        """By base URL and name of the model."""
        self._inside: Counter[str] = Counter()
        """Requests in progress or waiting, by agent."""
        self._entered = self._under_way = 0
        self._wake: tuple[float, asyncio.Handle] | None = None
        """Time of the planned `_pump`, and its handle."""

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
        """Send exactly these bytes to the model `name` at `base_url` (empty: the client's default). Return its answer.

        Without bytes nothing is asked: ModelError is raised if the model cannot be asked, as far as it can tell.
        `agent_id`: agent of the request; requests without an agent ("") share one queue, and have no budget of their
        own. `spent`: usage of today and limits according to the agent's log. `on_delta` is called with the chunks of a
        streamed reply. Raises ModelError: that of the endpoint; `busy` if a queue is full, and OverBudget (`budget`) if
        a budget is used up, both before anything is sent. Cancelling the task removes the request from its queue and
        closes its connection.
        """
        if not request:
            return await checked(self._model(name, base_url))
        if name == OFFLINE:  # runs in this process at no cost: no queue, no budget
            return await self._model(name, base_url).ask(request)
        queue = self._queue_of(base_url)
        asking = ModelRequest(agent_id, name, base_url, request, spent)
        with queue.counted(), failures_logged(asking):
            answer = await self._answer(asking, queue, on_delta)
        log_answer(asking, answer)
        return answer

    def gathered(
        self, model_requests: Sequence[ModelRequest], gather_s: float = MODEL_REPLIES_GATHER_S
    ) -> RequestBatch:
        """Send many requests at once, as `ask` does. Items carry the index of their request, which has one outcome."""
        return RequestBatch(model_requests, self.outcome, gather_s)

    def ask_many(
        self, model_requests: Sequence[ModelRequest], gather_s: float = MODEL_REPLIES_GATHER_S
    ) -> AsyncGenerator[list[tuple[int, ResponseItem]], None]:
        """Send many requests at once. Yield their chunks and outcomes in batches."""
        return self.gathered(model_requests, gather_s).batches()

    async def outcome(self, asking: ModelRequest, on_delta: DeltaCallback | None = None) -> ModelOutcome:
        """Send a request as `ask` does, and return a ModelError as a value."""
        try:
            return await self.ask(
                asking.name, asking.base_url, asking.request, asking.agent_id, asking.spent, on_delta=on_delta
            )
        except ModelError as error:
            return error

    def status(self) -> GatewayStatus:
        """Return the figures of the gateway now."""
        now = self._time.now()
        return GatewayStatus(
            endpoints=[queue.status(now) for queue in sorted(self._queues.values(), key=attrgetter("base_url"))],
            left_alone=[s for (url, name), b in self._breakers.items() if (s := b.status(url, name, now)) is not None],
            spent=self._budgets.spent,
        )

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._wake is not None:
            self._wake[1].cancel()
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
            answer = await self._tried(model, asking, queue, ticket, DeltaForwarder(on_delta))
            used = _used(queue, asking.request, answer)
            queue.succeeded(ticket, used, self._time.now())
        except BadReply as error:
            if error.raw:
                used = _used(queue, asking.request, ModelResponse(error.raw, 0))
            raise
        finally:
            self._leave(queue, ticket)
            self._budgets.settle(held, used)
        return answer

    async def _tried(
        self, model: Model, asking: ModelRequest, queue: EndpointQueue, ticket: QueueTicket, deltas: DeltaForwarder
    ) -> ModelResponse:
        """Send a request until it is answered, or until another try is useless, or the time of the call is over."""
        attempts, ends = 0, float("inf")
        breaker = self._breakers.setdefault((asking.base_url, asking.name), CircuitBreaker())
        while True:
            breaker.check(self._time.now())
            await self._granted(queue, ticket, again=attempts > 0)
            if ends == float("inf"):  # only now: the wait in the queue is not the endpoint's
                ends = self._time.now() + call_s_of(model)
            try:
                async with until(ends, asking.name, model):
                    answer = await self._sent(model, asking.request, breaker, deltas)
                return msgspec.structs.replace(answer, attempts=attempts + 1)
            except ModelError as error:
                attempts += error.attempts
                backoff_s = self._backoff_s(attempts)
                self._fail_tickets(queue.failed(error, backoff_s, self._time.now()), queue)
                given_up = queue.shut or breaker.open or attempts >= self._limits.attempts_max
                if error.kind not in RETRIED or given_up or error.retry_after_s > PAUSE_S_MAX:
                    error.attempts = attempts
                    raise
                if self._time.now() + error.retry_after_s >= ends:
                    error.attempts = attempts
                    raise
                # A rate limit pauses the whole queue (`queue.failed`), so this request waits there and not here too.
                waits = 0.0 if error.kind == "rate_limited" else max(backoff_s, error.retry_after_s)
            finally:
                self._under_way -= 1
                queue.end(self._time.now())
                self._pump()
            queue.count_retry()
            if waits:  # outside the queue, so that other requests need not wait too
                await self._time.sleep(waits)

    async def _sent(
        self, model: Model, request: bytes, breaker: CircuitBreaker, deltas: DeltaForwarder
    ) -> ModelResponse:
        """Send a request once. Raises ModelError; with 0 attempts if the circuit breaker of the model is open."""
        probing = breaker.begin(self._time.now())
        try:
            answer = await model.ask(request, on_delta=deltas.next_try())
        except ModelError as error:
            breaker.failed(error, self._time.now())
            raise
        finally:
            if probing:
                breaker.end()
        breaker.succeeded()
        return answer

    def _backoff_s(self, attempts: int) -> float:
        """Return the seconds until the next try: doubled with each attempt, with up to 50 % of random jitter, so that
        requests that failed together are not retried together.
        """
        return min(BACKOFF_S * 2 ** (attempts - 1), BACKOFF_S_MAX) * (1 - self._chance() / 2)

    async def _granted(self, queue: EndpointQueue, ticket: QueueTicket, *, again: bool) -> None:
        """Wait until the request may be sent; it is in progress then. Raises ModelError if the queue is shut."""
        ticket.granted = asyncio.get_running_loop().create_future()
        queue.enter(ticket, self._time.now(), again=again)
        self._pump()
        try:
            await ticket.granted
        except asyncio.CancelledError:
            if ticket.granted.done() and not ticket.granted.cancelled() and ticket.granted.exception() is None:
                self._under_way -= 1  # granted in the same moment: give the grant back, or it would be lost
                queue.end(self._time.now())
                self._pump()
            raise

    def _pump(self) -> None:
        """Send the requests that may be sent, in rounds over the endpoint queues, and in each queue in rounds over the
        agents.

        If requests must wait for time to pass, plan the next call.
        """
        now, soonest = self._time.now(), float("inf")
        while self._under_way < self._limits.asks_max:
            queue, soonest = self._first_ready(now)
            if queue is None:
                break
            self._queues.move_to_end(queue.base_url)
            self._under_way += 1
            queue.next(now).granted.set_result(None)
        if self._under_way < self._limits.asks_max and soonest < float("inf"):
            self._wake_in(soonest, now)

    def _wake_in(self, seconds: float, now: float) -> None:
        """Plan the next `_pump` in so many seconds, unless an earlier one is planned."""
        if self._wake is not None:
            if self._wake[0] <= now + seconds:
                return
            self._wake[1].cancel()
        self._wake = now + seconds, self._time.call_later(seconds, self._woken)

    def _woken(self) -> None:
        self._wake = None
        self._pump()

    def _first_ready(self, now: float) -> tuple[EndpointQueue | None, float]:
        """Return the first queue of the round with a request that may be sent, else None; and the seconds until
        then.
        """
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
                ticket.granted.set_exception(queue.refusal(self._time.now()))

    def _raise_if_full(self, queue: EndpointQueue, agent_id: str) -> None:
        """Raise ModelError if no further request may wait."""
        limits, full = self._limits, ""
        if self._entered >= limits.waiting_max + limits.asks_max:
            full = f"{self._entered} requests wait for model endpoints already"
        elif agent_id and self._inside[agent_id] >= limits.agent_waiting_max:
            full = f"{self._inside[agent_id]} requests of {agent_id!r} wait for model endpoints already"
        if full:
            hint = queue.hint(self._time.now())
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
        """Return the model of a name and base URL, one for all requests, to reuse connections. Raises ModelError."""
        if (name, base_url) not in self._models:
            self._models[name, base_url] = self._make(name, base_url)
        return self._models[name, base_url]


class GatewayActor:
    """Ray actor of the gateway: the only process of a cluster that imports the client of model endpoints.

    Its limits come from the variables of the node that it runs on. Its constructor cannot fail: with unusable limits,
    every request gets the error.
    """

    def __init__(self, root: str, limits: GatewayLimits | None = None) -> None:
        self._unusable = ""
        try:
            limits = limits or limits_from(os.environ)
        except BadInput as error:
            self._unusable = str(error)
        self._gateway = Gateway(limits=limits, root=store_folder(root))
        self._gatherings: dict[str, RequestBatch] = {}
        self._dropped: OrderedDict[str, Sequence[int]] = OrderedDict()
        """Cancelled requests of calls that have not arrived yet."""

    async def ask(
        self, name: str, base_url: str, request: bytes, agent_id: str = "", spent: Spent = NOTHING
    ) -> ModelResponse | ModelError:
        """Send a request; see `Gateway.ask`. Return a ModelError as a value."""
        if self._unusable:
            return self._refusal()
        return await self._gateway.outcome(ModelRequest(agent_id, name, base_url, request, spent))

    async def ask_many(
        self, model_requests: Sequence[ModelRequest], key: str = ""
    ) -> AsyncIterator[list[tuple[int, ResponseItem]]]:
        """Send all requests of a host's tick in one call; see `Gateway.ask_many`. `key`: id of the call, for `drop`."""
        if self._unusable:
            yield [(place, self._refusal()) for place in range(len(model_requests))]
            return
        gathering = self._gateway.gathered(model_requests)
        gathering.drop(self._dropped.pop(key, ()))
        self._gatherings[key] = gathering
        try:
            async with aclosing(gathering.batches()) as batches:
                async for batch in batches:
                    yield batch
        finally:
            del self._gatherings[key]

    async def drop(self, places: Mapping[str, Sequence[int]]) -> None:
        """Cancel requests that have no waiter any more: by the key of their `ask_many`, their indices in it."""
        for key, dropped in places.items():
            if key in self._gatherings:
                self._gatherings[key].drop(dropped)
            else:  # the call has not arrived yet, or has ended
                self._dropped[key] = dropped
                if len(self._dropped) > DROPPED_MAX:
                    self._dropped.popitem(last=False)

    async def status(self) -> GatewayStatus:
        """Return the figures; see `Gateway.status`."""
        return self._gateway.status()

    def _refusal(self) -> ModelError:
        return ModelError(f"The gateway sends nothing: {self._unusable}", kind="rejected", attempts=0)


def _used(queue: EndpointQueue, request: bytes, answer: ModelResponse) -> Usage:
    """Return the usage of an answer, and count it: as the endpoint reports, else estimated from the bytes."""
    used = daily_usage.usage_of_answer(request, answer)
    queue.count_tokens(used)
    return used
