"""Offer the offline model through the model protocol. `reply` is pure: equal requests have equal answers, byte for
byte.

Used by `make_model.py`, and by the tour.
"""

from everlog.actors.models.offline import answers, extractive_summary
from everlog.actors.models.offline.completion import INTRODUCTION, MODEL, Completion
from everlog.actors.models.offline.request import OfflineRequest, parse_request
from everlog.actors.ports.effects import NOTHING, DeltaCallback, ModelResponse, Spent
from everlog.actors.ports.real_clock import monotonic_us

__all__ = ["MODEL", "OfflineModel", "reply"]

NO_HELPER = f"{INTRODUCTION} I know nothing that could answer this. A real model can be asked with --helper MODEL."

_HELPER = "You help another assistant"
"""Beginning of the system message of a question from another model."""


class OfflineModel:
    """Model protocol over `reply`."""

    name = "offline"

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Answer at once. Raise ModelError if the request cannot be parsed."""
        started = monotonic_us()
        raw = reply(request).decode()
        return ModelResponse(raw, monotonic_us() - started)

    async def close(self) -> None:
        """Do nothing: there are no connections."""


def reply(body: bytes) -> bytes:
    """Return the body of a chat completion that answers `body`. Raise ModelError if `body` is no request."""
    request = parse_request(body)
    if request.functions is None:
        if words := extractive_summary.limit(request.system):
            return Completion(thought=extractive_summary.summary(request.last_text, words)).encoded(body)
        if _HELPER in request.system:
            return Completion(thought=NO_HELPER).encoded(body)
    return _allowed(answers.complete(request), request).encoded(body)


def _allowed(made: Completion, request: OfflineRequest) -> Completion:
    """Return the reply without calls of unknown functions, and with its sentences as a call of `send_message`.

    In the first reply that call comes first: an agent checks that its first reply begins with a message.
    """
    functions = request.functions or set()
    wanted, made.calls = made.calls, [call for call in made.calls if call[0] in functions]
    if len(made.calls) < len(wanted) and not made.says:
        made.say("I would need a function for that which I was not given.")
    if request.first and not made.says:
        made.say(answers.greeting(request, ask=not made.calls))
    if made.says and "send_message" in functions:
        place = 0 if request.first else len(made.calls)
        made.calls.insert(place, ("send_message", {"message": " ".join(made.says)}))
    elif made.says:
        made.thought = " ".join(made.says)
    return made
