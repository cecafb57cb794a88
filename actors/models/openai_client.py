"""Call models behind OpenAI-compatible endpoints, for chat and for embeddings: the one file that imports openai.

The openai package sends every request, and its errors say what failed. It is given the bytes of a request and hands
out the bytes of the answer, because their hash is in the log: it makes no objects of either. A request is sent once:
retries are the gateway's job, which counts them for the agent. Used by the gateway, by `make_model.py`, and by the
archive for embeddings.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, cast

import httpx2
import openai
from openai._models import FinalRequestOptions

from everlog.actors.models.classify_failure import KEPT, refusal
from everlog.actors.models.endpoint_address import check_address, split_query
from everlog.actors.models.endpoint_transport import EndpointTransport
from everlog.actors.models.failure_classes import cure_of
from everlog.actors.models.model_types import DEFAULT_LIMITS, OPENAI_KEY, CallLimits
from everlog.actors.models.response_body import SECRET_CHARS_MIN, KeyRedactor, ResponseReader, redact_key
from everlog.actors.ports.agent_constants import ASKS_MAX, CONNECT_S, ENDPOINT_IDLE_S, GATEWAY_TIMEOUT_S, STREAM_END_S
from everlog.actors.ports.effects import NOTHING, DeltaCallback, ModelResponse, Spent
from everlog.actors.ports.real_clock import monotonic_us
from everlog.events import ModelError

REFUSAL_BYTES_MAX = 64 << 10
"""Maximum bytes of a refusal's body that are read."""

CHECK_S = 15
"""Seconds to wait for an answer that needs no model."""

_JSON = {"Content-Type": "application/json"}
_ONCE = {**_JSON, "Connection": "close"}
"""Headers of a request after which the connection is closed: see `_more_came`. A batch of texts is worth one."""

_NO_COUNT: dict[str, str | openai.Omit] = {"X-Stainless-Retry-Count": openai.Omit()}
"""Headers that keep the package from counting its tries, of which there is one."""

_FAULTS = (openai.APIConnectionError, httpx2.HTTPError)
"""Errors of a connection: before the head of an answer those of openai, in the answer's body those below it."""


class _HttpClient(httpx2.AsyncClient):
    """httpx2's client, with our transport where no proxy is set. The transport of a proxy is httpx2's."""

    def _init_transport(self, *_: Any, **made: Any) -> httpx2.AsyncBaseTransport:
        """Return the transport of all requests that no proxy carries.

        openai's own client for aiohttp overrides this method, too. A `transport` that is passed would turn off the
        proxies of the environment. A version of httpx2 without this method would use its own transport.
        """
        limits: httpx2.Limits = made["limits"]
        return EndpointTransport(made["verify"], limits.max_connections or ASKS_MAX, limits.keepalive_expiry or 0)


class _Client(openai.AsyncOpenAI):
    """openai's client, without the headers that describe this machine."""

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        """Return the request for `options`. The first one to an address is openai's. Later ones take all but their
        content from it, because nothing else differs: to build each one is a third of a request's CPU.

        A version of openai without this method would build each request itself.
        """
        # A cookie, which a load balancer may set, goes into a request while it is built.
        if not isinstance(options.content, bytes) or self._client.cookies:
            return super()._build_request(options, retries_taken=retries_taken)
        known = self._known.get(options.url)
        if known is None:
            first = super()._build_request(options, retries_taken=retries_taken)
            self._known[options.url] = (first.method, first.url, first.headers.copy(), first.extensions)
            return first
        method, url, headers, extensions = known
        headers["Content-Length"] = str(len(options.content))
        return httpx2.Request(method, url, headers=headers, content=options.content, extensions=extensions)

    @cached_property
    def _known(self) -> dict[str, tuple[str, httpx2.URL, httpx2.Headers, dict[str, Any]]]:
        """Method, address, headers and extensions of the first request to each address."""
        return {}

    @cached_property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        """Headers of every request, besides the key's."""
        found = {**super().default_headers, "User-Agent": f"AsyncOpenAI/Python {openai.__version__}"}
        said = {name: value for name, value in found.items() if not name.lower().startswith("x-stainless")}
        return {**said, **_JSON, "Accept-Encoding": "identity"}


class _RefusalBody(httpx2.AsyncByteStream):
    """Body of a refusal, which openai reads to its end: the first REFUSAL_BYTES_MAX bytes."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response, self._body = response, cast(httpx2.AsyncByteStream, response.stream)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body, until enough of it was read."""
        size = 0
        async for part in self._body:
            yield part
            size += len(part)
            if size > REFUSAL_BYTES_MAX:
                return

    async def aclose(self) -> None:
        """Give the connection back, or close it if it holds more than this body."""
        await _drop_if_more_came(self._response, self._body)
        await self._body.aclose()


