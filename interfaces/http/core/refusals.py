"""Refuse a request for a reason of HTTP, which is no error of an agent or a store.

Raised by guards and routes; `application` answers it. Errors of agents and stores are `EverlogError`s and have their
own statuses, see `wire/problems.py`.
"""

from collections.abc import Mapping
from typing import Any

from everlog.interfaces.wire.problems import Problem


class Refusal(Exception):
    """A request that is answered with a problem."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after_s: float = 0,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """`headers`: further headers of the answer."""
        super().__init__(message)
        self.problem = Problem(
            code=code, message=message, status=status, retry_after_s=retry_after_s, details=dict(details or {})
        )
        self.headers = dict(headers or {})
