"""Effects of the console's keys."""

import pytest

from everlog.interfaces.replay_console.console_state import Console, press_key
from everlog.interfaces.replay_console.playback import Playback
from tests.support.cli.story_records import RECORDS, console_at, story_of

STORY = story_of(RECORDS)


def typed(console: Console, *keys: str) -> Console:
    for key in keys:
        console = press_key(console, key, STORY)
    return console


@pytest.mark.parametrize(
    ("keys", "seq"),
    [
        (["right"], 2),
        (["l", "l", "h"], 2),
        (["left"], 1),
        (["n"], 4),
        (["shift-right", "n"], 13),
        (["n", "n", "p"], 4),
        (["G", "shift-left"], 13),
        (["s"], 14),
        (["G", "S"], 14),
        (["e", "e"], 6),
        (["e", "e", "E"], 3),
        (["f"], 11),
        (["G"], 16),
        (["end", "g"], 1),
        (["end", "home"], 1),
        (["/", *"ahoy", "enter"], 12),
        (["/", *"SAILS", "enter"], 5),
        (["/", *"sail", "enter", "n", "n"], 6),
        (["/", *"sail", "enter", "n", "n", "N"], 5),
        (["/", *"sail", "enter", "escape", "n"], 13),
        (["/", *"bergen", "enter"], 10),
    ],
    ids=lambda value: "".join(value) if isinstance(value, list) else value,
)
def test_keys_go_to_places(keys: list[str], seq: int) -> None:
    """Each key jumps to its target, and pauses there."""
    now = typed(console_at(STORY, 1), *keys)
    assert (now.playback.seq, now.playback.playing, now.mode) == (seq, False, "watch")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["G", "s"], "There is no later summary."),
        (["G", "e"], "There is no later memory edit."),
        (["G", "f"], "There is no later failure."),
        (["G", "n"], "There is no later turn."),
        (["p"], "There is no earlier turn."),
        (["/", *"unsaid", "enter"], "“unsaid” was not found."),
        (["G", "/", *"ahoy", "enter"], "“ahoy”: match 1 of 1, continued from the beginning"),
        (["N"], "No search yet: press / to search."),
    ],
    ids=lambda value: "".join(value) if isinstance(value, list) else "",
)
def test_a_key_without_a_target_shows_a_message(keys: list[str], said: str) -> None:
    """A key without a target shows a message until the next key."""
    now = typed(console_at(STORY, 1), *keys)
    assert now.said == said
    assert not typed(now, "?").said


def test_jumps_stay_in_the_part_that_is_watched() -> None:
    """Moments outside --from and --to cannot be reached."""
    part = Console(playback=Playback(seq=5, first=5, last=8))
    for key in ("s", "f", "p", "n"):
        now = typed(part, key)
        assert now.playback.seq == 5
        assert now.said
    assert typed(part, "/", *"ahoy", "enter").playback.seq == 5


def test_space_speed_help_and_leaving() -> None:
    """Space, speed, help and quit do not change the position."""
    begun = console_at(STORY, 1)
    assert typed(begun, " ").playback.playing
    assert not typed(begun, " ", " ").playback.playing
    assert typed(begun, "+", "+").playback.speed == 4
    assert typed(begun, "-").playback.speed == 0.5
    assert typed(begun, "?").mode == "help"
    assert typed(begun, "?", "q").mode == "watch"
    assert not typed(begun, "?", "q").leaving
    assert typed(begun, "q").leaving
    assert typed(begun, "end of input").leaving
    assert typed(begun, "z", "\x01") == begun


def test_a_fork_is_asked_for_by_name() -> None:
    """F and a name request a fork at the shown event; before Enter, or without a name, nothing is requested."""
    asking = typed(console_at(STORY, 6), "F", *"bob")
    assert (asking.mode, asking.typed, asking.fork) == ("fork", "bob", "")
    assert typed(asking, "enter").fork == "bob"
    assert typed(asking, "backspace", "backspace", "enter").fork == "b"
    assert typed(asking, "escape") == console_at(STORY, 6)
    assert not typed(asking, *["backspace"] * 5, "enter").fork
    assert typed(console_at(STORY, 6), "b", *"q s", "right", "enter").fork == "q s"


def test_typing_rests_the_player() -> None:
    """While a name or a search is typed, the shown event stays."""
    playing = typed(console_at(STORY, 6), " ")
    assert not typed(playing, "F").playback.playing
    assert not typed(playing, "/").playback.playing
    assert typed(playing, "?").playback.playing
