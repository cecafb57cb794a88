"""The console at work: shows frames, waits for keys and for what is due, and has done what keys ask for.

The terminal, the clock, forking and reading on are given to it, so that a test can be all of them.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
from rich.text import Text

from everlog.actors.ports.effects import Clock
from everlog.events import EverlogError
from everlog.events.times import MICROSECONDS
from everlog.interfaces.replay_console import playback as player
from everlog.interfaces.replay_console.console_frame import frame
from everlog.interfaces.replay_console.console_state import Console, press_key
from everlog.interfaces.replay_console.timeline import ReplayTimeline

PATIENCE_S = 0.5
"""Longest wait for a key before the log, and the size of the terminal, are looked at again."""

ForkCallback = Callable[[int, str], None]
"""Fork the agent at a seq, under a new name. Raises EverlogError where that cannot be."""
RefreshCallback = Callable[[], bool]
"""Take what is new in the log into the story; whether there was anything."""


class ConsoleScreen(Protocol):
    """Where the console is shown, and where keys come from."""

    def size(self) -> tuple[int, int]:
        """Cells in a line, and lines."""
        ...

    def show(self, page: Text) -> None:
        """Show a frame in place of the one before."""
        ...

    def keys(self, seconds: float) -> Sequence[str]:
        """The keys that were pressed; waits for the first one, so long at most."""
        ...

    def suspended(self) -> AbstractContextManager[None]:
        """The terminal as it was before, while the block runs."""
        ...


def drive(
    console: Console,
    story: ReplayTimeline,
    terminal: ConsoleScreen,
    clock: Clock,
    *,
    fork: ForkCallback,
    grow: RefreshCallback,
) -> None:
    """Until somebody leaves."""
    before = clock.now()
    looked = before
    shown: tuple[object, ...] = ()
    while not console.leaving:
        shown = _shown(console, story, terminal, shown)
        keys = terminal.keys(_patience_s(console, story))
        now = clock.now()
        console = _advanced(console, story, now - before)
        before = now
        for key in keys:
            console = press_key(console, key, story)
            if console.fork:
                console = _forked(console, terminal, fork)
                before = clock.now()
        if console.playback.follow and now - looked >= PATIENCE_S * MICROSECONDS:
            looked = now
            console = (
                _with_playback(console, player.with_more_records(console.playback, story.last)) if grow() else console
            )


def _shown(
    console: Console, story: ReplayTimeline, terminal: ConsoleScreen, before: tuple[object, ...]
) -> tuple[object, ...]:
    """Show a frame if it would be another than the one before; what tells them apart."""
    width, height = terminal.size()
    still = _with_playback(console, msgspec.structs.replace(console.playback, waited_us=0))
    now = (still, width, height)
    if now != before:
        terminal.show(frame(console, story, width, height))
    return now


def _patience_s(console: Console, story: ReplayTimeline) -> float:
    due = player.due_us(console.playback, story.records)
    return PATIENCE_S if due is None else min(due / MICROSECONDS, PATIENCE_S)


def _advanced(console: Console, story: ReplayTimeline, elapsed_us: int) -> Console:
    """After some time; not more than people saw pass: the process may have been stopped meanwhile."""
    seen = min(elapsed_us, int(2 * PATIENCE_S * MICROSECONDS))
    return _with_playback(console, player.after_time(console.playback, seen, story.records))


def _forked(console: Console, terminal: ConsoleScreen, fork: ForkCallback) -> Console:
    """After the fork that was asked for, or with the reason why it could not be."""
    name, seq = console.fork, console.playback.seq
    said = f"Forked at seq {seq}: `everlog chat {name}` goes on from here."
    with terminal.suspended():
        try:
            fork(seq, name)
        except EverlogError as error:
            said = str(error)
    return msgspec.structs.replace(console, fork="", said=said)


def _with_playback(console: Console, playback: player.Playback) -> Console:
    return msgspec.structs.replace(console, playback=playback)
