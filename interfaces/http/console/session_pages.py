"""Sign in with a key or a one-time link, and sign out. The key is then a cookie that no script can read.

Every use of the cookie asks the store's keys: a key that was revoked is refused at once, by every server.
"""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.console.form_body import read_form
from everlog.interfaces.http.console.page_response import page, redirect
from everlog.interfaces.http.console.surface import PREFIX, own_path
from everlog.interfaces.http.core import guards
from everlog.interfaces.http.core.keys import LINK_NAME
from everlog.interfaces.http.core.keys import PREFIX as KEY_PREFIX
from everlog.interfaces.http.core.routes import HttpCall

SESSION_S = 12 * 3600
"""Time for which a one-time link opens the console, seconds."""


class SignInQuery(msgspec.Struct, frozen=True):
    """Parameters of the page to sign in."""

    link: str = ""
    """Key of a one-time link."""
    next: str = PREFIX
    """Page to go to afterwards."""


async def show_sign_in(call: HttpCall) -> Response:
    """Show the form to sign in; for a one-time link, a button that uses it. Loading the page uses nothing."""
    query: SignInQuery = call.query
    values = {"next": own_path(query.next), "message": ""}
    if query.link:
        return page(call.request, "use_link.html", {**values, "link": query.link})
    return page(call.request, "sign_in.html", values)


async def sign_in(call: HttpCall) -> Response:
    """Keep a key in a cookie, if it is valid; exchange a one-time link for a key that lasts a day's work."""
    fields = await read_form(call)
    service, now = call.service, call.service.ports.clock.now()
    next_page = own_path(fields.get("next", ""))
    key = fields.get("key", "").strip()
    if link := fields.get("link", ""):
        key = f"{KEY_PREFIX}{service.secret()}"
        expires_at, key_id = now + SESSION_S * MICROSECONDS, service.ports.ids.new(now)
        used = await service.ports.aside(
            lambda: service.keys.use_link(link, key=key, key_id=key_id, now=now, expires_at=expires_at)
        )
        if used is None:
            message = "The link was used before, is older than five minutes, or is of another store."
            return _again(call.request, next_page, f"{message} `everlog console` makes another one.")
        return redirect(next_page, {"Set-Cookie": cookie(call.request, key, SESSION_S)})
    entry = service.keys.find(key, now) if key else None
    if entry is None or entry.name == LINK_NAME:
        return _again(call.request, next_page, "The key is unknown, has expired or was revoked.")
    lasts = None if entry.expires_at is None else max(1, (entry.expires_at - now) // MICROSECONDS)
    return redirect(next_page, {"Set-Cookie": cookie(call.request, key, lasts)})


async def sign_out(call: HttpCall) -> Response:
    """Remove the cookie."""
    await read_form(call)
    return redirect(f"{PREFIX}/sign-in", {"Set-Cookie": cookie(call.request, "", 0)})


def cookie(request: Request, key: str, lasts_s: int | None) -> str:
    """Return the header that sets the cookie. `lasts_s`: None: until the browser is closed."""
    parts = [f"{guards.cookie_name(request)}={key}", "Path=/", "HttpOnly", "SameSite=Strict"]
    parts += [] if lasts_s is None else [f"Max-Age={lasts_s}"]
    parts += ["Secure"] if request.headers.get("origin", "").startswith("https:") else []
    return "; ".join(parts)


def _again(request: Request, next_page: str, message: str) -> Response:
    return page(request, "sign_in.html", {"next": next_page, "message": message}, status=401)
