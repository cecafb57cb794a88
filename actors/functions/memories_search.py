"""The function by which an agent searches what was concluded from its memories: insights, facts and plans.

An agent has it only if the user lists it among the functions: `everlog.open(store, tools=[MEMORIES_SEARCH])`. Its
signature and docstring are the schema that the model reads.
"""

from typing import Literal

from everlog.actors.functions.memgpt_functions import shown
from everlog.actors.functions.tools import Tool, own_tool
from everlog.actors.memory.core_memory import FunctionMemory
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import Filters

DerivedKind = Literal["insight", "fact", "plan"]


async def _memories_search(
    desk: FunctionMemory, query: str, page: int = 0, kinds: list[DerivedKind] | None = None, ended: bool = False
) -> str:
    """Search what you concluded from your memories, best match first: insights, facts and plans. Shows what each rests
    on.

    Args:
        query: Words to look for, or what it is about.
        page: Page of the results, from 0.
        kinds: Only these kinds: insight, fact, plan.
        ended: Also facts that no longer hold.
    """
    filters = Filters(kinds=tuple(kinds or ()), ended=ended)
    return shown(await desk.searcher.derived(query, page, PAGE_RESULTS, filters), desk.zone, roles=False)


MEMORIES_SEARCH: Tool = own_tool(_memories_search, whole=True)
"""Function that searches insights, facts and plans."""
