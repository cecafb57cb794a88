"""List tasks by page. Pure."""

from collections.abc import Sequence

import msgspec

from everlog.events.times import moment
from everlog.interfaces.http.a2a.shapes import ListParams, TaskPage
from everlog.interfaces.http.a2a.surface import A2aFault
from everlog.interfaces.http.a2a.task_lookup import TaskRecords
from everlog.interfaces.http.a2a.task_shapes import TaskPlace, context_of, task_shape

_ANY = ("", "TASK_STATE_UNSPECIFIED")


def task_page(tasks: Sequence[TaskRecords], asked: ListParams, agent: str) -> TaskPage:
    """Return a page of tasks, given with the newest first. `agent`: name of their agent.

    A token is the seq of the last task's newest record: a task that changes between two pages moves to the first page,
    and the others stay where they are. Raises A2aFault for a token that is none.
    """
    found = [task for task in tasks if _wanted(task, asked, agent)]
    left = found
    if asked.page_token:
        if not (asked.page_token.isascii() and asked.page_token.isdecimal() and len(asked.page_token) < 20):
            raise A2aFault("INVALID_PARAMS", "pageToken is the nextPageToken of another page, and this is none.")
        left = [task for task in found if _last_seq(task) < int(asked.page_token)]
    page = left[: asked.page_size]
    shapes = []
    for task in page:
        place = TaskPlace(task.input.event_id, context_of(task, agent))
        shape = task_shape(task, place, asked.history_length)
        shapes.append(shape if asked.include_artifacts else msgspec.structs.replace(shape, artifacts=()))
    more = len(left) > len(page)
    return TaskPage(
        tasks=shapes, next_page_token=str(_last_seq(page[-1])) if more else "", page_size=asked.page_size,
        total_size=len(found),
    )  # fmt: skip


def _wanted(task: TaskRecords, asked: ListParams, agent: str) -> bool:
    after = asked.status_timestamp_after
    return (
        asked.status in (*_ANY, task.state)
        and asked.context_id in ("", context_of(task, agent))
        and (after is None or moment(task.records[-1].recorded_at) >= after)
    )


def _last_seq(task: TaskRecords) -> int:
    return task.records[-1].seq
