"""MemGPT's own functions. Those that take a Memory are pure: their effect is the events that they leave in it.

Searches read the agent's own log as of the moment of the call; `step.py` hands them a Searcher.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from events import ArchivalInserted, FunctionError, HeartbeatsPaused, MessageSent

from . import envelopes
from .constants import MICROSECONDS, PAGE_RESULTS, PAUSE_MINUTES_MAX
from .effects import Page
from .memory import Desk
from .tools import Tool, tool


def _send_message(desk: Desk, message: str) -> None:
    """Send a message to the user. The user sees nothing else that you do.

    Args:
        message: What to say to the user.
    """
    desk.emit(MessageSent(text=message, call_id=desk.call_id))


def _pause_heartbeats(desk: Desk, minutes: int) -> str:
    """Pause your timed heartbeats for a while. Messages of the user still reach you.

    Args:
        minutes: For how many minutes, 360 at most.
    """
    if minutes < 0:
        raise FunctionError(f"A pause takes 0 minutes or more, not {minutes}.")
    minutes = min(minutes, PAUSE_MINUTES_MAX)
    desk.emit(HeartbeatsPaused(minutes=minutes, until=desk.now + minutes * 60 * MICROSECONDS))
    return f"Pausing timed heartbeats for {minutes} min"


def _core_memory_append(desk: Desk, name: str, content: str) -> None:
    """Add a line to a block of your core memory.

    Args:
        name: Label of the block, such as persona or human.
        content: What to add.
    """
    desk.append(name, content)


def _core_memory_replace(desk: Desk, name: str, old_content: str, new_content: str) -> None:
    """Replace a text in a block of your core memory. To delete it, use an empty new_content.

    Args:
        name: Label of the block, such as persona or human.
        old_content: The text to replace, exactly as it stands there.
        new_content: What to write in its place.
    """
    desk.replace(name, old_content, new_content)


def _core_memory_remove(desk: Desk, name: str, content: str) -> None:
    """Delete a text from a block of your core memory.

    Args:
        name: Label of the block, such as persona or human.
        content: The text to delete, exactly as it stands there.
    """
    desk.remove(name, content)


async def _conversation_search(desk: Desk, query: str, page: int = 0) -> str:
    """Search everything that was ever said between you and the user.

    Args:
        query: Words to look for.
        page: Page of the results, from 0.
    """
    return shown(await desk.searcher.recall(query, page, PAGE_RESULTS), desk.zone, roles=True)


async def _conversation_search_date(desk: Desk, start_date: str, end_date: str, page: int = 0) -> str:
    """List what was said between two days.

    Args:
        start_date: First day, as YYYY-MM-DD, included.
        end_date: Last day, as YYYY-MM-DD, included.
        page: Page of the results, from 0.
    """
    return shown(await desk.searcher.recall_between(start_date, end_date, page, PAGE_RESULTS), desk.zone, roles=True)


def _archival_memory_insert(desk: Desk, content: str) -> None:
    """Keep a text in archival memory, which has no limit. Write it so that it can be found by its words later.

    Args:
        content: What to keep.
    """
    desk.emit(ArchivalInserted(text=content))


async def _archival_memory_search(desk: Desk, query: str, page: int = 0) -> str:
    """Search your archival memory.

    Args:
        query: Words to look for.
        page: Page of the results, from 0.
    """
    return shown(await desk.searcher.archival(query, page, PAGE_RESULTS), desk.zone, roles=False)


def shown(page: Page, zone: str, *, roles: bool) -> str:
    """A page of results as the model reads it: how many there are, then each with its time."""
    if not page.results:
        return "No results found."
    lines = [
        f"timestamp: {envelopes.told(hit.time, zone)}, "
        + (f"{hit.name or hit.role} - {hit.text}" if roles else f"memory: {hit.text}")
        for hit in page.results
    ]
    head = f"Showing {len(lines)} of {page.total} results (page {page.page}/{max(page.pages - 1, 0)}): "
    return head + msgspec.json.encode(lines).decode()


_LABEL = {"label": "name"}


def _own(function: Callable[..., Any], **options: Any) -> Tool:
    """One of ours: its name is the function's, and only FunctionError is told to the model."""
    made: Tool = tool(function, name=function.__name__.removeprefix("_"), faults=(FunctionError,), **options)
    return made


BUILTIN: Sequence[Tool] = (
    _own(_send_message, heartbeat=False),
    _own(_pause_heartbeats, heartbeat=False),
    _own(_core_memory_append, aliases=_LABEL),
    _own(_core_memory_replace, aliases={**_LABEL, "old_str": "old_content", "new_str": "new_content"}),
    _own(_core_memory_remove, aliases={**_LABEL, "old_content": "content"}),
    _own(_conversation_search, whole=True),
    _own(_conversation_search_date, whole=True),
    _own(_archival_memory_insert),
    _own(_archival_memory_search, whole=True),
)
"""In the order in which the model is shown them."""

ALIASES: Mapping[str, str] = {
    "edit_memory": "core_memory_replace",
    "edit_memory_append": "core_memory_append",
    "edit_memory_replace": "core_memory_replace",
    "edit_memory_remove": "core_memory_remove",
    "recall_memory_search": "conversation_search",
    "recall_memory_search_date": "conversation_search_date",
}
"""Names that older models and prompts use."""
