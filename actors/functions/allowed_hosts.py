"""Decide which hosts may be sent requests, and parse URLs. Names and addresses are compared in one normal form. Pure.

Used by `http_function.py`, `http_transport.py` and the server's webhooks.
"""

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from everlog.events import BadInput, FunctionError

URL_CHARS_MAX = 4096

PORTS = {"http": 80, "https": 443}
"""Ports of a host that was allowed without a port."""

AllowedHosts = Mapping[str, frozenset[int]]
"""Allowed ports, by host."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMERIC = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)")
"""A host that some resolvers read as a number, and so as an address: 2130706433, 0x7f.1, 127.1."""
_PLAIN = re.compile(r"[!-\[\]-~]+")
"""ASCII without space, control characters and the backslash, which URL parsers treat differently."""


class RequestTarget(msgspec.Struct, frozen=True):
    """Destination of a request."""

    scheme: str
    host: str
    port: int
    path: str
    """Path with the query; begins with `/`."""

    @property
    def name(self) -> str:
        """Value of the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def hosts(entries: Iterable[str]) -> AllowedHosts:
    """Parse an allow-list of HOST and HOST:PORT entries. Raise BadInput for any other entry."""
    allowed: dict[str, frozenset[int]] = {}
    for entry in entries:
        host, port = _entry(entry)
        ports = PORTS.values() if port is None else (port,)
        allowed[host] = allowed.get(host, frozenset()).union(ports)
    return allowed


def _entry(entry: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"//{entry}")
        host, port = _spelled(parts.hostname or ""), parts.port
    except ValueError:
        host, port = "", None
    whole = _PLAIN.fullmatch(entry) and not set("/?#@") & set(entry) and not entry.endswith(":")
    if not (whole and host and port != 0):
        raise BadInput(
            f"{entry!r} is not HOST or HOST:PORT. Examples: api.example.org, api.example.org:8080, "
            "[2001:db8::1]:8080. Nothing was started."
        )
    return host, port


def target(url: str, allowed: AllowedHosts) -> RequestTarget:
    """Parse a URL. Raise FunctionError for an invalid URL, or a host and port that are not allowed."""
    goal = any_target(url)
    if not is_allowed(goal, allowed):
        raise FunctionError(
            f"{goal.host}:{goal.port} is not among the hosts that you may ask: {_hosts(allowed)}. The user can allow "
            "more: --allow-host HOST[:PORT]."
        )
    return goal


def is_allowed(goal: RequestTarget, allowed: AllowedHosts) -> bool:
    """Return True if an allow-list has the host and port of a target."""
    return goal.port in allowed.get(goal.host, ())


def any_target(url: str) -> RequestTarget:
    """Parse a URL, of any host. Raise FunctionError for one that is invalid, or not of a web server."""
    if len(url) > URL_CHARS_MAX or not _PLAIN.fullmatch(url):
        raise FunctionError(
            f"A URL has at most {URL_CHARS_MAX} characters of ASCII, none of them a space or a backslash; write others "
            "as %20."
        )
    try:
        parts = urlsplit(url)
        host, port = _spelled(parts.hostname or ""), parts.port
    except ValueError as error:
        raise FunctionError(f"{url!r} is no URL: {error}.") from error
    if parts.scheme not in PORTS or not host:
        raise FunctionError(
            f"{url!r} is no URL of a web server: one begins with https:// or http:// and a host's name."
        )
    if "@" in parts.netloc:
        raise FunctionError("A URL may hold no name or password: it is kept in the log.")
    port = PORTS[parts.scheme] if port is None else port
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return RequestTarget(parts.scheme, host, port, path)


def _hosts(allowed: AllowedHosts) -> str:
    return ", ".join(f"{host} (port {', '.join(map(str, sorted(ports)))})" for host, ports in sorted(allowed.items()))


def _spelled(host: str) -> str:
    """Normalize a host: an address in its standard form, a name in lower case; empty if it is neither."""
    try:
        return str(ip_address(host))
    except ValueError:
        name = host.lower().removesuffix(".")
    return name if len(name) <= 253 and _NAME.fullmatch(name) and not _NUMERIC.fullmatch(name) else ""
