"""Timers of an agent, as they go over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from everlog.actors.ports.agent_constants import TIMER_EVERY_S_MAX

TimerSeconds = Annotated[int, msgspec.Meta(ge=1, le=TIMER_EVERY_S_MAX)]


class SetTimerBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A timer to set: `at` or `after_s`, with or without `every_s`; or `every_s` alone; or `daily`; or `cron`."""

    timer: str = ""
    """Name; one of the same name is replaced. Empty: a free name is chosen."""
    text: str = ""
    """Words that go to the model with each heartbeat."""
    at: datetime | None = None
    """Time of the first heartbeat; without a zone it is a time in `zone`."""
    after_s: Annotated[int, msgspec.Meta(ge=0, le=TIMER_EVERY_S_MAX)] | None = None
    """Seconds until the first heartbeat."""
    every_s: TimerSeconds | None = None
    """Seconds between heartbeats; null: one heartbeat only."""
    daily: Annotated[str, msgspec.Meta(pattern=r"^([01]?[0-9]|2[0-3]):[0-5][0-9]$")] | None = None
    """Time of each day, such as 07:00, in `zone`."""
    cron: str = ""
    """Schedule in the five fields of a crontab, such as `0 7 * * 1-5`, in `zone`."""
    zone: str = ""
    """IANA name of a time zone; empty: the agent's."""


class TimerShape(msgspec.Struct, frozen=True, kw_only=True):
    """A timer."""

    timer: str
    due: datetime
    """Time of the next heartbeat."""
    every_s: int
    """Seconds between heartbeats; 0: one heartbeat only, or those of a schedule."""
    cron: str | None
    """Schedule; null: none."""
    zone: str
    text: str


class TimersShape(msgspec.Struct, frozen=True, kw_only=True):
    """Timers of an agent that will send a heartbeat, in the order of their times."""

    agent: str
    as_of: int
    timers: Sequence[TimerShape]
