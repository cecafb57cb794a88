"""Event loop of the console: show frames, wait for keys and due events, and fork when a key asks for it.

Used by `replay_command`.

Terminal, clock, fork and refresh are parameters, so that a test can replace each of them.
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
from everlog.store import typed

PATIENCE_S = 0.5
"""Longest wait for a key before the log and the size of the terminal are read again, seconds."""

ForkCallback = Callable[[int, str], None]
"""Fork the agent at a seq, under a new name. Raises EverlogError if that is not possible."""
RefreshCallback = Callable[[], bool]
"""Add new records of the log to the timeline. Returns True if there were any."""


class ConsoleScreen(Protocol):
    """Terminal that the console is shown on and gets its keys from."""

    def size(self) -> tuple[int, int]:
        """Return the number of cells in a line and the number of lines."""
        ...

    def show(self, page: Text) -> None:
        """Show a frame in place of the previous one."""
        ...

    def keys(self, seconds: float) -> Sequence[str]:
        """Return the keys that were pressed; wait at most `seconds` for the first one."""
        ...

    def suspended(self) -> AbstractContextManager[None]:
        """Restore the original state of the terminal while the block runs."""
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
    """Run the console until the person quits."""
    before = clock.now()
    looked = before
    shown: tuple[object, ...] = ()
    while not console.leaving:
        shown = _shown(console, story, terminal, shown)
        keys = terminal.keys(_key_wait_s(console, story))
        now = clock.now()
        console = _after_time(console, story, now - before)
        before = now
        for key in keys:
            console = press_key(console, key, story)
            if console.fork:
                console = _carry_out_fork(console, terminal, fork)
                # The time that the fork took does not count as time that the player ran.
                before = clock.now()
        if console.playback.follow and now - looked >= PATIENCE_S * MICROSECONDS:
            looked = now
            console = (
                _with_playback(console, player.with_more_records(console.playback, story.last)) if grow() else console
            )


def _shown(
    console: Console, story: ReplayTimeline, terminal: ConsoleScreen, before: tuple[object, ...]
) -> tuple[object, ...]:
    """Show a frame if it differs from the previous one. Return the values that a frame is drawn from."""
    width, height = terminal.size()
    still = _with_playback(console, msgspec.structs.replace(console.playback, waited_us=0))
    now = (still, width, height)
    if now != before:
        terminal.show(frame(console, story, width, height))
    return now


def _key_wait_s(console: Console, story: ReplayTimeline) -> float:
    due = player.due_us(console.playback, story.records)
    return PATIENCE_S if due is None else min(due / MICROSECONDS, PATIENCE_S)


def _after_time(console: Console, story: ReplayTimeline, elapsed_us: int) -> Console:
    """Advance the player by the elapsed time, at most by 1 s: the process may have been stopped in between."""
    seen = min(elapsed_us, int(2 * PATIENCE_S * MICROSECONDS))
    return _with_playback(console, player.after_time(console.playback, seen, story.records))


def _carry_out_fork(console: Console, terminal: ConsoleScreen, fork: ForkCallback) -> Console:
    """Fork as the keys asked for, and keep a message with the command or the error."""
    name, seq = console.fork, console.playback.seq
    said = f"Forked. Run `everlog chat {typed(name)}`."
    with terminal.suspended():
        try:
            fork(seq, name)
        except EverlogError as error:
            said = str(error)
    return msgspec.structs.replace(console, fork="", said=said)


def _with_playback(console: Console, playback: player.Playback) -> Console:
    return msgspec.structs.replace(console, playback=playback)
