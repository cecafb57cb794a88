"""Draw one frame of the console: exactly as many lines and cells as the terminal has. Pure.

Used by `console_loop`.
"""

from rich.text import Text

from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.time_text import clock, span
from everlog.interfaces.output.terminal_output import one_line
from everlog.interfaces.replay_console import console_panes
from everlog.interfaces.replay_console.console_state import Console
from everlog.interfaces.replay_console.line_fitting import fit_line, side_by_side, sides, stack_lines, wrap_lines
from everlog.interfaces.replay_console.playback import Playback
from everlog.interfaces.replay_console.timeline import ReplayTimeline

SIDES_WIDTH = 90
"""Least width at which core memory is beside the events; on a narrower terminal it is below them."""
MEMORY_WIDTH_MAX = 72
BODY_LINES_MIN = 6
"""Lines that the events keep before the other parts get any, except for the heading and the keys."""
MEMORY_LINES_MIN = 5
"""Least number of lines for core memory below the events."""
FOOT_LINES_MAX = 4
"""Most lines of a message: the command that talks to a new fork is not cut on a narrow terminal."""

KEYS = (
    ("space", "play, pause"),
    ("← →", "event"),
    ("n p", "turn"),
    ("s", "summary"),
    ("e", "edit"),
    ("f", "failure"),
    ("+ -", "speed"),
    ("/", "search"),
    ("F", "fork"),
    ("?", "help"),
    ("q", "quit"),
)
HELP = (
    ("space", "play or pause; at the end, play from the beginning"),
    ("← →", "previous or next event (also h and l)"),
    ("p n", "previous or next turn (also shift and an arrow, after a search too)"),
    ("s S", "next or previous summary"),
    ("e E", "next or previous memory edit"),
    ("f", "next failure"),
    ("g G", "first or last event (also home and end)"),
    ("+ -", "double or halve the speed"),
    ("/", "search for text; then n and N go to the next and the previous match, until Esc"),
    ("F", "fork the agent at this event (also b); asks for a name"),
    ("q", "quit"),
)
"""Every key with its description."""


def frame(console: Console, story: ReplayTimeline, width: int, height: int) -> Text:
    """Return the whole screen."""
    playback = console.playback
    above = [_head(story, playback, width), console_panes.gauge(story, playback.seq, width)]
    signs, bar = console_panes.timeline(story, playback, width)
    below = [signs, bar, _status(story, playback, width), *_foot(console, width)]
    spare = height - len(above) - len(below) - 1 - BODY_LINES_MIN
    # On a low terminal these parts are left out in this order, until the events have BODY_LINES_MIN lines.
    for least_wanted in (signs, above[1], bar, below[2]):
        if spare < 0:
            above, below = [[line for line in part if line is not least_wanted] for part in (above, below)]
            spare += 1
    body = height - len(above) - len(below)
    lines = [*above, *_body(console, story, width, body), *below][: max(height, 1)]
    shown = Text("\n").join(fit_line(line, width) for line in lines)
    shown.no_wrap = True
    return shown


