"""Send a host's model requests: to the offline model in this process, and for all other models to the gateway's actor.

Used by the host actors; `RayRuntime` uses it for reruns. Requests of the same moment go together in one call of Ray.
"""

import asyncio
from typing import Any

from everlog.actors.cluster import ray_api
from everlog.actors.cluster.cluster_errors import first_line
from everlog.actors.gateway.model_factory import checked
from everlog.actors.gateway.request_batch import ModelRequest, ResponseItem
from everlog.actors.models.make_model import model_for
from everlog.actors.ports import real_clock
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import NOTHING, DeltaCallback, Model, ModelResponse, Spent
from everlog.events import ModelError


class _WaitingRequest:
    """One request that waits for its answer."""

    __slots__ = ("alone", "answer", "asking", "key", "on_delta", "place")

    def __init__(self, asking: ModelRequest, on_delta: DeltaCallback | None) -> None:
        self.asking = asking
        self.on_delta = on_delta
        self.answer: asyncio.Future[ModelResponse] = asyncio.get_running_loop().create_future()
        self.key = ""
        """Id of the call that carries the request; empty before it is sent."""
        self.place = 0
        self.alone: Any = None
        """Ray's reference of the call, if the request is its only one."""

    def take(self, came: ResponseItem) -> None:
        """Take chunks of a reply, or its end."""
        if self.answer.done():
            return
        if isinstance(came, list):
            if self.on_delta is not None:
                for piece in came:
                    self.on_delta(piece)
        elif isinstance(came, ModelError):
            self.answer.set_exception(came)
        else:
            self.answer.set_result(came)


class GatewayClient:
    """Sends requests for all agents of a process."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._offline: Model | None = None
        self._waiting: list[_WaitingRequest] = []
        self._calls: set[asyncio.Task[None]] = set()
        self._name = str(real_clock.chance())
        """Random part of the ids of calls, which tells them from those of other processes."""
        self._sent = 0
        self._dropped: dict[str, list[int]] = {}
        self._actor: Any = None
        """The gateway's actor, once it was found. The reference stays valid when Ray restarts the actor."""

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
        """Send exactly these bytes, and return the model's answer. Raises ModelError.

        `on_delta` is called with the chunks of a streamed reply. Cancelling the task cancels the request, wherever it
        is.
        """
        if name == OFFLINE:
            self._offline = self._offline or model_for(name)
            return await (self._offline.ask(request) if request else checked(self._offline))
        waiting = _WaitingRequest(
            ModelRequest(agent_id, name, base_url, request, spent, streamed=on_delta is not None), on_delta
        )
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting.append(waiting)
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            self._drop(waiting)
            raise

    def _send(self) -> None:
        """Send all waiting requests in one call."""
        waiting = [one for one in self._waiting if not one.answer.done()]
        self._waiting = []
        if not waiting:
            return
        self._sent += 1
        for place, one in enumerate(waiting):
            one.key, one.place = f"{self._name}/{self._sent}", place
        call = asyncio.get_running_loop().create_task(self._call(waiting))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, waiting: list[_WaitingRequest]) -> None:
        failed = ModelError("The gateway gave no answer. Try again.", kind="unreachable")
        try:
            if len(waiting) == 1 and waiting[0].on_delta is None:
                await self._call_alone(waiting[0])
            else:
                model_requests = [one.asking for one in waiting]
                async for reference in self._gateway().ask_many.remote(model_requests, waiting[0].key):
                    for place, came in await reference:
                        waiting[place].take(came)
        except ray_api.RayError as error:
            if isinstance(error, ray_api.RayActorError):
                self._actor = None
            failed = ModelError(f"The gateway is gone ({first_line(error)}). Try again.", kind="unreachable")
        finally:
            for one in waiting:
                one.key = ""
                one.take(failed)

    async def _call_alone(self, one: _WaitingRequest) -> None:
        """Send one request as a call of its own, which takes half as long as a stream with one item."""
        asking = one.asking
        one.alone = self._gateway().ask.remote(
            asking.name, asking.base_url, asking.request, asking.agent_id, asking.spent
        )
        one.take(await one.alone)

    def _drop(self, waiting: _WaitingRequest) -> None:
        """Cancel a request that has no waiter any more, together with the others of this moment."""
        if waiting.alone is not None:
            ray_api.cancel(waiting.alone)
            return
        if not waiting.key:
            return
        if not self._dropped:
            asyncio.get_running_loop().call_soon(self._send_dropped)
        self._dropped.setdefault(waiting.key, []).append(waiting.place)

    def _send_dropped(self) -> None:
        dropped, self._dropped = self._dropped, {}
        self._gateway().drop.remote(dropped)

    def _gateway(self) -> Any:
        if self._actor is None:
            from everlog.actors.gateway.gateway import GatewayActor  # hosts with the offline model never need it

            self._actor = ray_api.make_actor(
                self._root, "gateway", GatewayActor, max_restarts=-1, max_task_retries=3, get_if_exists=True
            )
        return self._actor
