"""Read an agent at any moment: memory blocks, context, pressure, projections; and edit its memory blocks."""

from collections.abc import Callable
from functools import partial
from typing import Any

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.local_system import LocalSystem
from everlog.interfaces.http.core.moments import moment_of
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, not_found
from everlog.interfaces.show import show_commands
from everlog.interfaces.wire.agents import Done
from everlog.interfaces.wire.memory import (
    AddBlockBody,
    BlockShape,
    BlocksShape,
    ContextShape,
    EditBlockBody,
    PressureShape,
    RowsShape,
)
from everlog.interfaces.wire.runs import Changed
from everlog.store import keeping_decoded_groups

PROJECTIONS = (
    "core_memory", "memory_history", "recall_memory", "archival_memory", "turns", "steps", "model_calls",
    "function_calls", "summaries", "timers", "sources", "memories", "facts", "insights", "plan_items", "entities",
)  # fmt: skip
"""Projections that can be read by name."""


async def read_view(call: HttpCall, read: Callable[[AgentView], Any]) -> Any:
    """Return what `read` makes, in a thread, of the agent of the path at the moment of the parameter `as_of`."""
    reading = LocalSystem(call.service.system.store, ports=call.service.ports, engines=call.service.engines)

    def looked(stream: str) -> Any:
        with keeping_decoded_groups(), reading.view(stream, as_of=moment_of(call.query.as_of)) as view:
            return read(view)

    return await call.service.ports.aside(looked, call.stream)


async def list_blocks(call: HttpCall) -> BlocksShape:
    """Return core memory at a moment."""

    def read(view: AgentView) -> BlocksShape:
        blocks = [_block(call, row) for row in show_commands.block_rows(view)]
        return BlocksShape(agent=call.shown(view.agent_id), as_of=view.seq, blocks=blocks)

    shape: BlocksShape = await read_view(call, read)
    return shape


async def show_block(call: HttpCall) -> BlockShape:
    """Return one memory block at a moment."""
    label = call.params["label"]

    def read(view: AgentView) -> BlockShape | None:
        return next((_block(call, row) for row in view.rows("core_memory") if row["label"] == label), None)

    found: BlockShape | None = await read_view(call, read)
    if found is None:
        raise not_found(f"memory block {label!r} of the agent {call.params['agent']!r}")
    return found


async def add_block(call: HttpCall) -> Any:
    """Add a memory block to core memory."""
    body: AddBlockBody = call.body
    await (await call.agent()).add_block(
        body.label, body.value, limit=body.limit, description=body.description, read_only=body.read_only
    )
    return JsonResponse(Done(), 201)


async def edit_block(call: HttpCall) -> Changed:
    """Change a memory block. With `base`, only if it has not changed since: else 412, with both texts."""
    body: EditBlockBody = call.body
    label = call.params["label"]
    agent = await call.agent()
    changed = await agent.update_block(
        label, body.value, limit=body.limit, description=body.description, read_only=body.read_only, base=body.base
    )
    return Changed(changed=changed)


async def remove_block(call: HttpCall) -> Done:
    """Remove a memory block from core memory. Its edits stay in the log."""
    await (await call.agent()).remove_block(call.params["label"])
    return Done()


async def show_context(call: HttpCall) -> ContextShape:
    """Return what the model would see at a moment."""

    def read(view: AgentView) -> ContextShape:
        shape = show_commands.context_shape(view)
        return ContextShape(**{**shape, "agent": call.shown(view.agent_id)})

    found: ContextShape = await read_view(call, read)
    return found


async def show_pressure(call: HttpCall) -> PressureShape:
    """Return how full the context window is at a moment."""

    def read(view: AgentView) -> PressureShape:
        shape = show_commands.pressure_shape(view)
        return PressureShape(**{**shape, "agent": call.shown(view.agent_id)})

    found: PressureShape = await read_view(call, read)
    return found


async def show_rows(call: HttpCall) -> RowsShape:
    """Return the rows of a projection at a moment, such as `turns`, `memory_history` or `model_calls`."""
    name = call.params["projection"]
    if name not in PROJECTIONS:
        raise Refusal(404, "not-found", f"There is no projection {name[:80]!r} here: {', '.join(PROJECTIONS)}.")

    def read(view: AgentView) -> RowsShape:
        return RowsShape(
            agent=call.shown(view.agent_id), as_of=view.seq, rows=[call.names.row(row) for row in view.rows(name)]
        )

    found: RowsShape = await read_view(call, partial(read))
    return found


def _block(call: HttpCall, row: Any) -> BlockShape:
    keys = ("label", "value", "limit", "seq", "description", "read_only")
    return BlockShape(**{key: row[key] for key in keys}, origin=call.shown(row["origin"]))
