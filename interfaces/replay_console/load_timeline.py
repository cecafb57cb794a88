"""Load the timeline of an agent from its log: the records up to a seq, and their rows of `memory_history`.

Used by `replay_command`, at the start and for `--follow`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from everlog.actors.agent.local_system import AgentView
from everlog.events import AgentCreated, Record
from everlog.interfaces.replay_console.timeline import ReplayTimeline


def begun(view: AgentView, last: int | None = None) -> ReplayTimeline:
    """Return the timeline of an agent up to a seq, inclusive; None: the head."""
    story = ReplayTimeline(view.agent_id)
    records = list(view.reader.read(view.agent_id, 1, view.head.seq if last is None else last))
    story.add(records, edits(view, records))
    return story


def more(view: AgentView, story: ReplayTimeline, last: int | None) -> bool:
    """Add new records up to `last` (None: the head) to the timeline. Return True if there were any."""
    records = list(view.reader.read(view.agent_id, story.last + 1, last))
    if not records:
        return False
    view.projections.add(records)
    story.add(records, edits(view, records))
    return True


def edits(view: AgentView, records: Sequence[Record]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of `memory_history` for these records, of each incarnation of the agent among them."""
    if not records:
        return
    # The projection holds only the blocks of the newest incarnation, so it is read at the end of each one.
    begins = records[0].seq
    ends = [record.seq - 1 for record in records if record.type == AgentCreated.kind and record.seq > begins]
    for upto in [*ends, records[-1].seq]:
        yield from (row for row in view.rows("memory_history", upto) if row["seq"] >= begins)