async def _bound_refusal(response: httpx2.Response) -> None:
    """Limit the body of an answer that openai will raise as an error."""
    if not response.is_success:
        response.stream = _RefusalBody(response)


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
        check_address(name, self._key, base_url, key_name or OPENAI_KEY)
        base_url, query = split_query(base_url)
        limits = httpx2.Limits(
            max_connections=connections_max, max_keepalive_connections=connections_max, keepalive_expiry=ENDPOINT_IDLE_S
        )
        timeout = httpx2.Timeout(None, connect=CONNECT_S)
        try:
            http = _HttpClient(
                verify=httpx2.create_ssl_context(),
                timeout=timeout,
                limits=limits,
                event_hooks={"response": [_bound_refusal]},
            )
        except (ImportError, OSError, ValueError) as error:
            raise ModelError(
                f"No connection to {name!r} can be made ({error}). Check the variables HTTP_PROXY, HTTPS_PROXY, "
                "ALL_PROXY (a SOCKS proxy is not supported), SSL_CERT_FILE and SSL_CERT_DIR.",
                kind="address",
            ) from error
        self._client = _Client(
            api_key=self._key or "none", base_url=base_url, http_client=http, max_retries=0, timeout=timeout
        )
        self.url = str(self._client.base_url)
        self._list = self.url + "models" + query
        # Made once: `post` would make them for each request, at an eighth of the request's CPU.
        self._options = {
            path: FinalRequestOptions.construct(method="post", url=self.url + path + query, headers=_NO_COUNT)
            for path in ("chat/completions", "completions")
        }

    @asynccontextmanager
    async def sent(self, request: bytes) -> AsyncIterator[httpx2.Response]:
        """Send exactly these bytes, and yield the response with its body unread.

        A request that begins with its prompt goes to the text completions, every other one to the chat completions.
        Raises openai.APIStatusError for a refusal, and one of _FAULTS for a connection that failed.
        """
        path = "completions" if request.startswith(b'{"prompt":') else "chat/completions"
        options = self._options[path].model_copy()
        options.content = request
        sent = await self._client.request(httpx2.Response, options, stream=True, stream_cls=openai.AsyncStream[Any])
        response = cast(httpx2.Response, sent)  # the unread answer that was asked for, and no stream of objects
        try:
            yield response
        finally:
            await _drop_if_more_came(response, response.stream)
            await response.aclose()

    async def listed(self) -> None:
        """Ask the endpoint for its list of models. Raises what `sent` raises."""
        await self._client.get(self._list, cast_to=httpx2.Response, options={"headers": _NO_COUNT, "timeout": CHECK_S})

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        await self._client.close()

    def clean(self, text: str) -> str:
        """Return `text` without the key, which an endpoint may have repeated."""
        return redact_key(text, self._key)

    def redactor_for(self, on_delta: DeltaCallback) -> KeyRedactor:
        """Return a filter that passes the deltas of a reply to `on_delta` without the key."""
        return KeyRedactor(on_delta, self._key if len(self._key) >= SECRET_CHARS_MIN else "")


async def _drop_if_more_came(response: httpx2.Response, body: object) -> None:
    """Close the connection to a proxy if it holds bytes after the end of the response: the pool drops it then.
    `EndpointTransport`, which has no such extension, sees to it itself.
    """
    stream = response.extensions.get("network_stream")
    if stream is not None and _more_came(body):
        await stream.aclose()


def _more_came(body: object) -> bool:
    """Return True if the connection holds bytes after the end of this body, or if that cannot be told.

    Such bytes would be read as the answer to the next request on the connection, which may be that of another agent.
    The HTTP package keeps the connection nevertheless, and shows these bytes in private attributes only. If another
    version has no such attributes, connections are not used again, and the test that counts connections fails.
    """
    try:
        stream: Any = body
        state = stream._stream._httpcore_stream._stream._connection._h11_state  # noqa: SLF001 - nothing public has it
        return bool(state.trailing_data[0])
    except AttributeError:
        return True


