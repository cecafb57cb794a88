"""The way from a host to models: the offline one is in this process, all others are behind the gateway.

What the agents of a host ask in the same moment is one call of Ray's.
"""

import asyncio
from typing import Any

from actors.effects import Answer, Model
from actors.setup import OFFLINE
from actors.spending import NOTHING, Spent
from actors.system import model_for
from events import ModelError

from . import link
from .failing import first_line
from .gateway import Asking, GatewayActor


class Asker:
    """Sends requests for all agents of a process."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._offline: Model | None = None
        self._waiting: list[tuple[Asking, asyncio.Future[Answer]]] = []
        self._calls: set[asyncio.Task[None]] = set()

    async def ask(self, name: str, base_url: str, request: bytes, agent_id: str = "", spent: Spent = NOTHING) -> Answer:
        """Send exactly these bytes. Raises ModelError."""
        if name == OFFLINE:
            self._offline = self._offline or model_for(name)
            return await self._offline.ask(request)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting.append((Asking(agent_id, name, base_url, request, spent), answer))
        return await answer

    def _send(self) -> None:
        """One call for all that wait."""
        waiting, self._waiting = self._waiting, []
        call = asyncio.get_running_loop().create_task(self._call(waiting))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, waiting: "list[tuple[Asking, asyncio.Future[Answer]]]") -> None:
        answers = [answer for _, answer in waiting]
        failed = ModelError("The gateway gave no answer. Try again.", kind="unreachable")
        try:
            async for reference in self._gateway().ask_many.remote([asking for asking, _ in waiting]):
                for place, outcome in await reference:
                    _settle(answers[place], outcome)
        except link.RayError as error:
            failed = ModelError(f"The gateway is gone ({first_line(error)}). Try again.", kind="unreachable")
        finally:
            for answer in answers:
                _settle(answer, failed)

    def _gateway(self) -> Any:
        return link.made(self._root, "gateway", GatewayActor, max_restarts=-1, max_task_retries=3, get_if_exists=True)


def _settle(answer: "asyncio.Future[Answer]", outcome: Answer | ModelError) -> None:
    if answer.done():
        return
    if isinstance(outcome, ModelError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
