"""Models behind OpenAI-compatible endpoints, for chat and for embeddings: the one file that imports openai.

The package carries the bytes (connections, time limits, what failed); the bytes are ours, exactly, and sent once: who
tries again is the gateway.
"""

import os
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

import openai

from events import ContextOverflow, ModelError

from .constants import ASKS_MAX, ENDPOINT_IDLE_S, GATEWAY_TIMEOUT_S
from .effects import Answer
from .endpoints import OPENAI_KEY
from .real import monotonic_us

_OVERFLOW = ("context_length_exceeded", "maximum context length", "context window", "exceeds the context")
_KEPT = " Your message is kept, and answered together with the next."


SECRET_CHARS_MIN = 16
"""Keys that protect something are longer; a local server's "none" or "test" is a word that people say."""


POOL_CONNECTIONS = 4
"""Connections that are kept together: the package looks at all of a pool twice for each request."""

POOLS_MAX = 8
"""Pools of connections to one place, each of which takes 1 MB; for more connections they are larger."""


class _Pool:
    """Some connections to one place."""

    __slots__ = ("client", "free")

    def __init__(self, client: openai.AsyncOpenAI, connections: int) -> None:
        self.client = client
        self.free = connections
        """How many more requests can be sent at once."""


class Connections:
    """The connections to one place, with one key, which goes nowhere but into the requests."""

    def __init__(
        self, name: str, base_url: str | None = None, *, connections_max: int = ASKS_MAX, key_name: str = OPENAI_KEY
    ) -> None:
        """`name`: the model for whose sake they are made. They are kept for ENDPOINT_IDLE_S. `key_name`: the variable
        of the environment that holds the key; empty: none is sent.

        Raises ModelError for a key or an address that cannot be used; neither is repeated in the message.
        """
        self._key = os.environ.get(key_name, "").strip() if key_name else ""
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        _check(name, self._key, base_url)
        self._base_url = base_url
        self._connections_max = connections_max
        self._pools_max = max(1, min(POOLS_MAX, connections_max // POOL_CONNECTIONS))
        self._pools: list[_Pool] = []
        self._add_pool()
        self.url = str(self._pools[0].client.base_url)

    async def post(self, request: bytes) -> str:
        """What the endpoint answers to exactly these bytes. Raises openai.OpenAIError."""
        if len(self._pools) < self._pools_max and all(pool.free <= 0 for pool in self._pools):
            self._add_pool()
        pool = max(self._pools, key=attrgetter("free"))
        pool.free -= 1
        try:
            return await pool.client.post(
                "/chat/completions",
                cast_to=str,
                content=request,
                options={"headers": {"Content-Type": "application/json"}},
            )
        finally:
            pool.free += 1

    async def close(self) -> None:
        """Let go of all connections. Idempotent."""
        for pool in self._pools:
            await pool.client.close()

    def _add_pool(self) -> None:
        limits: Any = type(openai.DEFAULT_CONNECTION_LIMITS)  # its package is openai's affair
        connections = (self._connections_max + len(self._pools)) // self._pools_max  # all of them together: the most
        client = openai.AsyncOpenAI(
            api_key=self._key or "none", base_url=self._base_url, max_retries=0, timeout=GATEWAY_TIMEOUT_S,
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=GATEWAY_TIMEOUT_S,
                limits=limits(
                    max_connections=connections, max_keepalive_connections=connections,
                    keepalive_expiry=ENDPOINT_IDLE_S,
                ),
            ),
        )  # fmt: skip
        self._pools.append(_Pool(client, connections))

    def clean(self, text: str) -> str:
        """`text` without the key, should the endpoint have repeated it."""
        return without_key(text, self._key)


class Endpoint:
    """A chat-completions endpoint with tools."""

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        *,
        connections: Connections | None = None,
        key_name: str = OPENAI_KEY,
    ) -> None:
        """`connections`: those that are shared with other models of the same place; None: its own, to `base_url`.

        Raises ModelError as `Connections` does.
        """
        self.name = name
        self._connections = connections or Connections(name, base_url, key_name=key_name)
        self._url = self._connections.url
        self._clean = self._connections.clean

    async def ask(self, request: bytes) -> Answer:
        """Send exactly these bytes, once. Raises ModelError with what to do about it.

        An answer that repeats the key is kept without it: secrets never enter the log.
        """
        began = monotonic_us()
        try:
            raw = await self._connections.post(request)
        except openai.APIStatusError as error:
            raise _refused(error, self.name, self._url, self._clean, _KEPT) from error
        except openai.APIConnectionError as error:
            raise _unreachable(error, self._url, self._clean, _KEPT) from error
        return Answer(self._clean(raw), monotonic_us() - began)

    async def close(self) -> None:
        """Let go of connections, of those that are shared as well. Idempotent."""
        await self._connections.close()


