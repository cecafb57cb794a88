"""The classes that failures of model endpoints fall into, and what each leads to: one table for gateway and agents.

What a server says is put into a class by `refusals.py`; the class is the `kind` of a ModelError and the `failure` of an
event. Pure.
"""

from collections.abc import Mapping

import msgspec

from everlog.events import ModelError


class FailureClass(msgspec.Struct, frozen=True):
    """What is done about one class of failures."""

    what: str
    cure: str = ""
    """What the user is told to do."""
    retried: bool = False
    """The gateway tries again: it may help."""
    trips: bool = False
    """Several in a row, and the model is left alone for a while."""
    shuts: bool = False
    """Every other request would meet it as well: the endpoint is shut, but for a probe now and then."""
    falls_back: bool = False
    """The fallback model is asked instead, where the agent has one."""


def _passing(what: str, cure: str = "Try again later.", *, trips: bool = True) -> FailureClass:
    return FailureClass(what, cure, retried=True, trips=trips, falls_back=True)


def _lasting(what: str, cure: str, *, shuts: bool = False) -> FailureClass:
    return FailureClass(what, cure, shuts=shuts, falls_back=True)


_KEY = "Set OPENAI_API_KEY to a key that may use {model}."
_ADDRESS = "Check --base-url (or OPENAI_BASE_URL)."

FAILURES: Mapping[str, FailureClass] = {
    "unreachable": _passing("no connection", "Is the server running, and is --base-url right?"),
    "timeout": _passing("no answer in 120 s, or a stream without a piece for as long"),
    "cut": _passing("the answer broke off before its end"),
    "server": _passing("the endpoint failed: 408, 409, 425 or 5xx"),
    "overloaded": _passing("too much to do: 503, 529, or a word of overload"),
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
"""By the `kind` of a ModelError."""

RETRIED = tuple(kind for kind, failure in FAILURES.items() if failure.retried)
"""Kinds of failures where trying again can help."""


def failure_of(error: ModelError) -> FailureClass:
    """The class of an error; one that nobody knows leads to nothing but its event."""
    return FAILURES.get(error.kind, FailureClass(error.kind))


def cure_of(kind: str, model: str) -> str:
    """What to do about a failure of that kind, of a request to that model."""
    return FAILURES[kind].cure.replace("{model}", repr(model))
