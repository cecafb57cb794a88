"""Draw the parts of a frame: events, core memory, context gauge, timeline. Pure: lines of text.

Used by `console_frame`.
"""

from collections.abc import Sequence

from rich.text import Text

from everlog.events import Record
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.time_text import clock
from everlog.interfaces.output.terminal_output import one_line
from everlog.interfaces.replay_console import record_entries, word_diff
from everlog.interfaces.replay_console.line_fitting import fit_line, sides, wrap_lines
from everlog.interfaces.replay_console.playback import Playback
from everlog.interfaces.replay_console.timeline import BlockValueEdit, JumpPoint, ReplayTimeline

PAST_LINES = 3
"""Most lines of an event other than the current one."""
SEQ_WIDTH = 50
"""Least width at which events have their seq at the left."""
SPARK_CALLS = 20
"""Model calls in the small chart of the gauge."""
SPARK_WIDTH = 90
"""Least width of a gauge that has a chart."""
BLOCK_CHARS = 4000
"""Longest memory block that is shown whole; of a longer one, the changes or the beginning."""
_BARS = "▁▂▃▄▅▆▇█"
_SIGNS: Sequence[tuple[JumpPoint, str, str]] = (
    ("edit", "e", "bright_magenta"),
    ("summary", "s", "bold yellow"),
    ("failure", "f", "bold red"),
)
"""Marks of the timeline, the most important last, because a later one overwrites an earlier one in the same cell. Each
is the key that jumps there.
"""


def event_lines(story: ReplayTimeline, seq: int, width: int, height: int, search_text: str = "") -> list[Text]:
    """Return the events up to the current one, which gets as many lines as fit; earlier ones are shortened.

    Occurrences of `search_text` are highlighted.
    """
    chunks = [_event(story, seq, width, height, shown=True)]
    size = len(chunks[0])
    while size < height and seq > 1:
        seq -= 1
        if record_entries.repeats_message(story.record(seq)):
            continue
        chunks.append(_event(story, seq, width, PAST_LINES, shown=False))
        size += len(chunks[-1])
    lines = [line for chunk in reversed(chunks) for line in chunk]
    lines = lines[max(0, len(lines) - height) :]
    for line in lines if search_text.strip() else ():
        line.highlight_words([search_text], "black on yellow", case_sensitive=False)
    return lines


def _event(story: ReplayTimeline, seq: int, width: int, most: int, *, shown: bool) -> list[Text]:
    record = story.record(seq)
    heading = [_turn(record, width)] if story.opens_turn(seq) else []
    lines: list[Text] = []
    numbered = width >= SEQ_WIDTH
    for number, line in enumerate(record_entries.entry(record, story)):
        place_text = f"{seq:>6} " if numbered and not number else " " * 7 if numbered else ""
        bar = ("▌" if shown else " ", "bold green")
        who = fit_line(Text(line.label, line.style), record_entries.LABEL_CELLS)
        label = Text.assemble(bar, (place_text, "bold" if shown else "dim"), who, " ")
        rest = Text.assemble(bar, " " * (label.cell_len - 1))
        words = wrap_lines(line.words, width - label.cell_len, most) or [Text()]
        lines += [Text.assemble(rest if place else label, part) for place, part in enumerate(words)]
    return [*heading, *lines][: max(most, 1)] if shown else [*heading, *lines]


def _turn(record: Record, width: int) -> Text:
    place_text = Text(f" turn {record.turn} · {clock(record.recorded_at)} ", "dim")
    return Text.assemble(
        ("──", "bright_black"), place_text, ("─" * max(0, width - place_text.cell_len - 2), "bright_black")
    )


