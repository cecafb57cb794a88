"""Compute when a timer of a clock time is due: `07:00 on weekdays` in the time zone of its agent. Pure.

Used by hosts, which set such a timer again whenever it fires, and by `everlog timer`. A schedule is written as in a
crontab, with five fields. Only the wall clock of the zone counts, so a timer stays at 07:00 when summer time begins.
A time that a change of the clock skips counts as the moment after the change, and a time that occurs twice counts
once, the first time.
"""

from datetime import UTC, datetime, timedelta

from everlog.actors.ports.agent_constants import TIMER_AT_MAX
from everlog.events import BadInput
from everlog.events.times import MICROSECONDS, microseconds_of, moment, since_epoch
from everlog.projections.time_zones import zone_of

FIELDS = 5
"""Fields of a schedule: minute, hour, day of the month, month, day of the week."""
TRIES_MAX = 100
"""Times of a schedule that may lie in an hour that the clock repeats; a schedule of each minute has 60."""


def first_heartbeat(
    now: int, due_at: datetime | None, every: timedelta | None, cron: str, zone: str
) -> tuple[int, int]:
    """Return when a timer of the Python API is due first, microseconds UTC, and the seconds between its heartbeats.

    The parameters are those of `AgentRef.set_timer`; `now`: microseconds UTC. Raises BadInput.
    """
    if cron:
        if due_at is not None or every:
            raise BadInput("`cron` says when a timer fires: give it without `due_at` and `every`. No timer was set.")
        return next_due(cron, zone, now), 0
    if due_at is None and not every:
        raise BadInput(
            "A timer needs `due_at` (a datetime with a time zone), `every` (a timedelta between heartbeats), both, or "
            "`cron`. No timer was set."
        )
    every_s = _seconds_of(every)
    return now + every_s * MICROSECONDS if due_at is None else microseconds_of(due_at, "due_at"), every_s


def _seconds_of(every: timedelta | None) -> int:
    """Return a time between heartbeats in seconds; 0 for None. Raises BadInput unless it is a number of seconds."""
    if every is None:
        return 0
    if not isinstance(every, timedelta) or every % timedelta(seconds=1):
        raise BadInput(f"`every` is a timedelta of whole seconds, such as timedelta(hours=1), not {every!r}.")
    return every // timedelta(seconds=1)


def check_schedule(cron: str) -> None:
    """Raise BadInput for a text that is no schedule of five fields."""
    from croniter import croniter

    if len(cron.split()) != FIELDS or not croniter.is_valid(cron):
        raise BadInput(
            f"{cron[:80]!r} is not a schedule: five fields for minute, hour, day of the month, month and day of the "
            'week, such as "0 7 * * 1-5" for 07:00 from Monday to Friday. No timer was set.'
        )


def next_due(cron: str, zone: str, after: int) -> int:
    """Return the first time of a schedule after `after` (exclusive), both in microseconds UTC. Raises BadInput for a
    schedule that is not valid or never due, and for an unknown zone.
    """
    check_schedule(cron)
    from croniter import CroniterBadDateError, croniter

    local = moment(after).astimezone(zone_of(zone)).replace(tzinfo=None)
    # The times before `after` on the wall clock: the clock may have been set back over them.
    times = croniter(cron, local - timedelta(microseconds=1), ret_type=datetime)
    try:
        for _ in range(TRIES_MAX):
            due = instant_of(times.get_next(), zone)
            if after < due <= TIMER_AT_MAX:
                return due
    except CroniterBadDateError as error:
        raise BadInput(f"The schedule {cron!r} has no time in the next years. No timer was set.") from error
    raise BadInput(f"The schedule {cron!r} has no time before the year 9999. No timer was set.")


def instant_of(wall: datetime, zone: str) -> int:
    """Return the moment at which clocks in `zone` show a time without a zone, microseconds UTC. Raises BadInput for an
    unknown zone.

    A skipped time is the moment at which the clock jumps, a repeated one its first occurrence.
    """
    where = zone_of(zone)
    due = wall.replace(tzinfo=where, fold=0).astimezone(UTC)
    if due.astimezone(where).replace(tzinfo=None) != wall:  # skipped: find the jump
        due = _jump(due, zone)
    return since_epoch(due)


def _jump(near: datetime, zone: str) -> datetime:
    """Return the moment within a day before `near` at which the clocks in `zone` were set forward."""
    where = zone_of(zone)
    low, high = since_epoch(near - timedelta(days=1)) // MICROSECONDS, since_epoch(near) // MICROSECONDS
    after = moment(high * MICROSECONDS).astimezone(where).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if moment(middle * MICROSECONDS).astimezone(where).utcoffset() == after:
            high = middle
        else:
            low = middle
    return moment(high * MICROSECONDS)
