"""Compare two agents, or two moments of one: memory, settings, and what the model would see, side by side.

Differences of memory and settings, and their causes, are those of `everlog diff`.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import msgspec
from starlette.responses import Response

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.formats.render_request import numbered_messages
from everlog.actors.replay.agent_diff import (
    AgentDiff,
    AgentSnapshot,
    ChangeCause,
    ValueChange,
    difference,
    message_text,
)
from everlog.interfaces.http.console.page_response import page
from everlog.interfaces.http.console.tilde_names import written
from everlog.interfaces.http.core.moments import moment_of
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.replay_console.word_diff import DiffSegment, around
from everlog.interfaces.replay_console.word_diff import difference as word_difference
from everlog.interfaces.show import diff_command

MESSAGES_MAX = 2000
"""Newest messages of each context that are compared."""
MESSAGES_SHOWN = 200
"""Messages of each side that the page shows; the rest is counted."""
TEXT_CHARS = 4000
NUMBERS = (
    ("Messages", "recall"), ("Texts of archival memory", "archival"), ("Tokens of the last call", "tokens"),
    ("Tokens of the next call", "estimate"), ("Context window", "window"),
)  # fmt: skip
"""Figures that both sides have, each with its label."""


class CompareParameters(msgspec.Struct, frozen=True):
    """Two moments. An agent or a moment that is left out is that of the other side, or now."""

    a: str = ""
    a_at: str = ""
    b: str = ""
    b_at: str = ""


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two moments."""

    agent: str
    path: str
    seq: int
    head: int
    at: int
    """Microseconds UTC."""


class ComparedValue(msgspec.Struct, frozen=True, kw_only=True):
    """Block or setting that differs."""

    name: str
    parts: Sequence[DiffSegment]
    """Its words on both sides: those of the first alone are removed, those of the second alone added."""
    missing: str
    """`first` or `second`: the side that has no such block or setting; empty: both have it."""
    cause: ChangeCause | None
    """Record between the two moments that made the last change."""


class ComparedMessage(NamedTuple):
    """Message that the model would see."""

    seq: int
    role: str
    text: str


class MessageRun(msgspec.Struct, frozen=True, kw_only=True):
    """Messages next to each other: the same on both sides, or those of each side."""

    same: int
    """Number of messages that both sides have; 0: they differ."""
    first: Sequence[ComparedMessage] = ()
    second: Sequence[ComparedMessage] = ()


async def show_compare(call: HttpCall) -> Response:
    """Show the form, and the differences of the two moments of the address."""
    query: CompareParameters = call.query
    first, second = query.a or query.b, query.b or query.a
    if not first:
        return page(call.request, "compare.html", {"query": query, "sides": None})
    names = [call.service.system.store.stream_of(call.names.inner(name)) for name in (first, second)]
    reading = LocalSystem(call.service.system.store, ports=call.service.ports)

    def compared() -> tuple[list[ComparedSide], AgentDiff]:
        sides: list[ComparedSide] = []
        states: list[AgentSnapshot] = []
        for stream, given in zip(names, (query.a_at, query.b_at), strict=True):
            with reading.view(stream, as_of=moment_of(given or None)) as view:
                states.append(diff_command.snapshot_of(view))
                sides.append(_side(call, stream, states[-1], view.head.seq))
        if names[0] == names[1]:
            return sides, diff_command.compare(reading, names[0], *states)
        return sides, difference(states[0], states[1], (), ())

    sides, found = await call.service.ports.aside(compared)
    runs, left = shortened(message_runs(*(_messages(side) for side in (found.before, found.after))))
    numbers = [(label, getattr(found.before, key), getattr(found.after, key)) for label, key in NUMBERS]
    values = {
        "query": query, "sides": sides, "found": found, "one": names[0] == names[1], "numbers": numbers,
        "memory": [_value(change) for change in found.memory],
        "settings": [_value(change) for change in found.settings], "runs": runs, "left": left,
        "nothing": found.is_nothing and all(run.same for run in runs),
    }  # fmt: skip
    return page(call.request, "compare.html", values)


def message_runs(first: Sequence[ComparedMessage], second: Sequence[ComparedMessage]) -> list[MessageRun]:
    """Return two contexts in runs that are the same or differ, in order. Roles and words are compared, not seqs."""
    keys, others = ([(one.role, one.text) for one in side] for side in (first, second))
    runs = []
    for tag, i, j, k, m in SequenceMatcher(None, keys, others, autojunk=False).get_opcodes():
        same = j - i if tag == "equal" else 0
        runs.append(MessageRun(same=same) if same else MessageRun(same=0, first=first[i:j], second=second[k:m]))
    return runs


def shortened(runs: Sequence[MessageRun]) -> tuple[list[MessageRun], int]:
    """Return runs with at most `MESSAGES_SHOWN` messages of each side, and the number of those that are left out."""
    room, left, shown = [MESSAGES_SHOWN, MESSAGES_SHOWN], 0, []
    for run in runs:
        sides = [side[:most] for side, most in zip((run.first, run.second), room, strict=True)]
        left += len(run.first) + len(run.second) - sum(map(len, sides))
        room = [most - len(side) for most, side in zip(room, sides, strict=True)]
        if run.same or any(sides):
            shown.append(MessageRun(same=run.same, first=sides[0], second=sides[1]))
    return shown, left


def _side(call: HttpCall, stream: str, state: AgentSnapshot, head: int) -> ComparedSide:
    name = call.shown(stream)
    return ComparedSide(agent=name, path=f"/console/a/{written(name)}", seq=state.seq, head=head, at=state.time)


def _messages(state: AgentSnapshot) -> list[ComparedMessage]:
    """Return the newest messages of a context, without the system message."""
    if state.context is None:
        return []
    found = [
        ComparedMessage(seq, message["role"], diff_command.said_text(message_text(message))[:TEXT_CHARS])
        for seq, message in numbered_messages(state.context)
        if seq
    ]
    return found[-MESSAGES_MAX:]


def _value(change: ValueChange) -> ComparedValue:
    texts = ["" if side is None else str(side) for side in (change.before, change.after)]
    return ComparedValue(
        name=change.name, parts=around(word_difference(*texts)),
        missing="first" if change.before is None else "second" if change.after is None else "",
        cause=change.because[-1] if change.because else None,
    )  # fmt: skip
