"""Describe the A2A surface: its path, and its errors as the protocol numbers them.

An error within a method is an answer of JSON-RPC with status 200, as the protocol wants it. A request that the guards
refuse, or that can succeed later, keeps its HTTP status, and has the same body.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.surfaces import Surface
from everlog.interfaces.wire.problems import Problem

PREFIX = "/a2a"
VERSION = "1.0"
"""Version of the protocol that is spoken."""


class RpcError(msgspec.Struct, frozen=True, kw_only=True):
    """Error of a call."""

    code: int
    message: str
    data: Sequence[Any] = ()


class RpcFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a call that was not carried out."""

    error: RpcError
    id: str | int | None = None
    jsonrpc: str = "2.0"


class A2aFault(Exception):
    """A call that was not carried out, for a reason that the protocol knows."""

    def __init__(self, reason: str, message: str) -> None:
        """`reason`: one of CODES."""
        super().__init__(message)
        self.reason = reason


CODES = {
    "TASK_NOT_FOUND": -32001,
    "TASK_NOT_CANCELABLE": -32002,
    "PUSH_NOTIFICATION_NOT_SUPPORTED": -32003,
    "UNSUPPORTED_OPERATION": -32004,
    "CONTENT_TYPE_NOT_SUPPORTED": -32005,
    "VERSION_NOT_SUPPORTED": -32009,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": -32601,
    "INVALID_PARAMS": -32602,
    "INTERNAL_ERROR": -32603,
}
"""Codes of errors, by the reasons that the protocol names."""


def failure(reason: str, message: str, rpc_id: str | int | None = None) -> RpcFailure:
    """Return the answer to a call that was not carried out. `reason`: one of CODES. `rpc_id`: the id of the call."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}
    return RpcFailure(error=RpcError(code=CODES[reason], message=message, data=[info]), id=rpc_id)


def _body(problem: Problem) -> RpcFailure:
    refused = "INVALID_REQUEST" if problem.status < 500 else "INTERNAL_ERROR"
    return failure(refused, problem.message)


def _unknown(_method: str, path: str) -> Refusal:
    return Refusal(
        404, "not-found",
        f"{path[:80]!r} is not served. The card of an agent is at {PREFIX}/NAME/.well-known/agent-card.json; messages "
        f"go to {PREFIX}/NAME by POST, as JSON-RPC.",
    )  # fmt: skip


A2A_SURFACE = Surface(PREFIX, _body, _unknown, takes_unknown=True)
