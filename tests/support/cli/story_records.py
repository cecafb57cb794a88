"""An agent's past for the tests of the console: records made by hand, and the story that the projections give."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Self

from everlog.events import (
    AgentConfigured,
    AgentCreated,
    Call,
    Event,
    FunctionResult,
    Heartbeat,
    MemoryEdited,
    MessageSent,
    ModelReply,
    Record,
    Summary,
    SystemAlert,
    Usage,
    UserMessage,
    draft,
    place,
    uuid7,
)
from everlog.interfaces.replay_console import load_timeline
from everlog.interfaces.replay_console.console_state import Console
from everlog.interfaces.replay_console.playback import Playback
from everlog.interfaces.replay_console.timeline import ReplayTimeline
from everlog.projections import HEAD, Projections

START = 1_700_000_000_000_000
SECOND = 1_000_000


def recorded(events: Sequence[tuple[Event, int, int]], *, agent: str = "sam", gap_us: int = SECOND) -> list[Record]:
    """Return records of (event, turn, step), `gap_us` after each other."""
    return [
        place(draft(e, event_id=uuid7(START + n, n), recorded_at=START + n * gap_us, turn=t, step=s), agent, n, n)
        for n, (e, t, s) in enumerate(events, start=1)
    ]


class Past:
    """The part of a view that the console reads, over records in memory."""

    def __init__(self, records: Sequence[Record], upto: int | None = None) -> None:
        self.records = list(records)
        self.agent_id = "sam"
        self.head = SimpleNamespace(seq=len(self.records) if upto is None else upto)
        self.reader = self
        self.projections = Projections()
        self.projections.add(self.records[: self.head.seq])

    def read(self, _agent_id: str, first: int = 1, last: int | None = None) -> Iterator[Record]:
        return iter(self.records[first - 1 : last])

    def rows(self, name: str, as_of: int = HEAD) -> list[dict[str, Any]]:
        return self.projections.rows(name, "sam", as_of)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.projections.close()


def story_of(records: Sequence[Record]) -> ReplayTimeline:
    """Return the whole story of these records."""
    with Past(records) as past:
        return load_timeline.begun(past)


def console_at(story: ReplayTimeline, seq: int, **changed: Any) -> Console:
    """Return a paused console that shows a record of the whole story."""
    return Console(playback=Playback(seq=seq, first=1, last=story.last, playing=False), **changed)


EVENTS: Sequence[tuple[Event, int, int]] = (
    (AgentCreated(persona="plain"), 0, 0),
    (AgentConfigured(model="scripted", window=1000, renderer=1), 0, 0),
    (MemoryEdited(label="human", operation="created", limit=200, text="Name: Chad"), 0, 0),
    (UserMessage(text="I sail a boat"), 1, 0),
    (
        ModelReply(
            text="A sailor!",
            calls=[Call("a", "core_memory_append", '{"name":"human","content":"Sails","request_heartbeat":true}')],
            usage=Usage(700, 100, 800),
        ),
        1,
        1,
    ),
    (MemoryEdited(label="human", operation="appended", limit=200, text="Name: Chad\nSails"), 1, 1),
    (FunctionResult(call_id="a", name="core_memory_append"), 1, 1),
    (Heartbeat(reason="requested"), 1, 1),
    (SystemAlert(text="Your context is filling up.", source="memory_pressure"), 1, 1),
    (ModelReply(text="I greet him.", calls=[Call("b", "wind", '{"place":"Bergen"}')], usage=Usage(800, 20, 820)), 1, 2),
    (FunctionResult(call_id="b", name="wind", ok=False, text="no such place"), 1, 2),
    (MessageSent(text="Ahoy, Chad.", call_id="c"), 1, 2),
    (UserMessage(text="Where do I live?", name="chad"), 2, 0),
    (
        Summary(text="Chad sails.", covers_from=4, covers_to=12, kept_from=13, hidden=2, total=3, summarized=2),
        2,
        1,
    ),
    (ModelReply(text="I do not know.", usage=Usage(300, 10, 310)), 2, 1),
    (MessageSent(text="You never told me.", call_id="d"), 2, 1),
)
"""Events of many kinds: an edit at 6, a warning at 9, a failure at 11, a summary at 14; turns begin at 4 and 13."""

RECORDS = recorded(EVENTS)
