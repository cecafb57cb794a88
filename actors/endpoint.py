"""A model behind an OpenAI-compatible chat-completions endpoint: the one file that imports openai.

The package carries the bytes (connections, retries with back-off, time limits); the bytes are ours, exactly.
"""

import os
from urllib.parse import urlsplit

import openai

from events import ContextOverflow, ModelError

from .constants import GATEWAY_ATTEMPTS_MAX, GATEWAY_TIMEOUT_S
from .effects import Answer
from .real import monotonic_us

_OVERFLOW = ("context_length_exceeded", "maximum context length", "context window", "exceeds the context")


SECRET_CHARS_MIN = 16
"""Keys that protect something are longer; a local server's "none" or "test" is a word that people say."""


class Endpoint:
    """A chat-completions endpoint with tools. The key, OPENAI_API_KEY, goes nowhere but into the request."""

    def __init__(self, name: str, base_url: str | None = None, *, attempts_max: int = GATEWAY_ATTEMPTS_MAX) -> None:
        """Raises ModelError for a key or an address that cannot be used; neither is repeated in the message."""
        self.name = name
        self._key = os.environ.get("OPENAI_API_KEY", "").strip()
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        _check(name, self._key, base_url)
        self._attempts_max = attempts_max
        self._client = openai.AsyncOpenAI(
            api_key=self._key or "none", base_url=base_url, max_retries=attempts_max - 1, timeout=GATEWAY_TIMEOUT_S
        )

    async def ask(self, request: bytes) -> Answer:
        """Send exactly these bytes. Raises ModelError with what to do about it.

        An answer that repeats the key is kept without it: secrets never enter the log.
        """
        began = monotonic_us()
        try:
            raw = await self._client.post(
                "/chat/completions",
                cast_to=str,
                content=request,
                options={"headers": {"Content-Type": "application/json"}},
            )
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except openai.APIConnectionError as error:
            raise ModelError(
                f"The model endpoint {self._client.base_url} cannot be reached ({self._clean(_reason(error))}). Is the "
                "server running, and is --base-url right? Your message is kept, and answered together with the next.",
                kind="unreachable",
                attempts=self._attempts_max,
            ) from error
        return Answer(self._clean(raw), monotonic_us() - began)

    async def close(self) -> None:
        """Let go of connections. Idempotent."""
        await self._client.close()

    def _refused(self, error: openai.APIStatusError) -> ModelError:
        said = self._clean(error.message)[:400]
        text = f"{said} {error.code or ''}".lower()
        if error.status_code in (400, 413, 422) and any(mark in text for mark in _OVERFLOW):
            return ContextOverflow(f"The endpoint refused the request as too long: {said}")
        url = self._client.base_url
        kept = "Your message is kept, and answered together with the next."
        match error.status_code:
            case 401 | 403:
                return ModelError(
                    f"The model endpoint {url} refused the key ({said}). Set OPENAI_API_KEY to a key that may use "
                    f"{self.name!r}. {kept}",
                    kind="key",
                )
            case 404:
                return ModelError(
                    f"The model endpoint {url} does not know {self.name!r} ({said}). "
                    f"Check --model and --base-url. {kept}",
                    kind="rejected",
                )
            case 429:
                return ModelError(
                    f"The model endpoint {url} is out of patience or credit ({said}). Try again later. {kept}",
                    kind="rate_limited",
                    attempts=self._attempts_max,
                )
            case status if status >= 500:
                return ModelError(
                    f"The model endpoint {url} failed with status {status} ({said}). Try again later. {kept}",
                    kind="server",
                    attempts=self._attempts_max,
                )
            case status:
                return ModelError(
                    f"The model endpoint {url} refused the request with status {status} ({said}). {kept}",
                    kind="rejected",
                )

    def _clean(self, text: str) -> str:
        """`text` without the key, should the endpoint have repeated it."""
        return text.replace(self._key, "[key]") if len(self._key) >= SECRET_CHARS_MIN else text


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
