"""Fast paths for times and configurations give the same results as the slow ones."""

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from everlog.actors.prompt.message_format import format_time
from everlog.events.times import MICROSECONDS
from tests.support.agent_world import World, say

ZONES = ("UTC", "Europe/Oslo", "America/St_Johns", "Africa/Monrovia", "Asia/Kathmandu")


@given(seconds=st.integers(-10_000_000_000, 10_000_000_000), zone=st.sampled_from(ZONES))
@example(seconds=-2_500_000_000, zone="Africa/Monrovia")  # at that time its UTC offset had seconds
def test_the_time_is_formatted_as_strftime_does(seconds: int, zone: str) -> None:
    """For any moment and zone the fast formatter gives the same text as strftime, which the first requests were
    rendered with.
    """
    expected = datetime.fromtimestamp(seconds, ZoneInfo(zone)).strftime("%Y-%m-%d %I:%M:%S %p %Z%z")
    assert format_time(seconds * MICROSECONDS, zone) == expected


def test_agents_that_are_set_up_alike_share_their_configuration() -> None:
    """Agents with equal prompt and functions share one configuration object, so that a thousand of them hold one
    copy.
    """
    configurations = []
    for _ in range(2):
        world = World(say("Hello."))
        asyncio.run(world.tell("hello"))
        configurations.append(world.system.view("sam").context().config)
    assert configurations[0] is configurations[1]
