"""The classes that failures of model endpoints fall into, and what each leads to: one table for gateway and agents.

What a server says is put into a class by `endpoint.py`; the class is the `kind` of a ModelError and the `failure` of an
event. Pure.
"""

from collections.abc import Mapping

import msgspec

from events import ModelError


class Failure(msgspec.Struct, frozen=True):
    """What is done about one class of failures."""

    what: str
    retried: bool = False
    """The gateway tries again: it may help."""
    shuts: bool = False
    """Every other request would meet it as well: the endpoint is shut, but for a probe now and then."""
    falls_back: bool = False
    """The fallback model is asked instead, where the agent has one."""


FAILURES: Mapping[str, Failure] = {
    "unreachable": Failure("no connection", retried=True, falls_back=True),
    "server": Failure("the endpoint failed: 408, 409 or 5xx", retried=True, falls_back=True),
    "rate_limited": Failure("too many requests: 429", retried=True, falls_back=True),
    "key": Failure("the key was refused: 401", shuts=True, falls_back=True),
    "credit": Failure("the account is out of credit: 402", shuts=True, falls_back=True),
    "rejected": Failure("the request was refused: 400, 403, 404 and the rest", falls_back=True),
    "overflow": Failure("the request is longer than the context window"),
    "garbage": Failure("the answer cannot be read", falls_back=True),
    "context": Failure("the context cannot be made to fit"),
    "busy": Failure("too many requests wait already"),
    "budget": Failure("a budget is used up"),
}
"""By the `kind` of a ModelError."""


def failure_of(error: ModelError) -> Failure:
    """The class of an error; one that nobody knows leads to nothing but its event."""
    return FAILURES.get(error.kind, Failure(error.kind))
