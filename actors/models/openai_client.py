"""Call models behind OpenAI-compatible endpoints, for chat and for embeddings: the one file that imports openai.

The openai package finds address, key and headers in the usual places, and its connections carry the bytes. The bytes of
a request are sent exactly as given, and once: retries are the gateway's job. Used by the gateway, by `make_model.py`,
and by the archive for embeddings.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2
import openai

from everlog.actors.models.classify_failure import KEPT, refusal
from everlog.actors.models.failure_classes import cure_of
from everlog.actors.models.model_types import OPENAI_KEY
from everlog.actors.models.response_body import SECRET_CHARS_MIN, KeyRedactor, ResponseReader, redact_key
from everlog.actors.ports.agent_constants import ASKS_MAX, CONNECT_S, ENDPOINT_IDLE_S, GATEWAY_TIMEOUT_S, STREAM_END_S
from everlog.actors.ports.effects import NOTHING, DeltaCallback, ModelResponse, Spent
from everlog.actors.ports.real_clock import monotonic_us
from everlog.events import ModelError

POOL_CONNECTIONS = 4
"""Connections in one pool of the HTTP package, which scans its whole pool twice for each request."""

REFUSAL_BYTES_MAX = 64 << 10
"""Maximum bytes of a refusal's body that are read."""

_JSON = {"Content-Type": "application/json"}


class _Pool:
    """Some connections to one endpoint."""

    __slots__ = ("client", "free")

    def __init__(self, client: httpx2.AsyncClient, connections: int) -> None:
        self.client = client
        self.free = connections
        """Number of further requests that can be sent at the same time."""


