"""Searches of one agent's handle, and its archival memory.

Part of the public API: `AgentRef` offers both, and `sync_api` wraps them. `AgentSystem` supplies the searches.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from everlog.actors.agent import commands
from everlog.actors.command_sender import CommandSender
from everlog.actors.memory_views import MomentOpener
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import ANYTHING, Filters, Page
from everlog.actors.short_tracebacks import short_tracebacks

MemorySearch = Callable[[str, int, int, Filters], Awaitable[Page]]
"""Function that searches memories: (query, page, results per page, filters) to a page of results."""


class AgentSearches(NamedTuple):
    """Searches of one agent."""

    everything: MemorySearch
    """Searches messages, memories, documents and what was derived together."""
    archive: MemorySearch
    """Searches memories and documents."""
    moments: MomentOpener
    """Opens the agent at a moment, to read all of its memories."""


@short_tracebacks
class ArchivalMemory:
    """Archival memory of one agent: insert, update, delete and search texts. No method runs a turn or calls a model."""

    def __init__(self, sender: CommandSender, search: MemorySearch) -> None:
        self._sender = sender
        self._search = search

    async def insert(self, text: str, tags: Sequence[str] = ()) -> str:
        """Insert a text, and return the id of the memory that holds it.

        `text`: 1 to 1,000,000 characters, without the white space around it. `tags`: up to 32, each of 1 to 100
        characters. If a memory holds exactly this text already, nothing is inserted and the id of that memory is
        returned. Raises BadInput for an unusable text or tag.
        """
        return str(await self._sender.perform(commands.InsertMemory, text=text, tags=tags))

    async def insert_many(self, texts: Sequence[str], tags: Sequence[str] = ()) -> Sequence[str]:
        """Insert many texts in one commit, all or none. Return the ids of their memories in the order of `texts`.

        `tags` are the tags of each text. Limits and errors are those of `insert`.
        """
        ids: Sequence[str] = await self._sender.perform(commands.InsertMemories, texts=texts, tags=tags)
        return ids

    async def update(self, memory_id: str, text: str, tags: Sequence[str] | None = None) -> None:
        """Replace the text of a memory, and its tags unless `tags` is None.

        Limits are those of `insert`. Raises BadInput for an unknown id, and for an unusable text or tag.
        """
        await self._sender.perform(commands.UpdateMemory, memory_id=memory_id, text=text, tags=tags)

    async def delete(self, memory_id: str) -> None:
        """Delete a memory. Its text stays in the log until it is erased. Raises BadInput for an unknown id."""
        await self._sender.perform(commands.DeleteMemory, memory_id=memory_id)

    async def search(self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search memories and documents by words and by meaning. Return one page of results, best match first.

        `page`: 0 or more. `count`: results per page, 1 or more. Without an archive, the memories in the agent's own log
        are searched by words, and documents are not: `by_meaning` of the page is then False. `archive_down` is True if
        there is an archive that did not answer. Raises FunctionError for an unusable filter.
        """
        return await self._search(query, page, count, filters)

    def __repr__(self) -> str:
        return f"<ArchivalMemory of {self._sender.agent_id!r}>"