def _body(console: Console, story: ReplayTimeline, width: int, height: int) -> list[Text]:
    """Return the events and core memory under their headings: side by side on a wide terminal, else one below the
    other.
    """
    if height < 2:
        return []
    if console.mode == "help":
        return stack_lines([_rule("keys", width), *_help()], width, height)
    seq = console.playback.seq
    if width >= SIDES_WIDTH:
        right = min(width * 2 // 5, MEMORY_WIDTH_MAX)
        left = width - right - 2
        happened = console_panes.event_lines(story, seq, left - 1, height - 1, console.search_text)
        story_lines = stack_lines(happened, left, height - 1)
        memory_lines = stack_lines(console_panes.memory(story, seq, right, height - 1), right, height - 1)
        heading = Text.assemble(_rule("events", left), ("┬", "bright_black"), _rule("core memory", right + 1))
        return [heading, *side_by_side(story_lines, memory_lines)]
    lower = max(height // 3, MEMORY_LINES_MIN) if height >= MEMORY_LINES_MIN * 2 else 0
    upper = height - lower - 1
    lines = [_rule("events", width)]
    lines += stack_lines(console_panes.event_lines(story, seq, width, upper, console.search_text), width, upper)
    if lower:
        lines += [_rule("core memory", width)]
        lines += stack_lines(console_panes.memory(story, seq, width, lower - 1), width, lower - 1)
    return lines


def _help() -> list[Text]:
    return [Text(), *[Text.assemble((f"  {key:<8}", "bold cyan"), does) for key, does in HELP]]


def _rule(what: str, width: int) -> Text:
    head = Text.assemble(("─ ", "bright_black"), (what, "dim"), (" ", ""))
    return fit_line(Text.assemble(head, ("─" * max(0, width - head.cell_len), "bright_black")), width)


def _head(story: ReplayTimeline, playback: Playback, width: int) -> Text:
    word, style = _state(playback)
    left = Text.assemble(
        (f" {word} {speed(playback.speed)} ", f"bold reverse {style}"), "  ", (one_line(story.agent_id), "bold")
    )
    model = story.gauge(playback.seq).model
    left.append(f" · {one_line(model)}" if model else "", "dim")
    return sides(left, Text(f"  {clock(story.record(playback.seq).recorded_at)}", "cyan"), width)


def _state(playback: Playback) -> tuple[str, str]:
    if playback.at_end:
        return ("LIVE", "magenta") if playback.follow and playback.playing else ("END", "blue")
    return ("PLAY", "green") if playback.playing else ("PAUSE", "yellow")


def speed(times: float) -> str:
    """Return a speed as it is typed: 8x."""
    return f"{times:g}x"


def _status(story: ReplayTimeline, playback: Playback, width: int) -> Text:
    seq = playback.seq
    now = story.record(seq)
    left = Text.assemble((f" seq {seq:,}", "bold"), (f" of {playback.last:,}", "dim"))
    turn = f" · turn {now.turn}" if now.turn else ""
    turn += f", step {now.step}" if now.step else ""
    left.append(f"{turn} · {one_line(now.type)}{_since(story, seq)}", "dim")
    known = story.gauge(seq)
    edits, summaries, failures = (story.count(kind, seq) for kind in ("edit", "summary", "failure"))
    parts = [plural(edits, "edit"), plural(failures, "failure")]
    if summaries:
        parts.insert(1, f"{known.hidden:,} of {plural(known.total, 'message')} summarized")
    right = Text(f"  {' · '.join(parts)} ", "dim")
    return sides(left, right, width) if left.cell_len + right.cell_len <= width else fit_line(left, width)


def _since(story: ReplayTimeline, seq: int) -> str:
    """Return the time since the event before if it is 0.1 s or more, or the time that an imported message was said."""
    now = story.record(seq)
    if now.said_at is not None:
        return f" · said {clock(now.said_at)}"
    seconds = (now.recorded_at - story.record(seq - 1).recorded_at) / 1e6 if seq > 1 else 0
    return f" · {f'{seconds:.1f} s' if seconds < 60 else span(int(seconds))} later" if seconds >= 0.1 else ""


def _foot(console: Console, width: int) -> list[Text]:
    """Return the last line: the text that is being typed, or the keys; or as many lines as a message takes, up to
    FOOT_LINES_MAX.
    """
    match console.mode:
        case "search":
            return [console_panes.typing(f" search: {console.typed}█", width)]
        case "fork":
            return [console_panes.typing(f" fork at seq {console.playback.seq}, name: {console.typed}█", width)]
        case "help":
            return [fit_line(Text(" press any key to go back", "dim"), width)]
    if not console.said:
        return [_keys(width)]
    message = Text(sanitize(" ".join(console.said.split())), "bold yellow")
    return [Text.assemble(" ", line) for line in wrap_lines(message, width - 2, FOOT_LINES_MAX)]


def _keys(width: int) -> Text:
    """Return as many keys as fit; the keys for help and quit come first."""
    kept, room = set(KEYS[-2:]), width - sum(map(_cells, KEYS[-2:])) - 1
    for key in KEYS[:-2]:
        if _cells(key) <= room:
            kept.add(key)
            room -= _cells(key)
    parts = [((f" {key}", "bold cyan"), (f" {does} ", "dim")) for key, does in KEYS if (key, does) in kept]
    return fit_line(Text.assemble(*(part for pair in parts for part in pair)), width)


def _cells(key: tuple[str, str]) -> int:
    return len(key[0]) + len(key[1]) + 3