class ConnectionPool:
    """Connections to one endpoint with one key. The key goes into requests only."""

    def __init__(
        self, name: str, base_url: str | None = None, *, connections_max: int = ASKS_MAX, key_name: str = OPENAI_KEY
    ) -> None:
        """Connect for the model `name`. Idle connections are kept for ENDPOINT_IDLE_S. `key_name`: the environment
        variable with the key; empty: no key is sent.

        Raise ModelError for a key or an address that cannot be used; the message repeats neither.
        """
        self.key_name = key_name
        self._key = os.environ.get(key_name, "").strip() if key_name else ""
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        _check(name, self._key, base_url, key_name or OPENAI_KEY)
        base_url, query = _split_query(base_url)
        self._connections_max = connections_max
        self._pools_max = max(1, connections_max // POOL_CONNECTIONS)
        self._trust = httpx2.create_ssl_context()  # takes a tenth of a second, so it is shared
        self._pools: list[_Pool] = []
        self._add_pool()
        # No retries here: the gateway retries, and counts the attempts.
        described = openai.AsyncOpenAI(
            api_key=self._key or "none", base_url=base_url, http_client=self._pools[0].client, max_retries=0
        )
        self.url = str(described.base_url)
        self._headers = httpx2.Headers(_headers(described))
        self._paths = {path: httpx2.URL(self.url + path + query) for path in ("chat/completions", "completions")}

    @asynccontextmanager
    async def sent(self, request: bytes) -> AsyncIterator[httpx2.Response]:
        """Send exactly these bytes, and yield the response with its body unread. Raise httpx2.HTTPError.

        A request that begins with its prompt goes to the text completions, every other one to the chat completions.
        """
        path = "completions" if request.startswith(b'{"prompt":') else "chat/completions"
        if len(self._pools) < self._pools_max and all(pool.free <= 0 for pool in self._pools):
            self._add_pool()
        pool = max(self._pools, key=attrgetter("free"))
        pool.free -= 1
        try:
            message = httpx2.Request("POST", self._paths[path], headers=self._headers, content=request)
            response = await pool.client.send(message, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            pool.free += 1

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        for pool in self._pools:
            await pool.client.aclose()

    def _add_pool(self) -> None:
        # This spreads connections_max over the pools: sizes differ by one at most.
        connections = (self._connections_max + len(self._pools)) // self._pools_max
        limits = httpx2.Limits(
            max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=ENDPOINT_IDLE_S
        )
        self._pools.append(
            _Pool(
                httpx2.AsyncClient(verify=self._trust, timeout=httpx2.Timeout(None, connect=CONNECT_S), limits=limits),
                connections,
            )
        )

    def clean(self, text: str) -> str:
        """Return `text` without the key, which an endpoint may have repeated."""
        return redact_key(text, self._key)

    def redactor_for(self, on_delta: DeltaCallback) -> KeyRedactor:
        """Return a filter that passes the deltas of a reply to `on_delta` without the key."""
        return KeyRedactor(on_delta, self._key if len(self._key) >= SECRET_CHARS_MIN else "")


class ChatEndpoint:
    """Chat-completions endpoint with tools."""

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        *,
        connections: ConnectionPool | None = None,
        key_name: str = OPENAI_KEY,
    ) -> None:
        """Use `name`. `connections`: shared with models of the same endpoint; None: its own, to `base_url`.

        Raise ModelError as `ConnectionPool` does.
        """
        self.name = name
        self._connections = connections or ConnectionPool(name, base_url, key_name=key_name)
        self._url = self._connections.url
        self._clean = self._connections.clean

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Send exactly these bytes, once. Raise ModelError with advice.

        The key is removed from an answer that repeats it: secrets never enter the log. If the server does not stream,
        `on_delta` is not called.
        """
        began = monotonic_us()
        reading: ResponseReader | None = None
        redactor = None if on_delta is None else self._connections.redactor_for(on_delta)
        try:
            async with asyncio.timeout(GATEWAY_TIMEOUT_S) as limit, self._connections.sent(request) as response:
                if not response.is_success:
                    raise await self._refusal(response)
                content_type = response.headers.get("content-type", "")
                reading = ResponseReader(
                    self.name, self._url, self._clean, redactor.feed if redactor else None, content_type
                )
                await _read(response, reading, limit)
        except TimeoutError:
            # A server may keep the stream open after its last event:
            # a whole reply counts, however the connection ended.
            if reading is None or not reading.is_whole():
                raise self._late(reading) from None
        except httpx2.HTTPError as error:
            if reading is None:
                raise unreachable(error, self.name, self._url, self._clean, KEPT) from error
            if not reading.is_whole():
                raise reading.truncated_error(f"broke off ({self._clean(_reason(error))})") from error
        raw = reading.end()
        if redactor is not None:
            redactor.end()
        return ModelResponse(raw, monotonic_us() - began)

    async def close(self) -> None:
        """Close the connections, shared ones included. Idempotent."""
        await self._connections.close()

    def _late(self, reading: ResponseReader | None) -> ModelError:
        if reading is not None:
            return reading.truncated_error("did not come to its end in time", kind="timeout")
        cure = cure_of("timeout", self.name)
        return ModelError(f"The model endpoint {self._url} did not answer in time. {cure}{KEPT}", kind="timeout")

    async def _refusal(self, response: httpx2.Response) -> ModelError:
        body = b""
        async for part in response.aiter_bytes():
            body += part
            if len(body) > REFUSAL_BYTES_MAX:
                break
        said = self._clean(body.decode("utf-8", "replace"))
        headers = {name: self._clean(value) for name, value in response.headers.items()}
        error = refusal(response.status_code, headers, said, name=self.name, url=self._url)
        if self._connections.key_name != OPENAI_KEY:
            named = self._connections.key_name or "a variable that models.toml names as its `key`"
            error.args = (str(error).replace(OPENAI_KEY, named),)
        return error


async def _read(response: httpx2.Response, reading: ResponseReader, limit: asyncio.Timeout) -> None:
    """Read the body to its end. A stream may take any time, as long as parts of the reply keep arriving."""
    now, chunks = asyncio.get_running_loop().time, 0
    async for part in response.aiter_bytes():
        reading.feed(part)
        # Comments, which only keep the connection open, do not extend the limit.
        if reading.done or reading.chunks > chunks:
            chunks = reading.chunks
            limit.reschedule(now() + (STREAM_END_S if reading.done else GATEWAY_TIMEOUT_S))


class EmbeddingsEndpoint:
    """Embeddings endpoint for callers that can block: it needs no event loop."""

    def __init__(self, name: str, base_url: str | None = None, *, keyless: bool = False) -> None:
        """`keyless`: send no key. Raise ModelError as `ConnectionPool` does."""
        self._key = "" if keyless else os.environ.get("OPENAI_API_KEY", "").strip()
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        _check(name, self._key, base_url)
        base_url, query = _split_query(base_url)
        self._path = "/embeddings" + query
        self.name = name
        self._client = openai.OpenAI(
            api_key=self._key or "none", base_url=base_url, max_retries=0, timeout=GATEWAY_TIMEOUT_S
        )
        self.url = str(self._client.base_url)

    def ask(self, request: bytes) -> str:
        """Send exactly these bytes, once, and return the body of the answer. Raise ModelError."""
        try:
            return self._client.post(self._path, cast_to=str, content=request, options={"headers": _JSON})
        except openai.APIStatusError as error:
            headers, body = error.response.headers, self._clean(error.response.text)
            raise refusal(error.status_code, headers, body, name=self.name, url=self.url, kept="") from error
        except openai.APIConnectionError as error:
            raise unreachable(error, self.name, self.url, self._clean, "") from error

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._client.close()

    def _clean(self, text: str) -> str:
        return redact_key(text, self._key)


def unreachable(error: Exception, name: str, url: str, clean: Callable[[str], str], kept: str) -> ModelError:
    """Return the error for a connection that failed."""
    reason = clean(_reason(error))
    if isinstance(error, openai.APITimeoutError):
        kind, what = "timeout", "did not answer in time"
    elif "SSL" in reason or "TLS" in reason or "CERTIFICATE" in reason:
        kind, what = "address", "cannot be reached through TLS"
    else:
        kind, what = "unreachable", "cannot be reached"
    return ModelError(f"The model endpoint {url} {what} ({reason}). {cure_of(kind, name)}{kept}", kind=kind)


def _headers(client: openai.AsyncOpenAI) -> dict[str, str]:
    """Return the headers of every request: user agent and key, but nothing about this machine."""
    found: dict[str, Any] = {**client.default_headers, **client.auth_headers, **_JSON, "Accept-Encoding": "identity"}
    text_headers = {name: value for name, value in found.items() if isinstance(value, str)}
    return {name: value for name, value in text_headers.items() if not name.lower().startswith("x-stainless")}


def _check(name: str, key: str, base_url: str | None, key_name: str = OPENAI_KEY) -> None:
    """Raise ModelError for a key that does not fit into a header,
    and for an address that is none or holds a password.
    """
    if not key and base_url is None:
        raise ModelError(
            f"The model {name!r} needs a key: set {key_name}, or name your own server with --base-url "
            "(or OPENAI_BASE_URL). Without either, use --model offline.",
            kind="key",
        )
    if not (key.isascii() and key.isprintable()):
        raise ModelError(f"{key_name} holds characters that no key has; copy it again.", kind="key")
    try:
        parts = urlsplit(base_url or "https://")
        usable = base_url is None or (parts.scheme in ("http", "https") and bool(parts.hostname))
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        usable, secret = False, False
    if secret:
        raise ModelError(
            "The address of the endpoint holds a name or password, and would be shown in messages. Leave them out; the "
            f"key belongs into {key_name}.",
            kind="key",
        )
    if not usable:
        raise ModelError(
            f"The address {base_url!r} is not one of an endpoint; one looks like http://127.0.0.1:8000/v1.",
            kind="unreachable",
        )


def _split_query(base_url: str | None) -> tuple[str | None, str]:
    """Split an address into the address proper and its query, with the question mark, which goes after each path."""
    if base_url is None:
        return None, ""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(query="", fragment="")), f"?{parts.query}" if parts.query else ""


def _reason(error: BaseException) -> str:
    """Return the innermost cause, which says more than "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