class ChatEndpoint:
    """Chat-completions endpoint with tools."""

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        *,
        connections: ConnectionPool | None = None,
        key_name: str = OPENAI_KEY,
        limits: CallLimits = DEFAULT_LIMITS,
    ) -> None:
        """Use `name`. `connections`: shared with models of the same endpoint; None: its own, to `base_url`.
        `limits`: seconds of a try, which this class keeps, and of a call, which the gateway keeps.

        Raise ModelError as `ConnectionPool` does.
        """
        self.name = name
        self.limits = limits
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
            async with asyncio.timeout(self.limits.silence_s) as limit, self._connections.sent(request) as response:
                content_type = response.headers.get("content-type", "")
                reading = ResponseReader(
                    self.name, self._url, self._clean, redactor.feed if redactor else None, content_type
                )
                await _read(response, reading, limit, self.limits.silence_s)
        except TimeoutError:
            # A server may keep the stream open after its last event:
            # a whole reply counts, however the connection ended.
            if reading is None or not reading.is_whole():
                raise self._late(reading) from None
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except _FAULTS as error:
            if reading is None:
                raise unreachable(error, self.name, self._url, self._clean, KEPT) from error
            if not reading.is_whole():
                raise reading.truncated_error(f"broke off ({self._clean(_reason(error))})") from error
        raw = reading.end()
        if redactor is not None:
            redactor.end()
        return ModelResponse(raw, monotonic_us() - began)

    async def check(self) -> None:
        """Raise ModelError if the endpoint cannot be reached or refuses the key. Any other answer is a sound one: many
        servers do not list their models, or serve them under names that they do not list.
        """
        try:
            await self._connections.listed()
        except openai.APIStatusError as error:
            if error.status_code in (401, 403):
                raise self._refusal(error, "") from None
        except _FAULTS as error:
            raise unreachable(error, self.name, self._url, self._clean, "") from error

    async def close(self) -> None:
        """Close the connections, shared ones included. Idempotent."""
        await self._connections.close()

    def _late(self, reading: ResponseReader | None) -> ModelError:
        if reading is not None:
            return reading.truncated_error("did not come to its end in time", kind="timeout")
        cure = cure_of("timeout", self.name)
        waited = f"{self.limits.silence_s:g} s, `silence_s` in models.toml"
        return ModelError(
            f"The model endpoint {self._url} did not answer in time ({waited}). {cure}{KEPT}", kind="timeout"
        )

    def _refusal(self, raised: openai.APIStatusError, kept: str = KEPT) -> ModelError:
        said = self._clean(raised.response.text)
        headers = {name: self._clean(value) for name, value in raised.response.headers.items()}
        error = refusal(raised.status_code, headers, said, name=self.name, url=self._url, kept=kept)
        if self._connections.key_name != OPENAI_KEY:
            named = self._connections.key_name or "a variable that models.toml names as its `key`"
            error.args = (str(error).replace(OPENAI_KEY, named),)
        return error


async def _read(response: httpx2.Response, reading: ResponseReader, limit: asyncio.Timeout, silence_s: float) -> None:
    """Read the body to its end. A stream may take any time, as long as parts of the reply keep arriving."""
    now, chunks = asyncio.get_running_loop().time, 0
    async for part in response.aiter_bytes():
        reading.feed(part)
        # Comments, which only keep the connection open, do not extend the limit.
        if reading.done or reading.chunks > chunks:
            chunks = reading.chunks
            limit.reschedule(now() + (STREAM_END_S if reading.done else silence_s))


class EmbeddingsEndpoint:
    """Embeddings endpoint for callers that can block: it needs no event loop."""

    path = "/embeddings"

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        *,
        key_name: str = OPENAI_KEY,
        timeout_s: float = GATEWAY_TIMEOUT_S,
    ) -> None:
        """`key_name`: the environment variable with the key; empty: no key is sent. Raise ModelError as
        `ConnectionPool` does.
        """
        self._key = os.environ.get(key_name, "").strip() if key_name else ""
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        check_address(name, self._key, base_url, key_name or OPENAI_KEY)
        base_url, query = split_query(base_url)
        self._path = self.path + query
        self.name = name
        self._client = openai.OpenAI(api_key=self._key or "none", base_url=base_url, max_retries=0, timeout=timeout_s)
        self.url = str(self._client.base_url)

    def ask(self, request: bytes) -> str:
        """Send exactly these bytes, once, and return the body of the answer. Raise ModelError."""
        try:
            return self._client.post(self._path, cast_to=str, content=request, options={"headers": _ONCE})
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


class RerankEndpoint(EmbeddingsEndpoint):
    """Endpoint that says how well texts answer a query, as Cohere, Jina and vLLM do."""

    path = "/rerank"


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


def _reason(error: BaseException) -> str:
    """Return the innermost cause, which says more than "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
