"""Transitions of the console: a state and a key in, the next state out. Pure.

Used by `console_loop`, which sends the keys, and by `console_frame`, which draws the state.

Effects are only requested here, in fields of the state (`fork`, `leaving`); `console_loop.drive` carries them out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Literal

import msgspec

from everlog.interfaces.replay_console import playback as player
from everlog.interfaces.replay_console.playback import Playback
from everlog.interfaces.replay_console.timeline import JumpPoint, ReplayTimeline

ConsoleMode = Literal["watch", "help", "search", "fork"]

_JUMP_KEYS: Mapping[str, tuple[JumpPoint, str]] = {
    "n": ("turn", "later turn"),
    "shift-right": ("turn", "later turn"),
    "s": ("summary", "later summary"),
    "e": ("edit", "later memory edit"),
    "f": ("failure", "later failure"),
}
"""Keys that jump forward, with the description of their target for "There is no ..."."""
_BACK: Mapping[str, tuple[JumpPoint, str]] = {
    "p": ("turn", "earlier turn"),
    "shift-left": ("turn", "earlier turn"),
    "S": ("summary", "earlier summary"),
    "E": ("edit", "earlier memory edit"),
}
_replace = msgspec.structs.replace


class Console(msgspec.Struct, frozen=True, kw_only=True):
    """State of the console: the player, and the text that is being typed."""

    playback: Playback
    mode: ConsoleMode = "watch"
    typed: str = ""
    """Line that is being typed, in the modes `search` and `fork`."""
    said: str = ""
    """Message shown in place of the keys until the next key is pressed."""
    search_text: str = ""
    """Text of the last search."""
    fork: str = ""
    """Name of a requested fork at the current record; empty if none is requested."""
    leaving: bool = False


def press_key(console: Console, key: str, story: ReplayTimeline) -> Console:
    """Return the state after a key: a character, or a name such as `left`, `enter`, `escape`, `backspace`, `home`."""
    console = _replace(console, said="")
    match console.mode:
        case "watch":
            return _watching(console, key, story)
        case "help":
            return _replace(console, mode="watch")
    return _typing(console, key, story)


def _watching(console: Console, key: str, story: ReplayTimeline) -> Console:
    playback = console.playback
    match key:
        case " ":
            return _replace(console, playback=player.toggle_pause(playback))
        case "right" | "l":
            return _replace(console, playback=player.at_record(playback, playback.seq + 1))
        case "left" | "h":
            return _replace(console, playback=player.at_record(playback, playback.seq - 1))
        case "g" | "home":
            return _replace(console, playback=player.at_record(playback, playback.first))
        case "G" | "end":
            return _replace(console, playback=player.at_record(playback, playback.last))
        case "+" | "=" | "up":
            return _replace(console, playback=player.faster(playback, 2))
        case "-" | "down":
            return _replace(console, playback=player.faster(playback, 0.5))
        case "q" | "end of input":
            return _replace(console, leaving=True)
        case _:
            return _jump(console, key, story)


def _jump(console: Console, key: str, story: ReplayTimeline) -> Console:
    """Handle the keys that jump to a place, or ask for a line of text."""
    playback = console.playback
    if key == "N" or (key == "n" and console.search_text):
        return _search(console, console.search_text, story, back=key == "N")
    if key in _JUMP_KEYS:
        kind, what = _JUMP_KEYS[key]
        return _to(console, story.after(kind, playback.seq), what)
    if key in _BACK:
        kind, what = _BACK[key]
        return _to(console, story.before(kind, playback.seq), what)
    match key:
        case "?":
            return _replace(console, mode="help")
        case "/":
            return _asking(console, "search")
        case "F" | "b":
            return _asking(console, "fork")
        case "escape":
            return _replace(console, search_text="")
    return console


def _to(console: Console, seq: int | None, what: str) -> Console:
    """Return the state at a seq; with a message if there is no such seq between the ends."""
    playback = console.playback
    if seq is None or not playback.first <= seq <= playback.last:
        return _replace(console, said=f"There is no {what}.")
    return _replace(console, playback=player.at_record(playback, seq))


def _asking(console: Console, mode: ConsoleMode) -> Console:
    """Return the state that reads a line; the player pauses meanwhile."""
    return _replace(console, mode=mode, typed="", playback=player.at_record(console.playback, console.playback.seq))


def _typing(console: Console, key: str, story: ReplayTimeline) -> Console:
    match key:
        case "escape" | "end of input":
            return _replace(console, mode="watch", typed="")
        case "backspace":
            return _replace(console, typed=console.typed[:-1])
        case "enter":
            return _entered(_replace(console, mode="watch", typed=""), console, story)
    return _replace(console, typed=console.typed + key) if len(key) == 1 and key.isprintable() else console


def _entered(console: Console, asked: Console, story: ReplayTimeline) -> Console:
    """Handle an entered line; `asked` is the state that asked for it."""
    if asked.mode == "search":
        return _search(console, asked.typed or console.search_text, story)
    return _replace(console, fork=asked.typed.strip())


def _search(console: Console, words: str, story: ReplayTimeline, *, back: bool = False) -> Console:
    """Go to the next record that contains the words, or with `back` to the one before; around the ends if there is
    none.
    """
    if not words:
        return _replace(console, said="No search yet: press / to search.")
    playback, console = console.playback, _replace(console, search_text=words)
    matches = story.find_all(words, range(playback.first, playback.last + 1))
    if not matches:
        return _replace(console, said=f"“{words}” was not found.")
    place = bisect_left(matches, playback.seq) - 1 if back else bisect_right(matches, playback.seq)
    is_around = not 0 <= place < len(matches)
    place %= len(matches)
    around = f", continued from the {'end' if back else 'beginning'}" if is_around else ""
    said = f"“{words}”: match {place + 1:,} of {len(matches):,}{around}"
    return _replace(_to(console, matches[place], ""), said=said)
