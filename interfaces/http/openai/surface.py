"""The surface for OpenAI's clients: its path, and its form of an error."""

from collections.abc import Mapping

import msgspec

from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.surfaces import Surface
from everlog.interfaces.wire.problems import Problem

PREFIX = "/openai/v1"


class OpenaiError(msgspec.Struct, frozen=True, kw_only=True):
    """Reason for which a request was not carried out, as OpenAI's clients read it."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenaiErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """Body of such an answer, and a chunk of a stream that fails."""

    error: OpenaiError


_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_CODES: Mapping[str, str] = {
    "unauthorized": "invalid_api_key",
    "unknown-agent": "model_not_found",
    "over-budget": "insufficient_quota",
    "too-many-requests": "rate_limit_exceeded",
    "context-overflow": "context_length_exceeded",
}


def error_body(problem: Problem) -> OpenaiErrorBody:
    """Return a problem as OpenAI's clients read it."""
    kind = _TYPES.get(problem.status) or ("invalid_request_error" if problem.status < 500 else "server_error")
    code = _CODES.get(problem.code, problem.code.replace("-", "_"))
    param = "model" if code == "model_not_found" else problem.details.get("param")
    return OpenaiErrorBody(error=OpenaiError(message=problem.message, type=kind, param=param, code=code))


def _unknown(_method: str, path: str) -> Refusal:
    return Refusal(
        404, "not-found",
        f"{path[:80]!r} is not served. Below {PREFIX} there are /models, /chat/completions, /responses and "
        "/conversations: an agent has no embeddings, files, images or audio for clients.",
    )  # fmt: skip


OPENAI_SURFACE = Surface("/openai", error_body, _unknown, takes_unknown=True)
