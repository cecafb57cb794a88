"""Choices of a person about pages: a theme, a time zone, and whether letters are keys, kept in cookies of the browser.

They are of the browser, not of the key: nothing about them is in the store. A cookie is text from outside, so one that
says something unknown counts as none.
"""

from typing import Literal, cast, get_args

import msgspec
from starlette.requests import Request

from everlog.events import BadInput
from everlog.projections.time_zones import zone_of

Theme = Literal["", "light", "dark"]
"""Empty: as the browser."""
THEME_COOKIE, ZONE_COOKIE, KEYS_COOKIE = "console-theme", "console-zone", "console-keys"
OFF = "off"
LASTS_S = 365 * 86_400
ZONE_CHARS_MAX = 64


class Preferences(msgspec.Struct, frozen=True):
    """Choices of a person for the pages."""

    theme: Theme = ""
    zone: str = "UTC"
    """IANA name."""
    letter_keys: bool = True
    """True if single letters and digits are keys: a voice or a helping device may type them by mistake."""


def preferences_of(request: Request) -> Preferences:
    """Return the choices that the cookies of a request say."""
    theme, zone = request.cookies.get(THEME_COOKIE, ""), request.cookies.get(ZONE_COOKIE, "")
    return Preferences(
        cast(Theme, theme) if theme in get_args(Theme) else "",
        zone if is_zone(zone) else "UTC",
        request.cookies.get(KEYS_COOKIE, "") != OFF,
    )


def is_zone(name: str) -> bool:
    """Return True if this machine has a time zone of that name."""
    if not name or len(name) > ZONE_CHARS_MAX:
        return False
    try:
        zone_of(name)
    except BadInput:
        return False
    return True


def cookies_for(chosen: Preferences) -> list[str]:
    """Return the headers that keep the choices."""
    values = {THEME_COOKIE: chosen.theme, ZONE_COOKIE: chosen.zone, KEYS_COOKIE: "" if chosen.letter_keys else OFF}
    return [
        f"{name}={value}; Path=/console; HttpOnly; SameSite=Lax; Max-Age={LASTS_S}" for name, value in values.items()
    ]
