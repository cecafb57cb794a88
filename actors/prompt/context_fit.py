"""Fit a context into its window, one measure at a time, until it fits or no measure is left. Pure.

The caller loops: render, estimate, call `measure`, apply the measure, render again. The loop always ends, because each
measure moves a value that can only move so far: a summary moves `kept_from` up, a trim shows fewer characters of one
record or block (never under SHOWN_CHARS_MIN), and when neither is left the turn is abandoned with the figures. Used by
`model_step.py`, and by `replay/check_fitting.py`, which chooses each recorded measure again: raise
`agent_constants.RENDERER` if another measure is chosen.
"""

from collections.abc import Sequence

import msgspec

from everlog.actors.ports.agent_constants import REPLY_FRACTION, SHOWN_CHARS_MIN, SUMMARY_FRACTION_MAX
from everlog.actors.prompt import message_format
from everlog.actors.prompt.context import Context, ContextMessage
from everlog.events import ContextTrimmed, FunctionResult, MessageSent, ModelReply, Summary, TurnAbandoned

MessageGroup = Sequence[ContextMessage]
"""Messages that are never separated: a reply and its results, or one message."""


class SummaryMeasure(msgspec.Struct, frozen=True):
    """Replace the messages up to `covers_to` by a summary; the context continues at `kept_from`."""

    covers_from: int
    covers_to: int
    kept_from: int


FitMeasure = SummaryMeasure | ContextTrimmed | TurnAbandoned


def tokens_of(size: int, context: Context) -> int:
    """Estimate the tokens of a request of `size` bytes, from the tokens per byte of the last call."""
    return int(size * context.tokens_per_byte) + 1


def tokens_max(context: Context) -> int:
    """Return the most tokens that a request may have, inclusive: the window less the room for the reply."""
    window = context.config.window
    return window - int(window * REPLY_FRACTION)


def summary_bytes_max(context: Context) -> int:
    """Return the most bytes that the text of a summary may have, inclusive."""
    return int(context.config.window * SUMMARY_FRACTION_MAX / context.tokens_per_byte)


def summary_room(context: Context, covers_to: int) -> int:
    """Return the most bytes of a summary of the messages up to `covers_to`, inclusive: at most their own size."""
    covered = sum(len((m.event.text or "").encode()) + 80 for m in context.messages if m.seq <= covers_to)
    return min(summary_bytes_max(context), covered)


def summary_fault(text: str, room: int) -> str | None:
    """Return why a model's summary is rejected; None if it is accepted."""
    size = len(text.strip().encode())
    return None if 0 < size <= room else f"the summary has {size} bytes, and may have 1 to {room}"


def transcript_bytes_max(context: Context) -> int:
    """Return the most bytes of transcript in a request for a summary, so that it fits the window with a margin."""
    return max(2000, int(tokens_max(context) * 0.8 / context.tokens_per_byte))


def measure(context: Context, tokens: int) -> FitMeasure:
    """Return the next measure for a request of `tokens` tokens that is too long."""
    item, size = _largest(context)
    limit = tokens_max(context)
    # A record or block of more than half the limit is truncated first: a summary of everything else would not help.
    if size * context.tokens_per_byte > limit / 2:
        trim = _trim(context, item, size, tokens - limit)
        if trim is not None:
            return trim
    return summarize(context) or _trim(context, item, size, tokens - limit) or _abandoned_turn(tokens, limit)


def summarize(context: Context, keep: int | None = None) -> SummaryMeasure | None:
    """Choose the oldest messages to summarize, as many as the configuration says; None if there are none.

    The last `keep_last` messages stay; if nothing is left to summarize then, only the last message stays.
    """
    units = units_of(context.messages)
    keeps = [keep] if keep is not None else [context.config.keep_last, 1]
    for kept in keeps:
        cut = _trim_count(units, context.config.summary_fraction, kept)
        while cut:
            found = _at(units, cut)
            if found is not None:
                return found
            cut -= 1
    return None


def units_of(messages: Sequence[ContextMessage]) -> list[list[ContextMessage]]:
    """Group the messages in order: each reply together with the results of its calls."""
    units: list[list[ContextMessage]] = []
    replies: dict[tuple[int, int], list[ContextMessage]] = {}
    for message in messages:
        place = (message.turn, message.step)
        if isinstance(message.event, FunctionResult) and place in replies:
            replies[place].append(message)
            continue
        units.append([message])
        if isinstance(message.event, ModelReply):
            replies[place] = units[-1]
    return units


