"""Render a page of the console, with the headers that keep it alone with its server.

Everything that agents, documents and users said is text: templates escape every value, and `shown` makes what hides in
a text visible. The policy allows nothing from elsewhere, no script within a page, and no markup from strings.
"""

import gzip
from collections.abc import Mapping
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from everlog.events.times import iso
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.time_text import clock
from everlog.interfaces.http.console import static_files
from everlog.interfaces.http.console.preferences import preferences_of
from everlog.interfaces.http.console.tilde_names import written
from everlog.interfaces.http.pages.page_templates import templates_in

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    # Without a referrer a browser would not say that a form comes from this server.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Vary": "Accept-Encoding, Cookie",
}
GZIP_MIN = 1000
"""Size of the smallest page that is compressed, bytes."""
_LEVEL = 5
_zone: ContextVar[str] = ContextVar("_zone", default="UTC")
"""Time zone of the page that is being rendered: templates that are imported have no values of the page."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def age(at: int, now: int) -> str:
    """Return the time from a moment until now, in its largest unit: `3 min`. Both are microseconds UTC."""
    seconds = max(0, now - at) // 1_000_000
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size:,} {unit}"
    return f"{seconds} s"


def clock_of_page(at: int) -> str:
    """Return a time in the zone of the reader of the page that is being rendered."""
    return clock(at, _zone.get())


def shown(text: object) -> str:
    """Return a text for a page: invisible characters, and those that turn the direction, are written out."""
    return sanitize(str(text))


def number(value: float) -> str:
    """Return a whole number with separators."""
    return f"{value:,.0f}"


def percent(value: float) -> str:
    """Return a fraction in percent."""
    return f"{value:.0%}"


TEMPLATES = templates_in(
    Path(__file__).parent / "templates",
    {
        "age": age, "clock": clock_of_page, "iso": iso, "line": escape_line, "number": number, "percent": percent,
        "plural": plural, "shown": shown, "static": static_files.path_of, "tilde": written,
    },
)  # fmt: skip


def page(
    request: Request, template: str, values: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] = {}
) -> Response:
    """Return a rendered page. A browser that has the same page already gets 304."""
    signed_in = any(name.startswith("everlog-") for name in request.cookies)
    chosen = preferences_of(request)
    token = _zone.set(chosen.zone)
    try:
        text = TEMPLATES.render(
            template, signed_in=signed_in, theme=chosen.theme, letter_keys=chosen.letter_keys,
            own_address=_address_of(request), **values,
        )  # fmt: skip
    finally:
        _zone.reset(token)
    body = text.encode("utf-8", "backslashreplace")
    sent = {**HEADERS, **headers, "ETag": f'"{sha256(body).hexdigest()[:24]}"'}
    if status == 200 and request.headers.get("if-none-match") == sent["ETag"]:
        return Response(status_code=304, headers=sent)
    if len(body) >= GZIP_MIN and "gzip" in request.headers.get("accept-encoding", ""):
        body, sent["Content-Encoding"] = gzip.compress(body, _LEVEL, mtime=0), "gzip"
    return Response(body, status, headers=sent, media_type="text/html")


def _address_of(request: Request) -> str:
    """Return the address to come back to; empty where an address holds a secret, or is of a form."""
    url = request.url
    if request.method != "GET" or url.path.endswith("/sign-in"):
        return ""
    return f"{url.path}?{url.query}" if url.query else url.path


def redirect(path: str, headers: Mapping[str, str] = {}) -> Response:
    """Return the answer that sends a browser to another page of this server."""
    return Response(status_code=303, headers={**HEADERS, **headers, "Location": path})