class Embeddings:
    """An embeddings endpoint, asked by whoever can wait for it: no event loop is needed."""

    def __init__(self, name: str, base_url: str | None = None, *, keyless: bool = False) -> None:
        """`keyless`: the key stays here. Raises ModelError as `Connections` does."""
        self._key = "" if keyless else os.environ.get("OPENAI_API_KEY", "").strip()
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        _check(name, self._key, base_url)
        self.name = name
        self._client = openai.OpenAI(
            api_key=self._key or "none", base_url=base_url, max_retries=0, timeout=GATEWAY_TIMEOUT_S
        )
        self.url = str(self._client.base_url)

    def ask(self, request: bytes) -> str:
        """What the endpoint answers to exactly these bytes, sent once. Raises ModelError."""
        try:
            return self._client.post(
                "/embeddings",
                cast_to=str,
                content=request,
                options={"headers": {"Content-Type": "application/json"}},
            )
        except openai.APIStatusError as error:
            raise _refused(error, self.name, self.url, self._clean, "") from error
        except openai.APIConnectionError as error:
            raise _unreachable(error, self.url, self._clean, "") from error

    def close(self) -> None:
        """Let go of connections. Idempotent."""
        self._client.close()

    def _clean(self, text: str) -> str:
        return without_key(text, self._key)


def without_key(text: str, key: str) -> str:
    """`text` without the key, should the endpoint have repeated it."""
    return text.replace(key, "[key]") if len(key) >= SECRET_CHARS_MIN else text


def _unreachable(error: openai.APIConnectionError, url: str, clean: Callable[[str], str], kept: str) -> ModelError:
    what = "did not answer in time" if isinstance(error, openai.APITimeoutError) else "cannot be reached"
    return ModelError(
        f"The model endpoint {url} {what} ({clean(_reason(error))}). Is the server running, and is --base-url right?"
        f"{kept}",
        kind="unreachable",
    )


def _refused(error: openai.APIStatusError, name: str, url: str, clean: Callable[[str], str], kept: str) -> ModelError:
    said = clean(error.message)[:400]
    text = f"{said} {error.code or ''}".lower()
    if error.status_code in (400, 413, 422) and any(mark in text for mark in _OVERFLOW):
        return ContextOverflow(f"The endpoint refused the request as too long: {said}")
    what, cure, kind = _told(name, error.status_code, said, text)
    after_s = retry_after_s(error.response.headers)
    return ModelError(f"The model endpoint {url} {what}. {cure}{kept}", kind=kind, retry_after_s=after_s)


def _told(name: str, status: int, said: str, text: str) -> tuple[str, str, str]:
    """What a refusal says, what to do about it, and its kind."""
    key = f"Set OPENAI_API_KEY to a key that may use {name!r}."
    match status:
        case 401:
            return f"refused the key ({said})", key, "key"
        case 403:  # this model, perhaps, and no other
            return f"refused the key ({said})", key, "rejected"
        case 402:
            return _without_credit(said)
        case 429 if "insufficient_quota" in text:
            return _without_credit(said)
        case 429:
            return f"is out of patience or credit ({said})", "Try again later.", "rate_limited"
        case 404:
            return f"does not know {name!r} ({said})", "Check the name of the model, and --base-url.", "rejected"
        case 408 | 409:
            return f"failed with status {status} ({said})", "Try again later.", "server"
        case status if status >= 500:
            return f"failed with status {status} ({said})", "Try again later.", "server"
    return (
        f"refused the request with status {status} ({said})",
        "Check the name of the model, and --base-url.",
        "rejected",
    )


def _without_credit(said: str) -> tuple[str, str, str]:
    return f"says that the account is out of credit ({said})", "Add to it, or set another OPENAI_API_KEY.", "credit"


def retry_after_s(headers: Mapping[str, str]) -> float:
    """In how many seconds an endpoint wants to be asked again, more than 0; 0 where it does not say so in a way that
    can be read. A date is held against the endpoint's own.
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


def _check(name: str, key: str, base_url: str | None) -> None:
    """Whether the key can be put into a header, and the address is one, without a password of its own."""
    if not key and base_url is None:
        raise ModelError(
            f"The model {name!r} needs a key: set OPENAI_API_KEY, or name your own server with --base-url "
            "(or OPENAI_BASE_URL). Without either, use --model offline.",
            kind="key",
        )
    if not (key.isascii() and key.isprintable()):
        raise ModelError("OPENAI_API_KEY holds characters that no key has; copy it again.", kind="key")
    try:
        parts = urlsplit(base_url or "https://")
        usable = base_url is None or (parts.scheme in ("http", "https") and bool(parts.hostname))
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        usable, secret = False, False
    if secret:
        raise ModelError(
            "The address of the endpoint holds a name or password, and would be shown in messages. Leave them out; the "
            "key belongs into OPENAI_API_KEY.",
            kind="key",
        )
    if not usable:
        raise ModelError(
            f"The address {base_url!r} is not one of an endpoint; one looks like http://127.0.0.1:8000/v1.",
            kind="unreachable",
        )


def _reason(error: BaseException) -> str:
    """The innermost cause, which says more than "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
