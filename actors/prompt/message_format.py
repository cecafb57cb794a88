"""Render each event for the model: small JSON objects in MemGPT's shapes. Pure.

Times are the record's own (`said_at` of an import, else `recorded_at`), in the agent's zone. Used by the calling
formats, `render_request.py` and `memgpt_functions.py`. Raise `agent_constants.RENDERER` if a text changes.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec

from everlog.events import ApprovalDecided, FunctionResult, Heartbeat, Summary, SummaryExpanded, UserLogin, UserMessage
from everlog.events.times import MICROSECONDS
from everlog.projections.time_zones import zone_of

HIDDEN = "[This is an automated system message hidden from the user] "

_REASONS = {
    "timer": "A timer went off",
    "requested": HIDDEN + "Function called using request_heartbeat=true, returning control",
    "function_failed": HIDDEN + "Function call failed, returning control",
    "manual": "Someone asked for this heartbeat by hand",
}

_DECISIONS = {
    "approved": "A person approved the call of {}, which had waited. Its result follows.",
    "refused": "A person refused the call of {}, which had waited. It was not run.",
    "expired": "No person approved the call of {} in time. It was not run.",
}

_ANSWERS = {
    "approved": "A person answered the question of the call of {}, and the call continued. Its result follows.",
    "refused": "A person did not answer the question of the call of {}. The call did not continue.",
    "expired": "No person answered the question of the call of {} in time. The call did not continue.",
}

PRESSURE_WARNING = (
    "[This is an automated system message hidden from the user: do not mention it.] The conversation is close to the "
    "end of your context window; the oldest part of it will soon be replaced by a summary. If there is anything that "
    "you want to keep, save it now with core_memory_append, core_memory_replace or archival_memory_insert."
)
"""Words of the warning that the context window is nearly full."""

_json = msgspec.json.Encoder()


class _InputEnvelope(msgspec.Struct, omit_defaults=True, gc=False):
    """JSON shape of an event for the model; fields that are None are left out."""

    type: str
    message: str | None = None
    reason: str | None = None
    last_login: str | None = None
    name: str | None = None
    status: str | None = None
    instructions: str | None = None
    time: str | None = None


class _ResultEnvelope(msgspec.Struct, gc=False):
    status: str
    message: str | None
    time: str


@lru_cache(maxsize=4096)
def _clock(seconds: int, zone: str) -> str:
    """Format as `strftime("%Y-%m-%d %I:%M:%S %p %Z%z")` does, in half the time, and independent of the locale."""
    at = datetime.fromtimestamp(seconds, zone_of(zone))
    half = "PM" if at.hour >= 12 else "AM"
    time = f"{at.hour % 12 or 12:02}:{at.minute:02}:{at.second:02} {half}"
    return f"{at.year}-{at.month:02}-{at.day:02} {time} {at.tzname()}{_offset(at.utcoffset() or timedelta())}"


@lru_cache(maxsize=256)
def _offset(offset: timedelta) -> str:
    """Format the offset of a zone as +HHMM, with seconds if it has any."""
    minutes, seconds = divmod(abs(int(offset.total_seconds())), 60)
    sign = "-" if offset < timedelta() else "+"
    return f"{sign}{minutes // 60:02}{minutes % 60:02}" + (f"{seconds:02}" if seconds else "")


def format_time(at: int, zone: str) -> str:
    """Format time `at` (microseconds UTC) for the model, in the IANA `zone`."""
    return _clock(at // MICROSECONDS, zone)


def day(at: int, zone: str) -> str:
    """Return the day of time `at` (microseconds UTC) in `zone`, as YYYY-MM-DD."""
    return datetime.fromtimestamp(at / MICROSECONDS, UTC).astimezone(zone_of(zone)).strftime("%Y-%m-%d")


def truncate_text(text: str, shown: int | None, seq: int) -> str:
    """Return the first `shown` characters and a reference to the whole; all of it if `shown` is None."""
    if shown is None or len(text) <= shown:
        return text
    return f"{text[:shown]} [... {len(text) - shown} more characters; the whole is record {seq} of the log]"


def _dump(envelope: _InputEnvelope | _ResultEnvelope) -> str:
    return _json.encode(envelope).decode()


def user_message(event: UserMessage, at: int, zone: str, text: str) -> str:
    """Render a user's message."""
    kind = "agent_message" if event.agent else "user_message"
    envelope = _InputEnvelope(
        kind, message=text, name=event.name or None, instructions=event.note or None,
        time=format_time(at, zone),
    )  # fmt: skip
    return _dump(envelope)


def login(event: UserLogin, at: int, zone: str) -> str:
    """Render the login of a user."""
    last = format_time(event.last_login, zone) if event.last_login else "Never (first login)"
    return _dump(_InputEnvelope("login", last_login=last, time=format_time(at, zone)))


def heartbeat(event: Heartbeat, at: int, zone: str) -> str:
    """Render a heartbeat, with its reason."""
    reason = event.text or _REASONS[event.reason]
    if event.timer:
        reason = f"{reason} ({event.timer}{', late' if event.late else ''})"
    return _dump(_InputEnvelope("heartbeat", reason=reason, time=format_time(at, zone)))


def alert(at: int, zone: str, text: str) -> str:
    """Render a system alert."""
    return _dump(_InputEnvelope("system_alert", message=text, time=format_time(at, zone)))


def approval(event: ApprovalDecided, at: int, zone: str, text: str) -> str:
    """Render the decision about a call that waited for an approval, with its reason."""
    texts = _DECISIONS if event.state is None else _ANSWERS
    message = texts[event.decision].format(event.name)
    if event.edited and event.state is None:  # answers are for the function alone
        message += f" The person changed its arguments: {event.arguments}"
    if text:
        message += f" Reason: {text}"
    return _dump(_InputEnvelope("approval", message=message, time=format_time(at, zone)))


def approved_result(event: FunctionResult, at: int, zone: str, text: str) -> str:
    """Render the result of a call that ran after its approval: the reply that asked for it had its result before."""
    envelope = _InputEnvelope(
        "function_result", name=event.name, status=_status(ok=event.ok), message=text or None,
        time=format_time(at, zone),
    )  # fmt: skip
    return _dump(envelope)


def function_result(event: FunctionResult, at: int, zone: str, text: str) -> str:
    """Render the result of a function."""
    return _encoded_result(ok=event.ok, message=text or None, time=format_time(at, zone))


def _encoded_result(*, ok: bool, message: str | None, time: str) -> str:
    return _dump(_ResultEnvelope(_status(ok=ok), message, time))


def _status(*, ok: bool) -> str:
    return "OK" if ok else "Failed"


def no_result(at: int, zone: str) -> str:
    """Render the result of a call that has none: a request is never sent with a call that lacks a result."""
    return _encoded_result(ok=False, message="The call has no result yet.", time=format_time(at, zone))


def summary(event: Summary | SummaryExpanded, at: int, zone: str) -> str:
    """Render a summary, and the number of messages that it hides."""
    message = (
        f"Note: prior messages ({event.hidden} of {event.total} total messages) have been hidden from view due to "
        f"conversation memory constraints.\nThe following is a summary of the previous {event.summarized} messages:\n"
        f" {event.text}"
    )
    return _dump(_InputEnvelope("system_alert", message=message, time=format_time(at, zone)))


def plain_ok(time: str) -> str:
    """Render the result of an imported message: it was sent."""
    return _encoded_result(ok=True, message=None, time=time)
