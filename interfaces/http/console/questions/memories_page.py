"""Show what an agent derived from its talk at a moment: insights, facts and plans, each with the tree that it rests on;
and what it put into its archive.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.ports.effects import Filters
from everlog.actors.recollection.memory_tree import MemoryTree, TreeNode
from everlog.events import BadInput
from everlog.events.times import since_epoch
from everlog.interfaces.http.console.agent_frame import (
    AgentFrame,
    MomentParameters,
    agent_page,
    framed,
    page_of_agent,
    seq_in,
)
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.native import derived
from everlog.interfaces.wire.derived import MemoryQuery

PAGE_ROWS = 50
PAGES_MAX = 10_000
NODES_SHOWN = 300
ListedKind = Literal["", "insight", "fact", "plan"]
KINDS: Mapping[str, str] = {"": "All", "insight": "Insights", "fact": "Facts", "plan": "Plans"}
"""Kinds of derived memories, each with its label."""
assert set(KINDS) == set(get_args(ListedKind))


class DerivedParameters(MomentParameters, frozen=True):
    """Parameters of the list of memories."""

    kind: ListedKind = ""
    about: str = ""
    """Only memories about an entity, by a name of it or by a word."""
    page: int = 1


class TextsParameters(MomentParameters, frozen=True):
    """Parameters of the list of stored texts."""

    tag: str = ""
    page: int = 1


class TreeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One memory of a tree for a page."""

    depth: int
    node: TreeNode
    leads: bool
    """True: it is itself a derived memory with a tree."""


async def show_memories(call: HttpCall) -> Response:
    """List the derived memories of an agent at a moment, the newest first."""
    query: DerivedParameters = call.query
    _check_page(query.page)
    values = await framed(call, lambda _view, _frame: {})
    frame: AgentFrame = values["frame"]
    wanted = MemoryQuery(
        kind=[query.kind] if query.kind else [], about=query.about.strip(), limit=1, as_of=str(frame.seq)
    )
    native = HttpCall(call.service, call.caller, call.request, params=call.params, query=wanted)
    total = (await derived.list_memories(native)).total
    last = total - (query.page - 1) * PAGE_ROWS
    first = max(0, last - PAGE_ROWS)
    rows: Sequence[Mapping[str, Any]] = ()
    if last > 0:
        native.query = msgspec.structs.replace(wanted, offset=first, limit=last - first)
        found = (await derived.list_memories(native)).memories
        rows = [{"memory": one, "at": since_epoch(one.time)} for one in reversed(found)]
    shown = {**values, "query": query, "kinds": KINDS, "rows": rows, "total": total, "older": first > 0}
    return page_of_agent(call, "memories", "memories.html", shown)


async def show_tree(call: HttpCall) -> Response:
    """Show a derived memory with all that it rests on, down to messages, and what rests on it."""
    seq = seq_in(call.params["seq"])
    values = await framed(call, lambda _view, _frame: {})
    frame: AgentFrame = values["frame"]
    try:
        tree = await (await call.agent()).memories.tree(seq, as_of=frame.seq)
    except BadInput as error:
        if "has no memory" not in str(error):
            raise
        raise not_found(f"memory {seq} at event {frame.seq}") from error
    down, up = _lines(tree, list(tree.down())), _lines(tree, list(tree.up())[1:])
    left = max(0, len(down) - NODES_SHOWN)
    shown = {**values, "root": tree.root, "down": down[1:NODES_SHOWN], "up": up[:NODES_SHOWN], "left": left}
    return page_of_agent(call, "memories", "tree.html", shown)


async def show_texts(call: HttpCall) -> Response:
    """List what an agent's archive holds at a moment, the newest first."""
    query: TextsParameters = call.query
    _check_page(query.page)
    filters = Filters(tags=(query.tag,) if query.tag else ())

    def read(view: AgentView, _: AgentFrame) -> Mapping[str, Any]:
        found = view.searcher().listed(query.page - 1, PAGE_ROWS, filters)
        return {"query": query, "found": found, "rows": found.results}

    return await agent_page(call, "archive", "archive.html", read)


def _check_page(number: int) -> None:
    if not 1 <= number <= PAGES_MAX:
        raise Refusal(400, "bad-input", f"`page` is from 1 to {PAGES_MAX:,}, not {number}.")


def _lines(tree: MemoryTree, found: Sequence[tuple[int, TreeNode]]) -> list[TreeLine]:
    return [
        TreeLine(depth=min(depth, 6), node=node, leads=node.seq != tree.seq and node.kind in KINDS)
        for depth, node in found
    ]
