"""One agent at one moment, for reading in an asyncio program.

Part of the public API: made by `AgentSystem.view`, wrapped by `sync_api`. Every method that runs SQL or reads the disk
does it in a thread, one at a time: the engine under a view is not thread-safe.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Self

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.memory_views import MemoryMoment, MemoryViews
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import ANYTHING, Filters, Page, ThreadRunner
from everlog.actors.prompt.context import Context
from everlog.actors.short_tracebacks import short_tracebacks
from everlog.events import BadInput


@short_tracebacks
class AgentState:
    """One agent at one moment. Writes nothing, and starts no host; later records do not change a past moment.

    Close it after use, or use it in an `async with` block.
    """

    def __init__(self, view: AgentView, aside: ThreadRunner) -> None:
        """Wrap a view; `AgentSystem.view` does this. `aside` runs work in a thread."""
        self.agent_id = view.agent_id
        """Name of the agent."""
        self.seq = view.seq
        """Moment: the state after this record."""
        self.head = view.head.seq
        """Seq of the agent's last record, when the view was opened."""
        self.is_past = view.is_past
        """True if the view was opened for a past moment."""
        self._view = view
        self._runner = aside
        self._lock = asyncio.Lock()
        self._closed = False
        self.memories = MemoryViews(view.agent_id, self._moment)
        """All that the agent remembered at the moment: messages, stored texts, and what was derived."""

    async def rows(self, projection: str) -> list[dict[str, Any]]:
        """Return the rows of a projection, such as `core_memory`, `recall_memory`, `turns`, `timers`.

        Times in the rows are microseconds UTC, as in the log. Raises BadInput for an unknown name.
        """
        rows: list[dict[str, Any]] = await self._aside(self._view.rows, projection)
        return rows

    async def memory(self) -> dict[str, str]:
        """Return core memory: the text of each block by its label."""
        return {row["label"]: row["value"] for row in await self.rows("core_memory")}

    async def context(self) -> Context:
        """Return the context that the model would see. Raises BadInput if the agent had none yet."""
        context: Context = await self._aside(self._view.context)
        return context

    async def request(self) -> bytes:
        """Render the request that the model would get. Raises BadInput if a part of it was erased."""
        request: bytes = await self._aside(self._view.request)
        return request

    async def counts(self) -> tuple[int, int]:
        """Return the numbers of messages and of archival memories."""
        counts: tuple[int, int] = await self._aside(self._view.counts)
        return counts

    async def search(self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search messages, memories and documents together. Return one page of results, most relevant first.

        Parameters and errors are those of `AgentRef.search`.
        """
        searcher = await self._aside(self._view.searcher, None, self._aside)
        found: Page = await searcher.everything(query, page, count, filters)
        return found

    async def search_messages(
        self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING
    ) -> Page:
        """Search the conversation by words and by meaning. Return one page of results, best match first.

        `page`: 0 or more. `count`: results per page, 1 or more. Raises FunctionError for an unusable filter.
        """
        searcher = await self._aside(self._view.searcher, None, self._aside)
        found: Page = await searcher.recall(query, page, count, filters)
        return found

    async def search_archive(
        self, query: str, page: int = 0, count: int = PAGE_RESULTS, filters: Filters = ANYTHING
    ) -> Page:
        """Search archival memory and attached documents. Return one page of results, best match first.

        Parameters and errors are those of `search_messages`.
        """
        searcher = await self._aside(self._view.searcher, None, self._aside)
        found: Page = await searcher.archival(query, page, count, filters)
        return found

    @asynccontextmanager
    async def _moment(self, as_of: int | datetime | None) -> AsyncIterator[MemoryMoment]:
        if as_of is not None and as_of != self.seq:
            raise BadInput(f"This state is that of seq {self.seq}: open another one with view(..., as_of={as_of!r}).")
        yield MemoryMoment(self._view, self._aside)

    async def close(self) -> None:
        """Free the memory. Idempotent."""
        if not self._closed:
            self._closed = True
            await self._aside(self._view.close)

    async def _aside(self, work: Callable[..., Any], /, *arguments: Any) -> Any:
        async with self._lock:
            return await self._runner(work, *arguments)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AgentState {self.agent_id!r} as of seq {self.seq} of {self.head}>"
