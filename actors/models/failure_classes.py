"""Classes of failures of model endpoints, and what each leads to: one table for gateway and agents. Pure.

`classify_failure.py` finds the class of a server's answer. The class is the `kind` of a ModelError and the `failure` of
an event. Used by the gateway (retries, circuit breaker) and `model_step.py` (fallback model). The names are recorded in
logs.
"""

from collections.abc import Mapping

import msgspec

from everlog.events import ModelError


class FailureClass(msgspec.Struct, frozen=True):
    """Consequences of one class of failures."""

    what: str
    cure: str = ""
    """Advice to the user."""
    retried: bool = False
    """True if the gateway tries again, because that may help."""
    trips: bool = False
    """True if several such failures in a row open the model's circuit breaker."""
    shuts: bool = False
    """True if every other request would fail in the same way:
    the endpoint's queue closes, except for single test requests.
    """
    falls_back: bool = False
    """True if the agent's fallback model, if there is one, is called instead."""


def _passing(what: str, cure: str = "Try again later.", *, trips: bool = True) -> FailureClass:
    return FailureClass(what, cure, retried=True, trips=trips, falls_back=True)


def _lasting(what: str, cure: str, *, shuts: bool = False) -> FailureClass:
    return FailureClass(what, cure, shuts=shuts, falls_back=True)


_KEY = "Set OPENAI_API_KEY to a key that may use {model}."
_ADDRESS = "Check --base-url (or OPENAI_BASE_URL)."

FAILURES: Mapping[str, FailureClass] = {
    "unreachable": _passing("no connection", "Is the server running, and is --base-url right?"),
    "timeout": _passing("no answer in 120 s, a stream without a piece for as long, or 900 s in all"),
    "cut": _passing("the answer broke off before its end"),
    "server": _passing("the endpoint failed: 408, 409, 425 or 5xx"),
    "overloaded": _passing("too much to do: 503, 529, or a word of overload"),
    # A server that loads a model or limits the rate is alive: such failures do not open the breaker.
    "loading": _passing("the model is being loaded", "Try again when it is.", trips=False),
    "rate_limited": _passing("too many requests: 429", trips=False),
    "key": _lasting("the key was refused: 401, or words like it", _KEY, shuts=True),
    "credit": _lasting("the account is out of credit", "Add to it, or set another OPENAI_API_KEY.", shuts=True),
    "forbidden": _lasting("no right to this model: 403", _KEY),
    "missing": _lasting("no such model or path: 404", "Check the name of the model, and --base-url."),
    "tools": _lasting(
        "the model cannot be asked with tools",
        "Choose another way to call functions, with --calling schema or --calling text, or another model.",
    ),
    "filtered": _lasting("a content filter refused request or reply", "Say it in other words, or use another model."),
    "address": _lasting("a redirect, TLS where there is none, or none where there is", _ADDRESS),
    "rejected": _lasting("the request was refused: 400 and the rest", "Check the name of the model, and --base-url."),
    "garbage": _lasting("the answer cannot be read, or holds none", "Check --base-url and --model."),
    "overflow": FailureClass("longer than the context window, in any words", "The context is made shorter."),
    "context": FailureClass("the context cannot be made to fit"),
    "busy": FailureClass("too many requests wait already"),
    "budget": FailureClass("a budget is used up"),
}
"""Classes by the `kind` of a ModelError."""

RETRIED = tuple(kind for kind, failure in FAILURES.items() if failure.retried)
"""Kinds of failures that are retried."""


def failure_of(error: ModelError) -> FailureClass:
    """Return the class of an error. A class for an unknown kind has no consequences."""
    return FAILURES.get(error.kind, FailureClass(error.kind))


def cure_of(kind: str, model: str) -> str:
    """Return the advice for a failure of that kind, for a request to that model."""
    return FAILURES[kind].cure.replace("{model}", repr(model))
