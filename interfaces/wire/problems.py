"""Errors as they go over HTTP: the status of each type of error, and the body that every route answers.

Used by the server to answer, and by the client to raise the same type of error again.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from everlog.events import (
    A2aError,
    AlreadyDecided,
    ArchiveError,
    BadInput,
    Busy,
    ClusterError,
    CorruptLog,
    DuplicateId,
    EditConflict,
    EverlogError,
    FunctionError,
    HostLost,
    McpError,
    ModelError,
    NewerFormat,
    OverBudget,
    Poisoned,
    StaleId,
    StoreError,
    UnknownAgent,
    UsageError,
    WrongSequence,
)

STATUSES: Mapping[type[EverlogError], int] = {
    UnknownAgent: 404,
    Busy: 429,
    EditConflict: 412,
    AlreadyDecided: 409,
    BadInput: 400,
    UsageError: 409,
    WrongSequence: 412,
    DuplicateId: 422,
    StaleId: 409,
    Poisoned: 500,
    CorruptLog: 500,
    NewerFormat: 500,
    StoreError: 503,
    OverBudget: 402,
    ModelError: 502,
    ArchiveError: 503,
    HostLost: 503,
    McpError: 502,
    A2aError: 502,
    ClusterError: 503,
    FunctionError: 400,
    EverlogError: 500,
}
"""Status of each type of error; a type that is not listed has the status of its nearest ancestor."""
RETRY_AFTER_S = 1.0
"""Seconds after which a request that was answered with 503 can be sent again."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reason for which a request was not carried out."""

    code: str
    """Type of the error, in words with hyphens; `everlog explain CODE` has a page for those of agents and stores."""
    message: str
    """Sentence that says what was expected, what was found, and what to do."""
    status: int
    retry_after_s: float = 0.0
    """Seconds after which the same request can succeed; 0: not known, or never."""
    details: dict[str, Any] = {}
    """Values for a program, such as both texts of an edit that met another one."""


def status_of(error: EverlogError) -> int:
    """Return the HTTP status of an error."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def problem_of(error: EverlogError) -> Problem:
    """Return an error as the body of an answer."""
    status = status_of(error)
    later = float(getattr(error, "retry_after_s", 0) or (RETRY_AFTER_S if status == 503 else 0))
    details = {key: value for key, value in vars(error).items() if isinstance(value, str | int | float)}
    return Problem(code=error.code, message=str(error), status=status, retry_after_s=later, details=details)


def error_of(problem: Problem) -> EverlogError:
    """Return the error that a server answered with, as its own type if this everlog has that type."""
    kinds: list[type[EverlogError]] = [EverlogError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    named = {kind.code: kind for kind in reversed(kinds)}
    kind = named.get(problem.code) or (BadInput if problem.status < 500 else EverlogError)
    error = kind.__new__(kind, problem.message)
    error.__dict__.update(problem.details)
    return error
