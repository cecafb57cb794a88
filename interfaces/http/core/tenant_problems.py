"""Say an error to a tenant: with its own names, and without those that other tenants have. Pure."""

import msgspec

from everlog.events import EverlogError, UnknownAgent
from everlog.interfaces.http.core.tenants import TenantNames
from everlog.interfaces.wire.problems import Problem, problem_of

_TEXTS = ("run", "current", "wanted")
"""Texts among an error's details that are the caller's own."""


def problem_for(error: EverlogError, names: TenantNames) -> Problem:
    """Return an error as a caller may see it: a tenant reads its own names, and none of anything else."""
    problem = problem_of(error)
    if not names.tenant:
        return problem
    if isinstance(error, UnknownAgent):  # its message suggests names that are similar
        return msgspec.structs.replace(problem, message="There is no agent of that name here.")
    details = {key: value for key, value in problem.details.items() if not isinstance(value, str) or key in _TEXTS}
    return msgspec.structs.replace(problem, message=problem.message.replace(names.prefix, ""), details=details)
