"""A story out of a log: the records up to a seq, and what `memory_history` says of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from everlog.actors.agent.local_system import AgentView
from everlog.events import AgentCreated, Record
from everlog.interfaces.replay_console.timeline import ReplayTimeline


def begun(view: AgentView, last: int | None = None) -> ReplayTimeline:
    """The story of an agent up to a seq (inclusive); None: the head."""
    story = ReplayTimeline(view.agent_id)
    records = list(view.reader.read(view.agent_id, 1, view.head.seq if last is None else last))
    story.add(records, edits(view, records))
    return story


def more(view: AgentView, story: ReplayTimeline, last: int | None) -> bool:
    """Whether the log has grown, up to a seq at most; what is new in it is part of the story then."""
    records = list(view.reader.read(view.agent_id, story.last + 1, last))
    if not records:
        return False
    view.projections.add(records)
    story.add(records, edits(view, records))
    return True


def edits(view: AgentView, records: Sequence[Record]) -> Iterator[Mapping[str, Any]]:
    """Rows of `memory_history` that these records made, of every life of the agent that ended among them too."""
    if not records:
        return
    begins = records[0].seq
    ends = [record.seq - 1 for record in records if record.type == AgentCreated.kind and record.seq > begins]
    for upto in [*ends, records[-1].seq]:
        yield from (row for row in view.rows("memory_history", upto) if row["seq"] >= begins)
