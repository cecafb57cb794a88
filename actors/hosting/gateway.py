"""The gateway: the one place from which model endpoints are called, with a limit on how much at once.

One for all agents of a process, or of a cluster. What waits keeps its order; what is too much is refused.
"""

import asyncio
from collections.abc import Callable

from actors.constants import ASKS_MAX, ASKS_WAITING_MAX
from actors.effects import Answer, Model
from actors.system import model_for
from events import ModelError

Models = Callable[[str, str], Model]
"""From a name and the place where it is served (or empty) to a model."""


class Gateway:
    """Asks models on behalf of agents."""

    def __init__(self, models: Models, *, asks_max: int = ASKS_MAX, waiting_max: int = ASKS_WAITING_MAX) -> None:
        self._make = models
        self._models: dict[tuple[str, str], Model] = {}
        self._room = asyncio.Semaphore(asks_max)
        self._waiting = 0
        self._waiting_max = waiting_max

    async def ask(self, name: str, base_url: str, request: bytes) -> Answer:
        """Send exactly these bytes. Raises ModelError, also where too many requests wait."""
        if self._waiting >= self._waiting_max:
            raise ModelError(
                f"{self._waiting_max} requests wait for model endpoints already. Your message is kept; try "
                "again later.",
                kind="busy",
            )
        self._waiting += 1
        try:
            async with self._room:
                return await self._model(name, base_url).ask(request)
        finally:
            self._waiting -= 1

    def _model(self, name: str, base_url: str) -> Model:
        """Connections are kept, one model for each name and place."""
        if (name, base_url) not in self._models:
            self._models[name, base_url] = self._make(name, base_url)
        return self._models[name, base_url]

    async def close(self) -> None:
        """Let go of all connections. Idempotent."""
        for model in self._models.values():
            await model.close()
        self._models.clear()


class GatewayActor:
    """The Ray actor that talks to model endpoints: the only process of a cluster that imports their client."""

    def __init__(self, root: str) -> None:
        self._gateway = Gateway(model_for)

    async def ask(self, name: str, base_url: str, request: bytes) -> Answer | ModelError:
        """`Gateway.ask`, with a ModelError as a value."""
        try:
            return await self._gateway.ask(name, base_url, request)
        except ModelError as error:
            return error
