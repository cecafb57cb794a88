"""Classify refusals of model servers, by status and by the words of the body, into `failure_classes.py`. Pure.

Used by `openai_client.py` and `response_body.py`.
"""

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from everlog.actors.models.failure_classes import cure_of
from everlog.events import BadReply, ContextOverflow, ModelError

KEPT = " Your message is kept, and answered together with the next."
SERVER_TEXT_CHARS_MAX = 400
"""Maximum characters of a server's own words in an error message."""
LOADING_S = 5.0
"""Seconds after which a server that is loading its model is asked again, if it names no time itself."""

_OVERFLOW = (
    "context_length_exceeded", "contextlengthexceeded", "contextwindowexceeded", "exceed_context_size",
    "maximum context length", "context window", "exceeds the context", "available context size", "exceed context limit",
    "context length of only", "greater than the context length", "model's context length", "context the overflows",
    "larger than the max context size", "maximum model length", "max_model_len", "max_seq_len", "maximum prompt length",
    "prompt is too long", "prompt too long", "prompt exceeds max", "prompt is longer than", "input is too long",
    "too many input tokens", "input token count", "exceeded model token limit", "tokens_limit_reached",
    "`inputs` tokens + `max_new_tokens`", "inputs tokens + max_new_tokens", "`inputs` must have less than",
    "reduce the length", "request too large for", "string_above_max_length", "context size has been exceeded",
)  # fmt: skip
"""Words by which servers say that a request is too long. Each is from a real server; there is no common error code."""
_TOO_LONG_PROMPT = re.compile(r"decoder prompt.{0,80}(too long|longer than)", re.DOTALL)
_FILTERED = (
    "content_filter", "contentfilter", "content_policy", "contentpolicy", "content management policy",
    "responsibleaipolicy", "moderation_blocked", "requires moderation", "data_inspection_failed",
    "flagged as potentially", "prohibited_content",
)  # fmt: skip
_NO_TOOLS = re.compile(
    r"(does not|doesn't|do not|not) support (the )?[`'\"]?(tool|function)|support tool use|requires --jinja"
    r"|requires --enable-auto-tool-choice|--tool-call-parser"
    r"|(tools?|tool[_ ]choice|tool[_ ]call(s|ing)?|tool use|function[_ ]call(s|ing)?)[`'\"]?"
    r" (is|are) not (supported|enabled)"
    r"|unsupported (parameter|value)s?: [`'\"]?(tools|tool_choice|functions)"
    r"|unrecognized request argument supplied: (tool|func)"
)
_WITHOUT_CREDIT = (
    "insufficient_quota", "insufficient balance", "insufficient credit", "credit balance is too low",
    "billing_hard_limit", "billing hard limit", "out of credit",
)  # fmt: skip
_BAD_KEY = (
    "invalid_api_key", "incorrect api key", "invalid api key", "api key not valid", "api_key_invalid",
    "invalid x-api-key",
)  # fmt: skip
_MISSING = ("model_not_found", "no such model", "model not found", "not found, try pulling", "unknown model")
_NOT_THERE = re.compile(r"model\b.{0,120}\b(does not exist|not found|is not available)", re.DOTALL)
_LOADING = ("loading model", "model is loading", "currently loading", "is still loading", "model is being loaded")
_PLAIN_TO_TLS = ("http request to an https server", "plain http request was sent to https", "requires tls")
_AGAIN = re.compile(r"(?:try again in|retry after|retrydelay\W{1,6})\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s\b)")

_DID = {
    "key": "refused the key",
    "credit": "says that the account is out of credit",
    "forbidden": "says that the key has no right to {name}",
    "missing": "does not know {name}",
    "tools": "cannot be asked with tools",
    "filtered": "refused the request by its content filter",
    "rate_limited": "is out of patience",
    "overloaded": "has too much to do",
    "loading": "is still loading the model",
}


def refusal(status: int, headers: Mapping[str, str], body: str, *, name: str, url: str, kept: str = KEPT) -> ModelError:
    """Return the error for a response with that status. `body` must be without the key already."""
    said, text = _said(body), body.lower()
    if 300 <= status < 400:
        to = headers.get("location", "another address")[:SERVER_TEXT_CHARS_MAX]
        did, kind = f"sends elsewhere, to {to} (status {status})", "address"
    else:
        kind = kind_of(status, text)
        did = _DID.get(kind, f"failed with status {status}" if kind == "server" else "").format(name=repr(name))
        did = f"{did or f'refused the request with status {status}'} ({said})"
    if kind == "overflow":
        return ContextOverflow(f"The endpoint refused the request as too long: {said}")
    after_s = retry_after_s(headers) or _again_s(text)
    if kind == "loading":
        after_s = after_s or LOADING_S
    return ModelError(
        f"The model endpoint {url} {did}. {_cure(kind, name, text)}{kept}", kind=kind, retry_after_s=after_s
    )