def memory(story: ReplayTimeline, seq: int, width: int, height: int) -> list[Text]:
    """Return core memory with the changes of the current turn; changed blocks get their lines first."""
    blocks = story.blocks(seq)
    now = story.record(seq)
    if not blocks:
        return [Text("no memory blocks yet", "dim italic")]
    changed = [edit for edit in blocks if _is_new(edit, now)]
    if len(blocks) * 2 > height:
        first = sorted(blocks, key=lambda edit: (edit not in changed, -edit.seq))[: max(height // 2, 1)]
        blocks = [edit for edit in blocks if edit in first]
    bodies = {edit.label: _body(edit, width, new=edit in changed) for edit in blocks}
    room = _shared({edit.label: len(bodies[edit.label]) for edit in blocks}, height - len(blocks), changed)
    lines: list[Text] = []
    for edit in blocks:
        lines.append(_heading(edit, width, new=edit in changed))
        lines += _visible_lines(bodies[edit.label], room[edit.label], width)
    return lines


def _is_new(edit: BlockValueEdit, now: Record) -> bool:
    return edit.seq == now.seq or edit.turn == now.turn > 0


def _heading(edit: BlockValueEdit, width: int, *, new: bool) -> Text:
    full = f"{len(edit.value):,} of {edit.limit:,}"
    place_text = Text(f"{edit.operation} at seq {edit.seq} ", "bold bright_magenta" if new else "dim")
    name = Text.assemble((one_line(edit.label), "bold cyan"), (f"  {full}  ", "dim"))
    return sides(name, place_text, width)


def _body(edit: BlockValueEdit, width: int, *, new: bool) -> list[Text]:
    """Return the lines of a block; changes are highlighted."""
    if new and edit.operation != "created":
        pieces = word_diff.difference(edit.before, edit.value)
        if len(edit.value) > BLOCK_CHARS or len(edit.before) > BLOCK_CHARS:
            pieces = [(change, text[:BLOCK_CHARS]) for change, text in word_diff.around(pieces)]
        text = record_entries.changes(pieces)
    else:
        text = record_entries.words_of(edit.value, chars=BLOCK_CHARS) if edit.value else Text("(empty)", "dim italic")
    return [Text.assemble(" ", line) for line in wrap_lines(text, width - 2)]


def _shared(needs: dict[str, int], room: int, changed: Sequence[BlockValueEdit]) -> dict[str, int]:
    """Return the number of lines for each block: changed blocks first, then the shortest."""
    first = {edit.label for edit in changed}
    given: dict[str, int] = {}
    for label, need in sorted(needs.items(), key=lambda item: (item[0] not in first, item[1])):
        others = len(needs) - len(given) - 1
        share = room - others if label in first else room // (others + 1)
        given[label] = max(0, min(need, share))
        room -= given[label]
    return given


def _visible_lines(lines: Sequence[Text], most: int, width: int) -> list[Text]:
    """Return `most` lines, beginning shortly before the first change if there is one."""
    if len(lines) <= most:
        return list(lines)
    marked = (place for place, line in enumerate(lines) if any(span.style in _CHANGED for span in line.spans))
    start = max(0, min(next(marked, 0) - most // 3, len(lines) - most))
    kept = list(lines[start : start + most])
    if kept and start + most < len(lines):
        kept[-1] = Text.assemble(fit_line(kept[-1], width - 2), (" …", "dim"))
    return kept


_CHANGED = {record_entries.STYLES["removed"], record_entries.STYLES["added"]}


def gauge(story: ReplayTimeline, seq: int, width: int) -> Text:
    """Return how full the context window was, with a mark where the agent is warned, and a chart of the last calls."""
    now = story.gauge(seq)
    if not now.window:
        return fit_line(Text("context  no window: the agent is not configured yet", "dim"), width)
    share = now.tokens / now.window
    style = "red" if share >= now.fraction else "yellow" if share >= now.fraction / 1.5 else "green"
    figures = Text.assemble(f"  {now.tokens:,}", (f" of {now.window:,}", "dim"), (f"  {share:.0%}", f"bold {style}"))
    figures.append("  warned" if now.warned else "", "bold yellow")
    if width >= SPARK_WIDTH:
        figures = Text.assemble(figures, "  ", _spark(story.calls(seq, SPARK_CALLS), now.window))
    cells = width - figures.cell_len - 8
    if cells < 5:
        return fit_line(Text.assemble(("context", "bold"), figures), width)
    return fit_line(Text.assemble(("context ", "bold"), _bar(share, now.fraction, cells, style), figures), width)


def _bar(share: float, fraction: float, cells: int, style: str) -> Text:
    full = min(cells, round(share * cells) or int(share > 0))
    mark = min(int(fraction * cells), cells - 1)
    bar = Text()
    for cell in range(cells):
        if cell == mark:
            bar.append("┃", "bold yellow")
        else:
            bar.append("━" if cell < full else "─", style if cell < full else "bright_black")
    return bar


def _spark(calls: Sequence[int], window: int) -> Text:
    levels = (min(int(tokens / window * len(_BARS)), len(_BARS) - 1) for tokens in calls)
    return Text("".join(_BARS[level] for level in levels).rjust(SPARK_CALLS), "cyan")


def timeline(story: ReplayTimeline, playback: Playback, width: int) -> tuple[Text, Text]:
    """Return the marks of jump points and, below them, the position of the player."""
    length = max(playback.last - playback.first, 1)
    cells = max(width - 2, 1)
    signs = [(" ", "")] * cells
    for kind, sign, style in _SIGNS:
        for seq in story.jump_points(kind):
            if playback.first <= seq <= playback.last:
                signs[(seq - playback.first) * (cells - 1) // length] = (sign, style)
    at = (playback.seq - playback.first) * (cells - 1) // length
    bar = Text.assemble(("━" * at, "green"), ("●", "bold green"), ("─" * (cells - at - 1), "bright_black"))
    return fit_line(Text.assemble(" ", *signs), width), fit_line(Text.assemble(" ", bar), width)


def typing(text: str, width: int) -> Text:
    """Return text that is being typed, on one line; if it is too long, only its end is shown."""
    shown = Text(sanitize(" ".join(text.split("\n"))), "bold")
    return fit_line(shown if shown.cell_len <= width else shown[-max(width // 2, 1) :], width)
