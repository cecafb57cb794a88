"""The models that one agent asks, by name: its own, the one for summaries, the one for when its own cannot be asked."""

from collections.abc import Callable

from everlog.actors.models.daily_usage import Ledger
from everlog.actors.models.model_types import served_name
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import NOTHING, DeltaCallback, Model, ModelResponse
from everlog.events import BadReply


class ModelPool:
    """Made when they are first asked: an agent can be opened, read and deleted without a key."""

    __slots__ = ("_make", "_models", "ledger", "window")

    def __init__(self, make: Callable[[str], Model], ledger: Ledger) -> None:
        self._make = make
        self.ledger = ledger
        """What was used up, for those who hold it against a budget."""
        self._models: dict[str, Model] = {}
        self.window = 0
        """Tokens that the agent may send at once: what a model in a file needs to know. 0: the file's own."""

    async def ask(self, name: str, request: bytes, on_delta: DeltaCallback | None = None) -> ModelResponse:
        """Send exactly these bytes to the model of that name. Raises ModelError, for a missing key too.

        `on_delta` is told the pieces, where the model tells them.
        """
        served = served_name(name, self.window)
        if served not in self._models:
            self._models[served] = self._make(served)
        counts = name != OFFLINE
        spent = await self.ledger.spent() if counts else NOTHING
        try:
            answer = await self._models[served].ask(request, on_delta=on_delta, spent=spent)
        except BadReply as error:
            if counts and error.raw:
                self.ledger.add(name, request, ModelResponse(error.raw, 0))
            raise
        if counts:
            self.ledger.add(name, request, answer)
        return answer

    async def keep(self, *names: str) -> None:
        """Let go of all models but these."""
        kept = [served_name(name, self.window) for name in names]
        for name in [name for name in self._models if name not in kept]:
            await self._models.pop(name).close()
