"""From a model to whoever hears its pieces, over several tries."""

from everlog.actors.ports.effects import DeltaCallback, Model, ModelResponse, ReplyDelta


class RetryingModel:
    """A model, whose pieces are told to somebody; when it is asked again, those told before count for nothing."""

    __slots__ = ("_hear", "_model", "_said")

    def __init__(self, model: Model, hear: DeltaCallback | None) -> None:
        self._model = model
        self._hear = hear
        self._said = False

    async def ask(self, request: bytes) -> ModelResponse:
        """Send exactly these bytes. Raises ModelError."""
        aloud = getattr(self._model, "ask_aloud", None)
        if self._hear is None or aloud is None:
            return await self._model.ask(request)
        if self._said:
            self._hear(ReplyDelta(restart=True))
            self._said = False
        answer: ModelResponse = await aloud(request, self._tell)
        return answer

    def _tell(self, piece: ReplyDelta) -> None:
        if self._hear is not None:
            self._said = True
            self._hear(piece)
