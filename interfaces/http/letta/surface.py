"""Describe the Letta surface: its path, its shape of an error, and its answer at an address that it does not have."""

from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.surfaces import Surface
from everlog.interfaces.wire.problems import Problem

PREFIX = "/letta"


def _body(problem: Problem) -> object:
    details = {"code": problem.code, **problem.details}
    return {"detail": problem.message, **({"everlog": details} if details else {})}


def _unknown(method: str, path: str) -> Refusal:
    return Refusal(
        501, "not-supported",
        f"everlog does not serve {method[:10]} {path[:200]!r} of Letta's API. docs/how_to/letta.md lists what it "
        "serves; everything else that everlog can do is in its own API: /openapi.json. Nothing was done.",
    )  # fmt: skip


LETTA_SURFACE = Surface(PREFIX, _body, _unknown, takes_unknown=True, invalid_status=422)
