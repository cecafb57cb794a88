"""Log the calls of models for the log of the program: agent, model, address, time and kind of failure.

Used by `Gateway`. The text of a failure is not logged: a server may quote the request in it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from everlog.actors.gateway.request_batch import ModelRequest
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.ports.loggers import logger_of
from everlog.events import ModelError

_log = logger_of("gateway")


def _asked(asking: ModelRequest) -> str:
    host = urlsplit(asking.base_url).netloc.rpartition("@")[2] or "the default endpoint"
    return f"{asking.name!r} at {host}, for {asking.agent_id!r}, {len(asking.request):,} bytes"


@contextmanager
def failures_logged(asking: ModelRequest) -> Iterator[None]:
    """Log a ModelError that leaves the block."""
    try:
        yield
    except ModelError as error:
        _log.warning("call failed (%s) after %d tries: %s", error.kind, error.attempts, _asked(asking))
        raise


def log_answer(asking: ModelRequest, answer: ModelResponse) -> None:
    """Log that a call was answered."""
    _log.info("call answered in %d ms, %d tries: %s", answer.latency_us // 1000, answer.attempts, _asked(asking))