def _trim_count(units: Sequence[MessageGroup], fraction: float, keep: int) -> int:
    """Count the oldest groups that hold `fraction` of all bytes and leave at least `keep` messages."""
    sizes = [sum(_bytes(message) for message in unit) for unit in units]
    wanted, taken, cut = fraction * sum(sizes), 0, 0
    left = sum(len(unit) for unit in units)
    for unit, size in zip(units, sizes, strict=True):
        if taken >= wanted or left - len(unit) < keep:
            break
        taken, left, cut = taken + size, left - len(unit), cut + 1
    return cut


def _at(units: Sequence[MessageGroup], cut: int) -> SummaryMeasure | None:
    """Return the summary of the first `cut` groups; None if no group would stay, or if an input that waited, and comes
    in a later turn, would be hidden.
    """
    if cut >= len(units):
        return None
    kept_from = min(message.seq for unit in units[cut:] for message in unit)
    hidden = [message.seq for unit in units[:cut] for message in unit]
    if max(hidden) >= kept_from:
        return None
    return SummaryMeasure(min(hidden), max(hidden), kept_from)


def _bytes(message: ContextMessage) -> int:
    """Estimate the bytes of the message in a request."""
    event = message.event
    calls = sum(len(call.arguments) for call in event.calls) if isinstance(event, ModelReply) else 0
    return len((event.text or "").encode()) + calls + 80


def _largest(context: Context) -> tuple[int | str, int]:
    """Return the record (by seq) or block (by label) with the most shown bytes, and their number."""
    sizes: list[tuple[int, int | str]] = [
        (len(message_format.truncate_text(b.value, b.shown_chars, 0).encode()), b.label) for b in context.blocks
    ]
    for message in context.messages:
        shown = message.shown_chars
        text = len(message_format.truncate_text(message.event.text or "", shown, 0).encode())
        calls = message.event.calls if isinstance(message.event, ModelReply) else []
        longest = sum(min(len(call.arguments.encode()), shown or len(call.arguments.encode())) for call in calls)
        sizes.append((max(text, longest), message.seq))
    size, key = max(sizes, key=lambda item: item[0], default=(0, ""))
    return key, size


def _trim(context: Context, key: int | str, size: int, excess: int) -> ContextTrimmed | None:
    """Show less of one item, so that `excess` tokens go, as far as the item has them; None if it is short already."""
    if size <= SHOWN_CHARS_MIN * 2:
        return None
    before = _characters(context, key)
    spare = int(excess / context.tokens_per_byte) + SHOWN_CHARS_MIN
    share = max(0.0, 1 - spare / size)
    shown = max(SHOWN_CHARS_MIN, min(int(before * share), before // 2 if share == 0 else before))
    if shown >= before:
        return None
    if isinstance(key, str):
        return ContextTrimmed(
            label=key, shown_chars=shown, text=f"The memory block {key!r} is too large to be shown whole."
        )
    return ContextTrimmed(target_seq=key, shown_chars=shown, text=f"Record {key} is too large to be shown whole.")


def _characters(context: Context, key: int | str) -> int:
    """Return the number of characters that the context shows of a record (by seq) or block (by label)."""
    for block in context.blocks:
        if block.label == key:
            return block.shown_chars or len(block.value)
    for message in context.messages:
        if message.seq == key:
            calls = message.event.calls if isinstance(message.event, ModelReply) else []
            return message.shown_chars or max(
                len(message.event.text or ""), *(len(call.arguments) for call in calls), 0
            )
    return 0


def _abandoned_turn(tokens: int, limit: int) -> TurnAbandoned:
    return TurnAbandoned(
        reason="context",
        text=(
            f"The request needs about {tokens} tokens and may take {limit}, and nothing in it can be shortened any "
            "more: the system prompt, the functions and the memory blocks alone are too large. Use a model with a "
            "larger window (--window), fewer functions, or smaller blocks."
        ),
    )


def mechanical(context: Context, covered: Sequence[ContextMessage], bytes_max: int) -> str:
    """Write a summary without a model: the number of records, and the beginnings of messages, as far as they fit."""
    said = [m for m in covered if isinstance(m.event, MessageSent) or type(m.event).__name__ == "UserMessage"]
    before = context.summary.event if context.summary else None
    head = f"{before.text[: bytes_max // 3]}\n" if isinstance(before, Summary) and before.text else ""
    lines = [f"{len(covered)} records without a model's summary; it began so:"]
    room = bytes_max - len(head.encode()) - len(lines[0]) - 100
    for message in said or covered:
        line = " ".join((message.event.text or "").split())[:120]
        if not line:
            continue
        room -= len(line.encode()) + 3
        if room < 0:
            break
        lines.append(f"- {line}")
    return head + "\n".join(lines)