def broken_off(error: str, raw: str, *, name: str, url: str) -> ModelError:
    """Return the error for an error event in the middle of a stream. `raw`: the reply as far as it arrived."""
    found = refusal(_status_in(error), {}, error, name=name, url=url)
    if isinstance(found, ContextOverflow):
        return found
    message = f"The model endpoint {url} broke off its reply ({_said(error)}). {cure_of(found.kind, name)}{KEPT}"
    return BadReply(message, raw, kind=found.kind, retry_after_s=found.retry_after_s)


def kind_of(status: int, text: str) -> str:
    """Return the class of a refusal with that status and body text (lower case)."""
    # The order matters: servers put one status on many failures, so the more specific class is tested first.
    if status == 401 or (status in (400, 403) and _any(_BAD_KEY, text)):
        return "key"
    if status == 402 or (status in (400, 403, 429) and _any(_WITHOUT_CREDIT, text)):
        return "credit"
    if status == 413 or _is_overflow(status, text):
        return "overflow"
    if status == 429:
        return "rate_limited"
    if status in (400, 403, 422, 500) and _any(_FILTERED, text):
        return "filtered"
    if status != 503 and _NO_TOOLS.search(text):
        return "tools"
    if status in (400, 409, 500, 503) and _any(_LOADING, text):
        return "loading"
    if status == 404 or (status in (400, 403, 422) and (_any(_MISSING, text) or _NOT_THERE.search(text))):
        return "missing"
    if status == 403:
        return "forbidden"
    if status in (503, 529) or "overloaded" in text:
        return "overloaded"
    if status >= 500 or status in (408, 409, 425):
        return "server"
    return "address" if _any(_PLAIN_TO_TLS, text) else "rejected"


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds after which an endpoint wants to be asked again;
    0 if the headers have no readable time above 0.

    A date is compared with the endpoint's own `date` header, so that the clock of this machine does not matter.
    """
    after = headers.get("retry-after", "")
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif after.isascii() and after.replace(".", "", 1).isdigit():
            seconds = float(after)
        else:
            seconds = (parsedate_to_datetime(after) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return seconds if 0 < seconds < float("inf") else 0.0


def _is_overflow(status: int, text: str) -> bool:
    if status in (401, 402, 403, 404):
        return False
    if status == 429:  # "request too large for": more than a minute's tokens in one request
        return "request too large for" in text
    return _any(_OVERFLOW, text) or _TOO_LONG_PROMPT.search(text) is not None


def _cure(kind: str, name: str, text: str) -> str:
    if kind == "address" and _any(_PLAIN_TO_TLS, text):
        return "It speaks TLS: begin --base-url with https://."
    return cure_of(kind, name)


def _any(marks: tuple[str, ...], text: str) -> bool:
    return any(mark in text for mark in marks)


def _again_s(text: str) -> float:
    """Return the seconds to wait that the body's words name; 0 if they name none."""
    found = _AGAIN.search(text)
    return float(found[1]) / (1000 if found[2] == "ms" else 1) if found else 0.0


def _said(body: str) -> str:
    """Return the message in the body of an error, in one line; the title if the body is a web page."""
    title = re.search(r"<title>(.*?)</title>", body, re.DOTALL | re.IGNORECASE)
    text = title[1] if title else _message(_parsed(body)) or body
    return " ".join(text.split())[:SERVER_TEXT_CHARS_MAX]


def _parsed(body: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _message(found: object) -> str:
    """Return the message inside an error as servers shape it: {"error": {"message"}}, {"error"}, {"message"},
    {"detail"}.
    """
    if isinstance(found, list):
        found = found[0] if found else None
    if isinstance(found, str):
        return found
    if not isinstance(found, dict):
        return ""
    return next((text for key in ("error", "message", "detail", "msg") if (text := _message(found.get(key)))), "")


def _status_in(error: str) -> int:
    """Return the status for an error without one: many servers put it into `code`."""
    found = _parsed(error)
    inner = found.get("error", found) if isinstance(found, dict) else None
    code = inner.get("code") if isinstance(inner, dict) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        return code
    text = error.lower()
    if "rate_limit" in text or "rate limit" in text or _any(_WITHOUT_CREDIT, text):
        return 429
    # 500 is retried. A request that is at fault would fail again, so only such a one gets 400.
    return 400 if "invalid_request" in text else 500
