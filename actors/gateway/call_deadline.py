"""End a call of a model when its time is over: a server that always sends a little would be waited for without end.

Used by `gateway.py`, around each try of a request. A model without limits, such as the offline model or a model file,
is not ended: its time is that of this machine.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from everlog.actors.models.classify_failure import KEPT
from everlog.actors.models.model_types import CallLimits
from everlog.actors.ports.effects import Model
from everlog.events import ModelError


def call_s_of(model: Model) -> float:
    """Return the seconds that a call of the model may take, with all its tries; infinity for a model without limits."""
    limits = getattr(model, "limits", None)
    return limits.call_s if isinstance(limits, CallLimits) else float("inf")


@asynccontextmanager
async def until(ends: float, name: str, model: Model) -> AsyncIterator[None]:
    """Run the block up to the time `ends` of the event loop (infinity: any time). Raises ModelError of the kind
    `timeout` if it lasts longer.
    """
    try:
        async with asyncio.timeout_at(None if ends == float("inf") else ends) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise ModelError(
            f"The model {name!r} did not come to an end in {call_s_of(model):g} s, with all tries. Raise `call_s` of "
            f"its endpoint in models.toml, or use a faster model.{KEPT}",
            kind="timeout",
        ) from None
