"""Models behind OpenAI-compatible endpoints, for chat and for embeddings: the one file that imports openai.

The package finds address, key and headers as everybody expects; its connections carry the bytes. The bytes are ours,
exactly, and sent once: who tries again is the gateway.
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
"""Connections that are kept together: the package looks at all of a pool twice for each request."""

REFUSAL_BYTES_MAX = 64 << 10
"""Of the body of a refusal, so much is read."""

_JSON = {"Content-Type": "application/json"}


class _Pool:
    """Some connections to one place."""

    __slots__ = ("client", "free")

    def __init__(self, client: httpx2.AsyncClient, connections: int) -> None:
        self.client = client
        self.free = connections
        """How many more requests can be sent at once."""


class ConnectionPool:
    """The connections to one place, with one key, which goes nowhere but into the requests."""

    def __init__(
        self, name: str, base_url: str | None = None, *, connections_max: int = ASKS_MAX, key_name: str = OPENAI_KEY
    ) -> None:
        """`name`: the model for whose sake they are made. They are kept for ENDPOINT_IDLE_S. `key_name`: the variable
        of the environment that holds the key; empty: none is sent.

        Raises ModelError for a key or an address that cannot be used; neither is repeated in the message.
        """
        self.key_name = key_name
        self._key = os.environ.get(key_name, "").strip() if key_name else ""
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        _check(name, self._key, base_url, key_name or OPENAI_KEY)
        base_url, query = _split_query(base_url)
        self._connections_max = connections_max
        self._pools_max = max(1, connections_max // POOL_CONNECTIONS)
        self._trust = httpx2.create_ssl_context()  # a tenth of a second, once
        self._pools: list[_Pool] = []
        self._add_pool()
        described = openai.AsyncOpenAI(
            api_key=self._key or "none", base_url=base_url, http_client=self._pools[0].client, max_retries=0
        )
        self.url = str(described.base_url)
        self._headers = httpx2.Headers(_headers(described))
        self._paths = {path: httpx2.URL(self.url + path + query) for path in ("chat/completions", "completions")}

    @asynccontextmanager
    async def sent(self, request: bytes) -> AsyncIterator[httpx2.Response]:
        """Send exactly these bytes; the response, whose body has not been read. Raises httpx2.HTTPError.

        A request that begins with its prompt is one for text, every other one for a chat.
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
        """Let go of all connections. Idempotent."""
        for pool in self._pools:
            await pool.client.aclose()

    def _add_pool(self) -> None:
        connections = (self._connections_max + len(self._pools)) // self._pools_max  # all of them together: the most
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
        """`text` without the key, should the endpoint have repeated it."""
        return redact_key(text, self._key)

    def redactor_for(self, on_delta: DeltaCallback) -> KeyRedactor:
        """`feed`, told the pieces of a reply without the key."""
        return KeyRedactor(on_delta, self._key if len(self._key) >= SECRET_CHARS_MIN else "")


class ChatEndpoint:
    """A chat-completions endpoint with tools."""

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        *,
        connections: ConnectionPool | None = None,
        key_name: str = OPENAI_KEY,
    ) -> None:
        """`connections`: those that are shared with other models of the same place; None: its own, to `base_url`.

        Raises ModelError as `ConnectionPool` does.
        """
        self.name = name
        self._connections = connections or ConnectionPool(name, base_url, key_name=key_name)
        self._url = self._connections.url
        self._clean = self._connections.clean

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Send exactly these bytes, once. Raises ModelError with what to do about it.

        An answer that repeats the key is kept without it: secrets never enter the log. A server that does not stream
        tells no pieces.
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
        """Let go of connections, of those that are shared as well. Idempotent."""
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
    """Read it to its end. Whoever streams may take as long as it likes, as long as something of the reply comes."""
    now, chunks = asyncio.get_running_loop().time, 0
    async for part in response.aiter_bytes():
        reading.feed(part)
        if reading.done or reading.chunks > chunks:
            chunks = reading.chunks
            limit.reschedule(now() + (STREAM_END_S if reading.done else GATEWAY_TIMEOUT_S))


class EmbeddingsEndpoint:
    """An embeddings endpoint, asked by whoever can wait for it: no event loop is needed."""

    def __init__(self, name: str, base_url: str | None = None, *, keyless: bool = False) -> None:
        """`keyless`: the key stays here. Raises ModelError as `ConnectionPool` does."""
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
        """What the endpoint answers to exactly these bytes, sent once. Raises ModelError."""
        try:
            return self._client.post(self._path, cast_to=str, content=request, options={"headers": _JSON})
        except openai.APIStatusError as error:
            headers, body = error.response.headers, self._clean(error.response.text)
            raise refusal(error.status_code, headers, body, name=self.name, url=self.url, kept="") from error
        except openai.APIConnectionError as error:
            raise unreachable(error, self.name, self.url, self._clean, "") from error

    def close(self) -> None:
        """Let go of connections. Idempotent."""
        self._client.close()

    def _clean(self, text: str) -> str:
        return redact_key(text, self._key)


def unreachable(error: Exception, name: str, url: str, clean: Callable[[str], str], kept: str) -> ModelError:
    """The error that a connection which cannot be had stands for."""
    reason = clean(_reason(error))
    if isinstance(error, openai.APITimeoutError):
        kind, what = "timeout", "did not answer in time"
    elif "SSL" in reason or "TLS" in reason or "CERTIFICATE" in reason:
        kind, what = "address", "cannot be reached through TLS"
    else:
        kind, what = "unreachable", "cannot be reached"
    return ModelError(f"The model endpoint {url} {what} ({reason}). {cure_of(kind, name)}{kept}", kind=kind)


def _headers(client: openai.AsyncOpenAI) -> dict[str, str]:
    """What goes with every request: who asks, and as whom; nothing about this machine."""
    found: dict[str, Any] = {**client.default_headers, **client.auth_headers, **_JSON, "Accept-Encoding": "identity"}
    told = {name: value for name, value in found.items() if isinstance(value, str)}
    return {name: value for name, value in told.items() if not name.lower().startswith("x-stainless")}


def _check(name: str, key: str, base_url: str | None, key_name: str = OPENAI_KEY) -> None:
    """Whether the key can be put into a header, and the address is one, without a password of its own."""
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
    """An address, and what is asked of every path below it, with its question mark."""
    if base_url is None:
        return None, ""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(query="", fragment="")), f"?{parts.query}" if parts.query else ""


def _reason(error: BaseException) -> str:
    """The innermost cause, which says more than "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
