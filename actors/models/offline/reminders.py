"""Find what a user wants to be reminded of, and when; and write and read the timers that do it. Pure, no state.

"Remind me to buy bread in 2 minutes" becomes a timer whose text is the order to remind the user: when its heartbeat
comes, the offline model finds the words there, for it remembers nothing else. Used by `answers.py`.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from everlog.actors.models.offline.english import any_case, short, stems

ORDER = "Remind the user: "
"""Beginning of the text of a timer that reminds the user."""
_LATE = "late"
_CHARS_MAX = 90

_UNITS = {"second": 1 / 60, "minute": 1, "hour": 60, "day": 24 * 60, "week": 7 * 24 * 60}
_UNIT = r"(second|minute|hour|day|week)s?"
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HOURS = {"morning": (8, 0), "evening": (19, 0)}
"""Times of day that have a name; other days without a time are at 09:00."""
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>am|pm|a\.m\.|p\.m\.|o'clock)?"
_ASKED = any_case(r"\b(?:remind me|wake me)\b")
_AFTER = any_case(rf"\bin (?P<count>\d{{1,6}}|an?|half an) {_UNIT}\b")
_EACH = any_case(rf"\bevery (?P<count>\d{{1,4}} )?{_UNIT}\b")
_WEEKLY = any_case(rf"\b(?:every|each) (?P<day>day|weekday|morning|evening|{'|'.join(_DAYS)})s?(?: at {_CLOCK})?")
_AT = any_case(rf"\b(?:(?P<tomorrow>tomorrow)\s+)?at {_CLOCK}(?:\s+(?P<later>tomorrow))?\b")
_WHAT = any_case(
    r"^(?:(?:please|and|can you|could you|will you)[, ]+)*(?:remind|wake) me\b[,:]?\s*(?:to|that|of|about)?\s*"
)
_LIST = any_case(r"\b(?:what|which|list|show)\b.*\b(?:reminders?|timers?)\b|\bremind me (?:of|about) what\b")
_CANCEL = any_case(r"\b(?:cancel|delete|stop|forget|drop)\b.*\b(?:reminders?|timers?|reminding)\b(?P<about>.*)")
_DUE = re.compile(rf"{re.escape(ORDER)}(?P<what>.*) \((?P<name>[^()]*)\)$", re.DOTALL)


class Reminder(msgspec.Struct, frozen=True):
    """One reminder that a user asked for."""

    what: str
    when: Mapping[str, Any]
    """Arguments of `set_timer` that say when."""
    spoken: str
    """Words for the user that say when."""

    @property
    def call(self) -> dict[str, Any]:
        """All arguments of `set_timer`."""
        return {"name": name_of(self.what), "text": ORDER + self.what, **self.when}


def name_of(what: str) -> str:
    """Return the name of the timer that reminds of something."""
    return short(re.sub(r"[()]", " ", what), _CHARS_MAX)


def reminder_in(sentence: str, now: str) -> Reminder | None:
    """Return the reminder that a sentence asks for; None if it asks for none, or says no time. `now`: as an input says
    it, in the agent's zone.
    """
    if not _ASKED.search(sentence):
        return None
    found = _time_in(sentence, now)
    if found is None:
        return None
    place, when, spoken = found
    rest = " ".join(f"{sentence[: place.start()]} {sentence[place.end() :]}".split())
    what = _WHAT.sub("", rest.lstrip(" ,")).strip(" .!?,;:")
    return Reminder(short(what, _CHARS_MAX) or "the time has come", when, spoken)


def _time_in(sentence: str, now: str) -> tuple[re.Match[str], Mapping[str, Any], str] | None:
    """Return the words that say when, the arguments of `set_timer`, and words for the user; None if there are none."""
    if match := _AFTER.search(sentence):
        minutes = _count(match["count"]) * _UNITS[match[2].lower()]
        return match, {"in_minutes": int(minutes) if minutes == int(minutes) else round(minutes, 2)}, match[0].lower()
    if match := _WEEKLY.search(sentence):
        return match, *_weekly(match)
    if match := _EACH.search(sentence):
        schedule = _repeated(int(match["count"] or 1), match[2].lower())
        return (match, {"schedule": schedule}, match[0].lower()) if schedule else None
    match, today = _AT.search(sentence), _moment(now)
    clock = _clock(match) if match else None
    if match is None or clock is None or today is None:
        return None
    due = today.replace(hour=clock[0], minute=clock[1], second=0)
    if match["tomorrow"] or match["later"]:
        due += timedelta(days=1)
    elif due <= today:
        # A time that has passed is meant for the afternoon, else for tomorrow.
        afternoon = due + timedelta(hours=12)
        due = afternoon if clock[0] < 12 and not match["half"] and afternoon > today else due + timedelta(days=1)
    spoken = f"at {due:%H:%M}" if due.date() == today.date() else f"at {due:%H:%M} on {due:%Y-%m-%d}"
    return match, {"at": f"{due:%Y-%m-%d %H:%M}"}, spoken


def _repeated(count: int, unit: str) -> str:
    """Return the schedule of every so many minutes or hours; empty if the clock cannot be divided so."""
    if unit == "minute" and count and 60 % count == 0:
        return f"*/{count} * * * *" if count < 60 else "0 * * * *"
    if unit == "hour" and count and 24 % count == 0:
        return f"0 */{count} * * *" if count < 24 else "0 0 * * *"
    return ""


def _weekly(match: re.Match[str]) -> tuple[Mapping[str, Any], str]:
    """Return the schedule of a repeated day, and words for the user."""
    day = match["day"].lower()
    hour, minute = _clock(match) or _HOURS.get(day, (9, 0))
    of_week = str(_DAYS.index(day) + 1) if day in _DAYS else "1-5" if day == "weekday" else "*"
    return {"schedule": f"{minute} {hour} * * {of_week}"}, f"every {day} at {hour:02}:{minute:02}"


def _count(written: str) -> float:
    return float(written) if written.isdecimal() else 0.5 if written.lower().startswith("half") else 1


def _clock(match: re.Match[str]) -> tuple[int, int] | None:
    """Return the hour and minute of a time of day; None if there is none, or it is not valid."""
    if not match["hour"]:
        return None
    hour, minute, half = int(match["hour"]), int(match["minute"] or 0), (match["half"] or "").lower()[:1]
    if half in ("a", "p"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    return (hour, minute) if hour < 24 and minute < 60 else None


def _moment(time: str) -> datetime | None:
    """Parse the time of an input, such as `2026-05-01 02:03:04 PM UTC+0000`."""
    try:
        return datetime.strptime(time[:22], "%Y-%m-%d %I:%M:%S %p")  # noqa: DTZ007 - a wall clock, as set_timer takes it
    except ValueError:
        return None


def reminded(reason: str) -> str:
    """Return the sentence that reminds the user, from the reason of a heartbeat; empty for another timer's."""
    match = _DUE.match(reason)
    if match is None:
        return ""
    late = " This comes late, because I was not running at that time." if match["name"].endswith(f", {_LATE}") else ""
    return f"You asked me to remind you: {match['what']}.{late}"


def asks_for_list(sentence: str) -> bool:
    """Return True if a sentence asks which reminders there are."""
    return bool(_LIST.search(sentence)) and not cancels(sentence)


def cancels(sentence: str) -> bool:
    """Return True if a sentence asks to cancel a reminder."""
    return bool(_CANCEL.search(sentence))


def to_cancel(sentence: str, timers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the timers that a sentence asks to cancel: those that share a word with it; the only one, or
    all of them, if it names none.
    """
    match = _CANCEL.search(sentence)
    wanted = stems(match["about"]) if match else set()
    if wanted:
        return [row["name"] for row in timers if wanted & stems(f"{row['name']} {row['text']}")]
    everything = re.search(r"\ball\b", sentence, re.IGNORECASE)
    return [row["name"] for row in timers] if everything or len(timers) == 1 else []


def listed(text: str) -> list[dict[str, Any]]:
    """Return the timers in a result of `list_timers`."""
    try:
        return msgspec.json.decode(text, type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return []
