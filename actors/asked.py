"""The models that one agent asks, by name: its own, the one for summaries, the one for when its own cannot be asked."""

from collections.abc import Callable

from .effects import Answer, Hear, Model
from .setup import OFFLINE
from .spending import Ledger


class Models:
    """Made when they are first asked: an agent can be opened, read and deleted without a key."""

    __slots__ = ("_make", "_models", "ledger")

    def __init__(self, make: Callable[[str], Model], ledger: Ledger) -> None:
        self._make = make
        self.ledger = ledger
        """What was used up, for those who hold it against a budget."""
        self._models: dict[str, Model] = {}

    async def ask(self, name: str, request: bytes, hear: Hear | None = None) -> Answer:
        """Send exactly these bytes to the model of that name; `hear` is told the pieces, where the model tells them.

        Raises ModelError, for a missing key too.
        """
        if name not in self._models:
            self._models[name] = self._make(name)
        model = self._models[name]
        account = getattr(model, "account", None)
        if account is not None and name != OFFLINE:
            account(await self.ledger.spent())
        answer = await _asked(model, request, hear)
        if account is not None and name != OFFLINE:
            self.ledger.add(name, request, answer)
        return answer

    async def keep(self, *names: str) -> None:
        """Let go of all models but these."""
        for name in [name for name in self._models if name not in names]:
            await self._models.pop(name).close()


async def _asked(model: Model, request: bytes, hear: Hear | None) -> Answer:
    aloud = None if hear is None else getattr(model, "ask_aloud", None)
    if aloud is None or hear is None:
        return await model.ask(request)
    answer: Answer = await aloud(request, hear)
    return answer
