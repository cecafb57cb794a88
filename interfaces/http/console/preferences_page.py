"""Choose how the pages look in this browser."""

from typing import cast, get_args

import msgspec
from starlette.responses import Response

from everlog.interfaces.http.console.form_body import read_form
from everlog.interfaces.http.console.page_response import page, redirect
from everlog.interfaces.http.console.preferences import Preferences, Theme, cookies_for, is_zone, preferences_of
from everlog.interfaces.http.console.surface import PREFIX, own_path
from everlog.interfaces.http.core.routes import HttpCall

THEMES = {"": "as the browser", "light": "light", "dark": "dark"}


class PreferencesQuery(msgspec.Struct, frozen=True):
    """Parameters of the page."""

    next: str = PREFIX
    """Page to go to afterwards."""


async def show_preferences(call: HttpCall) -> Response:
    """Show the form with the choices of this browser."""
    return _form(call, preferences_of(call.request), own_path(call.query.next))


async def save_preferences(call: HttpCall) -> Response:
    """Keep the choices of a form in the browser, and go back. An unknown time zone changes nothing."""
    fields = await read_form(call)
    theme, zone = fields.get("theme", ""), fields.get("zone", "").strip()
    chosen = Preferences(cast(Theme, theme) if theme in get_args(Theme) else "", zone, "keys" in fields)
    next_page = own_path(fields.get("next", ""))
    if not is_zone(zone):
        return _form(
            call, chosen, next_page, f"There is no time zone {zone[:80]!r} on the server. Nothing was changed."
        )
    answer = redirect(next_page)
    for cookie in cookies_for(chosen):
        answer.headers.append("Set-Cookie", cookie)
    return answer


def _form(call: HttpCall, chosen: Preferences, next_page: str, fault: str = "") -> Response:
    values = {"chosen": chosen, "next": next_page, "fault": fault, "themes": THEMES}
    return page(call.request, "preferences.html", values, status=400 if fault else 200)
