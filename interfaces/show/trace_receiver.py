"""Send spans to a receiver of OpenTelemetry over HTTP, as OTLP/JSON. Used by `everlog traces`.

A request is repeated when the receiver says that it may be, as OTLP demands. Ids of spans do not change, so a repeated
export overwrites. Keys come from the variable that every exporter of OpenTelemetry reads, never from an argument.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from everlog.events import BadInput, UsageError

HEADERS_VARIABLES = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
"""Variables with headers, as `name=value,name=value`, percent-encoded; the later ones win."""
PATH = "/v1/traces"
TRIES = 5
WAIT_S, WAIT_S_MAX = 1.0, 30.0
TIMEOUT_S = 30.0
AGAIN = (429, 502, 503, 504)
"""Statuses after which the same request may be sent again."""
SHOWN_CHARS = 300

Sleep = Callable[[float], Awaitable[None]]


class TraceReceiver:
    """A receiver of spans."""

    def __init__(self, url: str, headers: Mapping[str, str], sleep: Sleep = asyncio.sleep) -> None:
        """`url`: its address; without a path, `/v1/traces` is added. `sleep` waits before a request is repeated.

        Raises BadInput for an unusable address.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"--otlp takes an address such as http://127.0.0.1:4318, not {url[:80]!r}.")
        self.url = parts._replace(path=PATH).geturl() if parts.path in ("", "/") else url
        self._headers = {**headers, "Content-Type": "application/json", "User-Agent": "everlog"}
        self._sleep = sleep

    async def send(self, bodies: Any) -> tuple[int, str]:
        """Send request bodies, from an iterable, one after the other. Return how many spans the receiver rejected, and
        its reason.

        Raises UsageError if the receiver cannot be reached or refuses a request.
        """
        import httpx2

        rejected, reason = 0, ""
        async with httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client:
            for body in bodies:
                answer = await self._post(client, body)
                partial = _partial_success(answer.content)
                rejected += int(partial.get("rejectedSpans") or 0)
                reason = str(partial.get("errorMessage") or reason)
        return rejected, reason[:SHOWN_CHARS]

    async def _post(self, client: Any, body: bytes) -> Any:
        import httpx2

        fault = ""
        for tried in range(TRIES):
            wait = min(WAIT_S * 2**tried, WAIT_S_MAX)
            try:
                answer = await client.post(self.url, content=body, headers=self._headers)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                fault = str(error) or type(error).__name__
            else:
                if answer.status_code < 300:
                    return answer
                fault = f"HTTP {answer.status_code} {answer.text[:SHOWN_CHARS]}".strip()
                if answer.status_code not in AGAIN:
                    break
                wait = _retry_after(answer.headers.get("retry-after", ""), wait)
            if tried + 1 < TRIES:
                await self._sleep(wait)
        hint = " It takes protobuf only: put a Collector of OpenTelemetry before it." if "HTTP 415" in fault else ""
        raise UsageError(f"{self.url} did not take the spans: {fault}.{hint} Send them again with the same command.")


def headers_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that the environment names for exporters of OpenTelemetry. Raises BadInput."""
    found: dict[str, str] = {}
    for variable in HEADERS_VARIABLES:
        for pair in filter(str.strip, environment.get(variable, "").split(",")):
            name, sign, value = pair.partition("=")
            if not sign or not name.strip():
                raise BadInput(f"{variable} is a list such as name=value,name=value.")
            found[unquote(name.strip())] = unquote(value.strip())
    return found


def _partial_success(content: bytes) -> Mapping[str, Any]:
    """Return what the receiver says of rejected spans; empty if it took all, or says nothing that can be read."""
    try:
        found = msgspec.json.decode(content).get("partialSuccess")
    except (msgspec.DecodeError, AttributeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _retry_after(text: str, usual: float) -> float:
    return min(float(text), WAIT_S_MAX) if text.isdecimal() else usual
