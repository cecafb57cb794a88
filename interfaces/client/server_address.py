"""Name a server and the key for it, and turn its answers into values and errors. Pure.

A key is in no text that this module makes: neither in a `repr` nor in an error.
"""

import ipaddress
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from everlog.events import BadInput, ClusterError, EverlogError, UnknownAgent
from everlog.interfaces.wire.problems import Problem, error_of

API = "/api/v1"
BodyT = TypeVar("BodyT")
LATER = ("too-many-requests", "too-many-streams", "too-slow")
"""Codes of refusals after which the same request may succeed by itself."""


class ServerAddress:
    """A server, and the key that it is asked with."""

    __slots__ = ("_exact", "_key", "is_loopback", "url")

    def __init__(self, url: str, key: str | None = None) -> None:
        """`url`: such as http://127.0.0.1:8283. Raises BadInput for one that is no address of a server."""
        self.url, host = _checked(url)
        self.is_loopback = _is_loopback(host)
        """True if the server is on this machine."""
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise BadInput("The key of the server is not one: it has characters that no key has.")
        self._key = key or ""
        self._exact: dict[str, str] = {}

    def name_exactly(self, stream: str, name: str) -> None:
        """Send `name` in the paths of requests about a stream whose own name means another agent to the server."""
        self._exact[f"/agents{path_of(stream)}"] = f"/agents{path_of(name)}"

    def path(self, path: str) -> str:
        """Return the path of a request, with the names of `name_exactly`."""
        for own, exact in self._exact.items():
            if path == own or path.startswith(f"{own}/"):
                return exact + path.removeprefix(own)
        return path

    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    @property
    def sends_key_in_clear(self) -> bool:
        """True if the key crosses a network that others can read."""
        return bool(self._key) and not self.is_loopback and self.url.startswith("http:")

    def unreachable(self, error: Exception) -> ClusterError:
        """Return the error for a server that does not answer."""
        return ClusterError(
            f"The server {self.url} does not answer ({type(error).__name__}: {error}). Is `everlog serve` running "
            "there, and is the address right?"
        )

    def __repr__(self) -> str:
        return f"<ServerAddress {self.url}>"


def _checked(url: str) -> tuple[str, str]:
    """Return an address without a slash at its end, and its host."""
    try:
        parts = urlsplit(url.strip())
        named = parts.hostname if parts.scheme in {"http", "https"} and parts.port != 0 else None
    except ValueError:
        named = None
    # The text is not repeated: it may hold a password.
    if not named or parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise BadInput(
            "The address of a server is http://HOST:PORT or https://HOST, without a name, a password or a query; the "
            "key has an argument of its own."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", named


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class WireRequest(NamedTuple):
    """One request to a server."""

    method: str
    path: str
    """Path below the API, with its names encoded."""
    body: Any = None
    """Struct or mapping that is sent as JSON; None: no body."""
    id: str = ""
    """Idempotency key; empty: the request changes nothing, or is not repeated."""
    query: Any = ()
    """Parameters, as pairs of texts."""
    content: bytes | Iterable[bytes] | None = None
    """Body as it is, instead of `body`; in pieces for a large one."""
    media: str = "application/json"
    """Media type of the body."""
    after: int | None = None
    """Seq after which a stream continues."""
    streams: bool = False
    """True: the answer is a stream of events."""

    def headers(self) -> dict[str, str]:
        """Return the headers of this request."""
        headers = {"Accept": "text/event-stream" if self.streams else "*/*"}
        if self.id:
            headers["Idempotency-Key"] = self.id
        if self.after is not None:
            headers["Last-Event-ID"] = str(self.after)
        if self.data() is not None:
            headers["Content-Type"] = self.media
        return headers

    def data(self) -> bytes | Iterable[bytes] | None:
        """Return the body."""
        return self.content if self.body is None else msgspec.json.encode(self.body)


def path_of(*names: str) -> str:
    """Return a path of names, each of which may hold any character."""
    return "".join(f"/{encoded(name)}" for name in names)


def encoded(name: str) -> str:
    """Return a name as one part of a path. Raises BadInput for one that is no text."""
    try:
        text = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise BadInput(f"The name {name[:80]!r} holds half of a character (a lone surrogate).") from error
    return text.replace(".", "%2E") if name.strip(".") == "" else text  # no part of a path leads upwards


def failure_of(status: int, content: bytes) -> EverlogError:
    """Return the error of an answer that is no success."""
    try:
        problem = msgspec.json.decode(content, type=Problem)
    except msgspec.MsgspecError:
        text = content[:200].decode(errors="replace")
        return ClusterError(f"The server answered with status {status}, and not as `everlog serve` does: {text!r}.")
    return refusal_of(problem)


def refusal_of(problem: Problem) -> EverlogError:
    """Return the error that a server answered with. Its attributes say the code, and when to come back."""
    error = error_of(problem)
    if problem.retry_after_s:
        vars(error)["retry_after_s"] = problem.retry_after_s
    vars(error)["refused_as"] = problem.code
    return error


def wait_s_of(error: EverlogError) -> float:
    """Return the seconds after which a server takes the same request; 0: it will not take it by itself."""
    later = vars(error).get("refused_as") in LATER
    return float(vars(error).get("retry_after_s", 1.0)) if later else 0.0


def is_missing(error: EverlogError) -> bool:
    """Return True if a server has nothing under the address of a request."""
    return isinstance(error, UnknownAgent) or vars(error).get("refused_as") == "not-found"


def decoded(content: bytes, kind: type[BodyT]) -> BodyT:
    """Return an answer as its struct. Raises ClusterError for one that has another shape."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise ClusterError(
            f"The server answered something that this everlog does not understand: {error}. Is it of another version?"
        ) from error
