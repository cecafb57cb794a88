"""What is done in a shorter way comes to the same: times, arguments, configurations."""

import asyncio
import json
from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from everlog.actors.formats import parse_first
from everlog.actors.ports.constants import MICROSECONDS
from everlog.actors.prompt.envelopes import told
from tests.support.world import World, say

ZONES = ("UTC", "Europe/Oslo", "America/St_Johns", "Africa/Monrovia", "Asia/Kathmandu")


@given(seconds=st.integers(-10_000_000_000, 10_000_000_000), zone=st.sampled_from(ZONES))
@example(seconds=-2_500_000_000, zone="Africa/Monrovia")  # when its offset had seconds
def test_the_time_is_told_as_strftime_tells_it(seconds: int, zone: str) -> None:
    """No moment in any zone reads otherwise than by the format that the first requests were rendered with."""
    expected = datetime.fromtimestamp(seconds, ZoneInfo(zone)).strftime("%Y-%m-%d %I:%M:%S %p %Z%z")
    assert told(seconds * MICROSECONDS, zone) == expected


def outcome(read: object, text: str) -> str:
    """What a reader of arguments makes of a text: its value, or the words of its refusal."""
    try:
        return repr(read(text))  # type: ignore[operator]
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(text=st.text() | JSON.map(json.dumps) | JSON.map(lambda value: json.dumps(value, ensure_ascii=False)))
@example(text='{"a":"\\ud83d"}')
@example(text='{"a":"\ud83d"}')
@example(text="\ufeff")
@example(text='\ufeff{"a":1}')
@example(text='{"a":"line\nbreak"} and more')
def test_arguments_that_need_no_mending_are_what_they_were(text: str) -> None:
    """To try the text as it stands first changes no value and no word of a refusal, half a character included."""
    assert outcome(parse_first._loaded, text) == outcome(parse_first._mended, text)


def test_agents_that_are_set_up_alike_share_their_configuration() -> None:
    """A thousand agents with the same prompt and functions hold one copy of them."""
    configurations = []
    for _ in range(2):
        world = World(say("Hello."))
        asyncio.run(world.tell("hello"))
        configurations.append(world.system.view("sam").context().config)
    assert configurations[0] is configurations[1]
