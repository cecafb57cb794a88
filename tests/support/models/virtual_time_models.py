"""Models for a gateway in virtual time: they take some time, record their requests with times, and can fail."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.ports.effects import ModelResponse
from everlog.events import ModelError
from tests.support.agent_world import completion
from tests.support.virtual_time import WallClock
from tests.support.virtual_time import run as run_virtual

Script = Callable[[bytes, int], ModelResponse | ModelError]
"""Function of a request and the number of earlier requests; returns an answer or an error."""


def answered(request: bytes, before: int) -> ModelResponse:
    """Return an answer of ten tokens to any request."""
    return ModelResponse(completion(total=10, prompt=8), 1000)


def failing(kind: str, times: int, after_s: float = 0) -> Script:
    """Return a script that fails `times` times, then answers."""

    def script(request: bytes, before: int) -> ModelResponse | ModelError:
        error = ModelError(f"It is {kind}.", kind=kind, retry_after_s=after_s)
        return error if before < times else answered(request, before)

    return script


class SlowModel:
    """A model that takes `seconds` for each request."""

    def __init__(self, script: Script = answered, seconds: float = 1) -> None:
        self.name = "slow"
        self.script = script
        self.seconds = seconds
        self.asked: list[bytes] = []
        self.times: list[float] = []
        self.most = self.now = self.closed = 0

    async def ask(self, request: bytes, **_: Any) -> ModelResponse:
        before = len(self.asked)
        self.asked.append(request)
        self.times.append(asyncio.get_running_loop().time())
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        came = self.script(request, before)
        if isinstance(came, ModelError):
            raise came
        return came

    async def close(self) -> None:
        self.closed += 1


def gateway(model: SlowModel, **limits: Any) -> Gateway:
    """Return a gateway that always uses this model, without random jitter."""
    return Gateway(lambda *_: model, GatewayLimits(**limits), clock=WallClock(), chance=lambda: 0.0)


async def outcome(asking: Coroutine[Any, Any, ModelResponse]) -> ModelResponse | ModelError:
    """Return the outcome, with a ModelError as a value."""
    try:
        return await asking
    except ModelError as error:
        return error


def seconds() -> float:
    """Return the virtual seconds since the test began."""
    return asyncio.get_running_loop().time()


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in virtual time, and check that no task is left."""
    run_virtual(main, collect=False)
