"""MemGPT's own functions. Functions that take a Memory are pure: their effect is the events that they leave in it.

Functions that search are coroutines: the agent waits for the search, and its result is recorded in the log. They read
the agent's memory as of the request that the model answered; their FunctionMemory (`desk`) holds the changes by calls
of the same reply. `local_system.py` gives `BUILTIN` to every agent. Signatures and docstrings here are the schemas that
the model reads: a changed schema is a new configuration of every agent. `verify` runs the pure functions again, so
their results and errors must stay the same, and `models/offline/hits.py` parses the text of search results.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.actors.functions.timer_functions import TIMER_FUNCTIONS
from everlog.actors.functions.tools import Tool, own_tool
from everlog.actors.memory import archival_rules, long_texts
from everlog.actors.memory.core_memory import FunctionMemory
from everlog.actors.ports.agent_constants import PAGE_RESULTS, PAUSE_MINUTES_MAX
from everlog.actors.ports.effects import Filters, Hit, Page
from everlog.actors.prompt import message_format
from everlog.events import ArchivalDeleted, FunctionError, HeartbeatsPaused, MessageSent
from everlog.events.times import MICROSECONDS

MessageRole = Literal["user", "assistant"]


def _send_message(desk: FunctionMemory, message: str) -> None:
    """Send a message to the user. The user sees nothing else that you do.

    Args:
        message: What to say to the user.
    """
    desk.emit(MessageSent(text=message, call_id=desk.call_id))


def _pause_heartbeats(desk: FunctionMemory, minutes: int) -> str:
    """Pause your timed heartbeats for a while. Messages of the user still reach you.

    Args:
        minutes: For how many minutes, 360 at most.
    """
    if minutes < 0:
        raise FunctionError(f"A pause takes 0 minutes or more, not {minutes}.")
    minutes = min(minutes, PAUSE_MINUTES_MAX)
    desk.emit(HeartbeatsPaused(minutes=minutes, until=desk.now + minutes * 60 * MICROSECONDS))
    return f"Pausing timed heartbeats for {minutes} min"


def _core_memory_append(desk: FunctionMemory, name: str, content: str) -> None:
    """Add a line to a block of your core memory.

    Args:
        name: Label of the block, such as persona or human.
        content: What to add.
    """
    desk.append(name, content)


def _core_memory_replace(desk: FunctionMemory, name: str, old_content: str, new_content: str) -> None:
    """Replace a text in a block of your core memory. To delete it, use an empty new_content.

    Args:
        name: Label of the block, such as persona or human.
        old_content: The text to replace, exactly as it stands there.
        new_content: What to write in its place.
    """
    desk.replace(name, old_content, new_content)


def _core_memory_remove(desk: FunctionMemory, name: str, content: str) -> None:
    """Delete a text from a block of your core memory.

    Args:
        name: Label of the block, such as persona or human.
        content: The text to delete, exactly as it stands there.
    """
    desk.remove(name, content)


def _core_memory_item_add(desk: FunctionMemory, name: str, item: str) -> None:
    """Add an item to a list in your core memory.

    Args:
        name: Label of the block.
        item: The item, one line.
    """
    desk.add_item(name, item)


def _core_memory_item_replace(desk: FunctionMemory, name: str, item: str, new_item: str) -> None:
    """Put another item in the place of an item of a list in your core memory.

    Args:
        name: Label of the block.
        item: The item as it stands there, the whole line.
        new_item: The new item, one line.
    """
    desk.replace_item(name, item, new_item)


def _core_memory_item_remove(desk: FunctionMemory, name: str, item: str) -> None:
    """Take an item out of a list in your core memory.

    Args:
        name: Label of the block.
        item: The item as it stands there, the whole line.
    """
    desk.remove_item(name, item)


def _edit_memory(desk: FunctionMemory, name: str, content: str) -> None:
    """Write the whole text of a block of your core memory.

    Args:
        name: Label of the block, such as persona or human.
        content: The whole new text.
    """
    desk.set(name, content)


async def _conversation_search(
    desk: FunctionMemory,
    query: str,
    page: int = 0,
    roles: list[MessageRole] | None = None,
    start_date: str = "",
    end_date: str = "",
) -> str:
    """Search everything that was ever said between you and the user, best match first.

    Args:
        query: Words to look for; a phrase in "quotation marks" is looked for exactly as it stands.
        page: Page of the results, from 0.
        roles: Whose words to search, user or assistant (you); without it everybody's.
        start_date: Only what was said on this day or later, as YYYY-MM-DD.
        end_date: Only what was said on this day or earlier, as YYYY-MM-DD.
    """
    filters = Filters(roles=tuple(roles or ()), start=start_date, end=end_date)
    return shown(await desk.searcher.recall(query, page, PAGE_RESULTS, filters), desk.zone, roles=True)


async def _conversation_search_date(desk: FunctionMemory, start_date: str, end_date: str, page: int = 0) -> str:
    """List what was said between two days.

    Args:
        start_date: First day, as YYYY-MM-DD, included.
        end_date: Last day, as YYYY-MM-DD, included.
        page: Page of the results, from 0.
    """
    return shown(await desk.searcher.recall_between(start_date, end_date, page, PAGE_RESULTS), desk.zone, roles=True)


async def _archival_memory_insert(desk: FunctionMemory, content: str, tags: list[str] | None = None) -> str | None:
    """Keep a text in archival memory, which has no limit. Write it so that it can be found by its words later.

    Args:
        content: What to keep.
        tags: Words to file it under, by which a search can be narrowed.
    """
    event = archival_rules.inserted_event(content, tags)
    if desk.changes.was_just_stored(event.text):
        return "Kept already, by a call just before: nothing was added."
    if known := await _holding(desk, event.text):
        return f"Kept already, under the id {known}: nothing was added. archival_memory_update changes its tags."
    desk.archive(event)
    return None


async def _archival_memory_search(
    desk: FunctionMemory,
    query: str,
    page: int = 0,
    tags: list[str] | None = None,
    start_date: str = "",
    end_date: str = "",
    source: str = "",
) -> str:
    """Search your archival memory and the documents that you can read, best match first. Shows the id of each memory.

    Args:
        query: Words to look for, or what it is about.
        page: Page of the results, from 0.
        tags: Only memories that have all of these tags.
        start_date: Only what was kept on this day or later, as YYYY-MM-DD.
        end_date: Only what was kept on this day or earlier, as YYYY-MM-DD.
        source: Only documents of this source.
    """
    filters = Filters(tags=tuple(tags or ()), start=start_date, end=end_date, source=source)
    return shown(await desk.searcher.archival(query, page, PAGE_RESULTS, filters), desk.zone, roles=False)


async def _archival_memory_update(
    desk: FunctionMemory, memory_id: str, content: str, tags: list[str] | None = None
) -> str | None:
    """Put another text in the place of a memory in archival memory.

    Args:
        memory_id: Id of the memory, as archival_memory_search shows it.
        content: The whole new text.
        tags: The new tags, all of them; without it those that it has stay.
    """
    event = archival_rules.updated_event(await _memory(desk, memory_id), content, tags)
    if event is None:
        return "The memory reads so already: nothing was changed."
    desk.archive(event)
    return None


async def _archival_memory_delete(desk: FunctionMemory, memory_id: str) -> None:
    """Delete a memory from archival memory.

    Args:
        memory_id: Id of the memory, as archival_memory_search shows it.
    """
    desk.archive(ArchivalDeleted(memory_id=(await _memory(desk, memory_id)).ref))


async def _memory_read(desk: FunctionMemory, memory_id: str, page: int = 0) -> str:
    """Read a long message, memory or document whole; a search shows … for what it leaves out.

    Args:
        memory_id: Its id, as a search shows it.
        page: Page of the text, from 0.
    """
    found = await long_texts.read(desk.searcher, desk.changes, memory_id, max(page, 0))
    hit = found.results[0]
    where = f"page {found.page}/{found.pages - 1}, " if found.pages > 1 else ""
    what = f"{hit.name or hit.role} - " if hit.place == "messages" else f"{hit.document or 'memory'}: "
    return f"timestamp: {message_format.format_time(hit.at, desk.zone)}, {where}{what}{hit.text}"


async def _holding(desk: FunctionMemory, text: str) -> str:
    """Return the id of a memory that holds exactly this text after the preceding calls; empty if there is none."""
    if known := desk.changes.holding(text):
        return known
    known = await desk.searcher.kept(text)
    return "" if desk.changes.is_changed(known) else known


async def _memory(desk: FunctionMemory, memory_id: str) -> Hit:
    """Return the memory of that id as the preceding calls left it. Raise FunctionError if there is none."""
    found = await desk.searcher.memory(archival_rules.id_of(memory_id))
    now = None if found is None else desk.changes.applied(found)
    if now is None:
        raise archival_rules.unknown(memory_id)
    return now


def shown(page: Page, zone: str, *, roles: bool) -> str:
    """Render a page of results for the model: the total, then each result with its time; a memory with its id too."""
    alone = "by words alone" if page.archive_down else ""
    if alone and not roles:
        alone += ", without documents: the archive does not answer"
    if page.reranker_down:
        alone += f"{', ' * bool(alone)}not reranked: the reranker does not answer"
    if not page.results:
        return f"No results found{' ' * bool(alone)}{alone}."
    lines = [
        f"timestamp: {message_format.format_time(hit.at, zone)}, "
        + (f"{_describe_message(hit)}{hit.shown}" if roles else f"{_describe_hit(hit, zone)}memory: {hit.shown}")
        for hit in page.results
    ]
    where = f"page {page.page}/{max(page.pages - 1, 0)}{'; ' * bool(alone)}{alone}"
    return f"Showing {len(lines)} of {page.total} results ({where}): {msgspec.json.encode(lines).decode()}"


def _describe_message(hit: Hit) -> str:
    """Return who said it; of a message that is shown in part also the id by which `memory_read` finds it."""
    known = f"id: {long_texts.message_id(hit.seq)}, " if hit.passage else ""
    return f"{known}{hit.name or hit.role} - "


def _describe_hit(hit: Hit, zone: str) -> str:
    """Return all that is known of a memory except its text."""
    known = [
        f"id: {hit.ref}",
        "" if hit.near is None else f"near: {hit.near:.2f}",
        f"part {hit.part} of {hit.parts}" if hit.parts > 1 else "",
        f"tags: {', '.join(hit.tags)}" if hit.tags else "",
        f"source: {hit.source}" if hit.source else "",
        f"document: {hit.document}" if hit.document else "",
        f"kind: {hit.kind}" if hit.kind else "",
        f"rests on: {' '.join(map(str, hit.sources))}" if hit.sources else "",
        "outdated" if hit.outdated else "",
        f"until: {message_format.format_time(hit.until, zone)}" if hit.until is not None else "",
    ]
    return "".join(f"{part}, " for part in known if part)


_LABEL = {"label": "name"}


BUILTIN: Sequence[Tool] = (
    own_tool(_send_message, heartbeat=False),
    own_tool(_pause_heartbeats, heartbeat=False),
    own_tool(_core_memory_append, aliases=_LABEL),
    own_tool(_core_memory_replace, aliases={**_LABEL, "old_str": "old_content", "new_str": "new_content"}),
    own_tool(_core_memory_remove, aliases={**_LABEL, "old_content": "content"}),
    own_tool(_conversation_search, whole=True),
    own_tool(_conversation_search_date, whole=True),
    own_tool(_archival_memory_insert),
    own_tool(_archival_memory_search, whole=True),
    own_tool(_archival_memory_update),
    own_tool(_archival_memory_delete),
    own_tool(_memory_read, whole=True),
    *TIMER_FUNCTIONS,
    own_tool(_core_memory_item_add, aliases=_LABEL),
    own_tool(_core_memory_item_replace, aliases=_LABEL),
    own_tool(_core_memory_item_remove, aliases=_LABEL),
)
"""Built-in functions, in the order in which the model sees them: MemGPT's, and those of the agent's own timers."""

ITEMS = ("core_memory_item_add", "core_memory_item_replace", "core_memory_item_remove")
"""Functions of agents that were created with a block of items."""

EDIT_MEMORY = own_tool(_edit_memory, aliases=_LABEL)
"""MemGPT's first function of memory. No model is shown it, and a model that knows it may call it."""

ALIASES: Mapping[str, str] = {
    EDIT_MEMORY.name: "core_memory_replace",
    "edit_memory_append": "core_memory_append",
    "edit_memory_replace": "core_memory_replace",
    "edit_memory_remove": "core_memory_remove",
    "recall_memory_search": "conversation_search",
    "recall_memory_search_date": "conversation_search_date",
}
"""Function names that older models and prompts use."""


def meant(tool: Tool, name: str, arguments: Mapping[str, Any]) -> Tool:
    """Return the function that a call of `name` means: `edit_memory` without an old content writes the whole block."""
    writes_whole = name == EDIT_MEMORY.name and not {"old_content", "old_str"} & arguments.keys()
    return EDIT_MEMORY if writes_whole else tool
