"""The loop of the console, with the test's own terminal, clock and forks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.text import Text

from everlog.events import BadInput
from everlog.interfaces.replay_console import load_timeline
from everlog.interfaces.replay_console.console_loop import drive
from everlog.interfaces.replay_console.console_state import Console
from everlog.interfaces.replay_console.playback import Playback
from tests.support.cli.story_records import RECORDS, SECOND, Past, story_of

STORY = story_of(RECORDS)


class HandClock:
    """A clock that advances only when the test advances it."""

    at = 0

    def now(self) -> int:
        return self.at


class Script:
    """A terminal whose user presses the given keys, one after each wait; an empty key lets the time pass."""

    def __init__(self, *keys: str, clock: HandClock | None = None) -> None:
        self.pages: list[str] = []
        self.waits: list[float] = []
        self.did: list[str] = []
        self.clock = clock or HandClock()
        self.pressed = list(keys)
        self.cells = (100, 24)

    def size(self) -> tuple[int, int]:
        return self.cells

    def show(self, page: Text) -> None:
        self.pages.append(page.plain)

    def keys(self, seconds: float) -> Sequence[str]:
        self.waits.append(seconds)
        key = self.pressed.pop(0) if self.pressed else "q"
        if not key:
            self.clock.at += int(seconds * SECOND)
        return [key] if key else []

    @contextmanager
    def suspended(self) -> Iterator[None]:
        self.did.append("gave the terminal back")
        yield
        self.did.append("took it again")


def driven(
    script: Script, playback: Playback, fork: Callable[[int, str], None] | None = None, grow=lambda: False, story=STORY
) -> Script:
    drive(Console(playback=playback), story, script, script.clock, fork=fork or never, grow=grow)
    return script


def never(_seq: int, _name: str) -> None:
    raise AssertionError("nobody asked for a fork")


WHOLE = Playback(seq=1, first=1, last=len(RECORDS))


def test_it_plays_to_the_end_in_the_recorded_time() -> None:
    """The loop waits until the next event is due, skips no event, and stops at the end."""
    script = driven(Script(*[""] * 60), Playback(seq=1, first=1, last=len(RECORDS), speed=2))
    seqs = [page.split(" seq ")[-1].split(" ")[0] for page in script.pages]
    assert list(dict.fromkeys(seqs)) == [str(seq) for seq in range(1, len(RECORDS) + 1)]
    assert sum(script.waits[: len(RECORDS) - 1]) == (len(RECORDS) - 1) / 2
    assert " END 2x " in script.pages[-1]


def test_nothing_is_drawn_twice() -> None:
    """An unchanged frame is not drawn again; after a change of the terminal's size a frame is drawn at once."""
    paused = Playback(seq=3, first=1, last=9, playing=False)
    assert len(driven(Script("", "", "", "z", ""), paused).pages) == 1
    script = Script("", "")
    begun = script.keys

    def resized(seconds: float) -> Sequence[str]:
        script.cells = (60, 20)
        return begun(seconds)

    script.keys = resized
    driven(script, paused)
    assert [len(page.split("\n")) for page in script.pages] == [24, 20]


def test_a_stopped_process_does_not_lose_the_story() -> None:
    """After an hour in the background the player continues near its old position."""
    clock = HandClock()
    script = Script("", clock=clock)
    waited = script.keys

    def slept(seconds: float) -> Sequence[str]:
        clock.at += 3600 * SECOND
        return waited(seconds)

    script.keys = slept
    driven(script, WHOLE)
    assert " seq 2 of 16" in script.pages[-1]


def test_a_fork_is_made_at_the_event_that_is_shown() -> None:
    """The terminal is restored first; then the command that continues with the fork is printed."""
    made: list[tuple[int, str]] = []
    script = Script("n", "F", *"bob", "enter", "")
    driven(script, WHOLE, fork=lambda seq, name: made.append((seq, name)))
    assert made == [(4, "bob")]
    assert script.did == ["gave the terminal back", "took it again"]
    assert "Forked. Run `everlog chat bob`." in script.pages[-1]


def test_a_fork_that_cannot_be_says_why() -> None:
    """The reason is shown, and the console continues."""

    def taken(_seq: int, name: str) -> None:
        raise BadInput(f"There is an agent {name!r} already.")

    script = driven(Script("F", *"bob", "enter", "right"), WHOLE, fork=taken)
    assert "There is an agent 'bob' already." in script.pages[-2]
    assert " seq 2 of 16" in script.pages[-1]


def test_following_shows_what_comes() -> None:
    """The log is read again every half second; new records are shown like the others, and counted."""
    with Past(RECORDS, 14) as past:
        story = load_timeline.begun(past)
        clock = HandClock()
        looks: list[int] = []

        def grow() -> bool:
            looks.append(clock.at)
            return len(looks) == 3 and load_timeline.more(past, story, None)

        playback = Playback(seq=14, first=1, last=14, follow=True)
        script = driven(Script(*[""] * 12, clock=clock), playback, grow=grow, story=story)
    assert looks[:3] == [SECOND // 2, SECOND, 3 * SECOND // 2]
    assert " LIVE 1x " in script.pages[0]
    assert "You never told me." in script.pages[-1]
    assert " seq 16 of 16" in script.pages[-1]
    assert " LIVE 1x " in script.pages[-1]


def test_without_following_the_log_is_left_alone() -> None:
    """The log is not read again."""

    def grow() -> bool:
        raise AssertionError("read again")

    driven(Script(*[""] * 40), WHOLE, grow=grow)
