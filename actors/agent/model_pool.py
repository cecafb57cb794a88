"""Hold the model clients of one agent, by name: its own model, the summary model, the fallback model.

Used by `Agent`. Every answer is added to the ledger, even one that cannot be read: it was paid for.
"""

from collections.abc import Callable

from everlog.actors.models.daily_usage import Ledger
from everlog.actors.models.model_types import served_name
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import NOTHING, DeltaCallback, Model, ModelResponse
from everlog.events import BadReply


class ModelPool:
    """Model clients, created at their first request: an agent can be opened, read and deleted without an API key."""

    __slots__ = ("_make", "_models", "ledger", "window")

    def __init__(self, make: Callable[[str], Model], ledger: Ledger) -> None:
        self._make = make
        self.ledger = ledger
        """Usage so far, compared with the budgets."""
        self._models: dict[str, Model] = {}
        self.window = 0
        """Context window in tokens, which a model in a file needs; 0: the file's own."""

    async def ask(self, name: str, request: bytes, on_delta: DeltaCallback | None = None) -> ModelResponse:
        """Send exactly these bytes to the named model and return the response. Raise ModelError, also for a missing
        key.

        `on_delta` gets the chunks of the reply, if the model streams.
        """
        served = served_name(name, self.window)
        if served not in self._models:
            self._models[served] = self._make(served)
        counts = name != OFFLINE
        spent = await self.ledger.spent() if counts else NOTHING
        try:
            answer = await self._models[served].ask(request, on_delta=on_delta, spent=spent)
        except BadReply as error:
            # A reply that cannot be read was paid for as well.
            if counts and error.raw:
                self.ledger.add(name, request, ModelResponse(error.raw, 0))
            raise
        if counts:
            self.ledger.add(name, request, answer)
        return answer

    async def keep(self, *names: str) -> None:
        """Close all models except the named ones."""
        kept = [served_name(name, self.window) for name in names]
        for name in [name for name in self._models if name not in kept]:
            await self._models.pop(name).close()
