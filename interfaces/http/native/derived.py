"""What an agent remembers, concluded, believes and plans: read at any moment, derive, note and correct."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.models.model_types import is_gguf
from everlog.actors.recollection.memory_items import MemoryItem
from everlog.events import BadInput, PlanItem
from everlog.events.times import microseconds_of, moment
from everlog.interfaces.http.core.moments import moment_of, time_of_parameter
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import Call, JsonResponse, not_found
from everlog.interfaces.http.native.memory import read_view
from everlog.interfaces.memories.list_commands import DERIVED_KINDS, OPEN_ITEMS, fact_holds, row_shape, rows_about
from everlog.interfaces.wire.derived import (
    DerivationShape,
    DerivationsShape,
    DeriveBody,
    DerivedRowsShape,
    EndFactBody,
    FactBody,
    FactQuery,
    GenerationBody,
    MemoryPage,
    MemoryQuery,
    MemorySearchQuery,
    MemoryShape,
    MemoryTreeShape,
    NameBody,
    NotedSeq,
    PlanBody,
    PlanChangeBody,
    PlanQuery,
    RankedMemory,
    RankedShape,
    WithdrawBody,
)
from everlog.interfaces.wire.runs import Changed

SEQ_DIGITS_MAX = 15


async def list_memories(call: Call) -> MemoryPage:
    """List memories of an agent at a moment, in the order of their times: what was concluded, or all kinds."""
    query: MemoryQuery = call.query
    memories = (await call.agent()).memories
    items = await memories.list(
        kinds=query.kind or DERIVED_KINDS, about=query.about, as_of=moment_of(query.as_of)  # type: ignore[arg-type]
    )  # fmt: skip
    shown = items[query.offset : query.offset + query.limit]
    return MemoryPage(agent=call.shown(call.stream), total=len(items), memories=[_memory(item) for item in shown])


async def search_memories(call: Call) -> RankedShape:
    """Rank the memories of an agent at a moment by relevance, recency and importance."""
    query: MemorySearchQuery = call.query
    found = await (await call.agent()).memories.search(
        query.query, query.count, mode=query.mode, kinds=query.kind or None, about=query.about,
        as_of=moment_of(query.as_of), now=query.now, accesses=query.accesses, ended=query.ended,
        leave_out_parts=query.leave_out_parts,
    )  # fmt: skip
    results = [
        RankedMemory(
            memory=_memory(one.item), score=one.score, relevance=one.relevance, recency=one.recency,
            importance=one.importance,
        )
        for one in found.results
    ]  # fmt: skip
    return RankedShape(
        agent=call.shown(call.stream), mode=found.mode, now=moment(found.now), by_meaning=found.by_meaning,
        constant=found.constant, results=results,
    )  # fmt: skip


async def show_memory(call: Call) -> MemoryTreeShape:
    """Return a memory with all that it rests on, down to messages, at a moment."""
    seq = _seq_of(call, "memory")
    agent = await call.agent()
    as_of = moment_of(call.query.as_of)
    try:
        tree = await agent.memories.tree(seq, as_of=as_of)
    except BadInput as error:
        if "has no memory" not in str(error):
            raise
        raise not_found(f"memory {seq} of the agent {call.params['agent']!r}") from error
    nodes = [row_shape(msgspec.structs.asdict(node)) for _, node in tree.down()]
    return MemoryTreeShape(agent=call.shown(agent.agent_id), memory=tree.seq, nodes=nodes)


async def list_facts(call: Call) -> DerivedRowsShape:
    """List the facts that an agent believed at a moment, or those that held at a time."""
    query: FactQuery = call.query
    when = time_of_parameter(query.at, "at")
    at = None if when is None else microseconds_of(when, "at")

    def chosen(view: AgentView) -> Sequence[Mapping[str, Any]]:
        rows = rows_about(view, view.rows("facts"), query.about)
        return sorted(
            (row for row in rows if fact_holds(row, at, every=query.all)),
            key=lambda row: (row["subject"], row["predicate"], row["valid_from"] or 0, row["seq"]),
        )

    return await _rows(call, chosen)


async def list_plans(call: Call) -> DerivedRowsShape:
    """List the items of an agent's plans at a moment."""
    query: PlanQuery = call.query

    def chosen(view: AgentView) -> Sequence[Mapping[str, Any]]:
        rows = [row for row in view.rows("plan_items") if query.all or row["status"] in OPEN_ITEMS]
        return sorted(rows, key=lambda row: (row["start"], row["plan"], row["item"]))

    return await _rows(call, chosen)


async def derive_memories(call: Call) -> DerivationsShape:
    """Derive memories from what was said since the last derivation. One that finds nothing new changes nothing."""
    body: DeriveBody = call.body
    if call.names.tenant and is_gguf(body.model):
        raise Refusal(403, "forbidden", "Only the operator may name a model by a file. Nothing was derived.")
    agent = await call.agent()
    reports = [
        await agent.memories.derive(
            kind, generation=body.generation, model=body.model, batches_max=body.batches_max
        )
        for kind in body.kinds
    ]  # fmt: skip
    if body.use:
        await agent.memories.choose_generation(body.generation)
    shapes = [DerivationShape(**msgspec.structs.asdict(report)) for report in reports]
    return DerivationsShape(agent=call.shown(agent.agent_id), derivations=shapes)


async def withdraw_memories(call: Call) -> Changed:
    """Withdraw derived memories, or let them count again."""
    body: WithdrawBody = call.body
    memories = (await call.agent()).memories
    return Changed(changed=await memories.withdraw(body.seqs, reason=body.reason, withdrawn=body.withdrawn))


async def choose_generation(call: Call) -> Changed:
    """Use another generation of derived memories from now on."""
    body: GenerationBody = call.body
    return Changed(changed=await (await call.agent()).memories.choose_generation(body.generation))


async def note_fact(call: Call) -> Any:
    """Note a fact. One that is believed already keeps its seq."""
    body: FactBody = call.body
    seq = await (await call.agent()).memories.note_fact(
        body.subject, body.predicate, body.object, sources=body.sources, sentence=body.sentence,
        valid_from=body.valid_from, from_precision=body.from_precision,
    )  # fmt: skip
    return JsonResponse(NotedSeq(seq=seq), 201)


async def end_fact(call: Call) -> Changed:
    """End a fact. What rests on it is outdated from then on."""
    body: EndFactBody = call.body
    changed = await (await call.agent()).memories.end_fact(
        _seq_of(call, "fact"), reason=body.reason, sources=body.sources, valid_to=body.valid_to,
        to_precision=body.to_precision,
    )  # fmt: skip
    return Changed(changed=changed)


async def name_entity(call: Call) -> Changed:
    """Note that two names mean the same entity."""
    body: NameBody = call.body
    memories = (await call.agent()).memories
    return Changed(changed=await memories.name_entity(body.alias, body.entity, sources=body.sources))


async def make_plan(call: Call) -> Any:
    """Make a plan, whose items become timers of the agent."""
    body: PlanBody = call.body
    items = [
        PlanItem(one.text, microseconds_of(one.start, "start"), one.minutes, one.place, one.until)
        for one in body.items
    ]  # fmt: skip
    seq = await (await call.agent()).memories.make_plan(
        body.title, items, level=body.level, sources=body.sources
    )  # fmt: skip
    return JsonResponse(NotedSeq(seq=seq), 201)


async def change_plan(call: Call) -> NotedSeq:
    """Change an item of a plan, with its timer and all that it was divided into."""
    body: PlanChangeBody = call.body
    seq = await (await call.agent()).memories.change_plan(
        _seq_of(call, "plan"), body.item, body.change, body.reason, start=body.start, sources=body.sources
    )
    return NotedSeq(seq=seq)


async def _rows(call: Call, chosen: Any) -> DerivedRowsShape:
    def read(view: AgentView) -> DerivedRowsShape:
        rows = [row_shape(row) for row in chosen(view)]
        return DerivedRowsShape(agent=call.shown(view.agent_id), as_of=view.seq, rows=rows)

    found: DerivedRowsShape = await read_view(call, read)
    return found


def _seq_of(call: Call, part: str) -> int:
    """Return the seq in the path. Raises the refusal of anything else."""
    given = call.params[part]
    if not given.isascii() or not given.isdecimal() or len(given) > SEQ_DIGITS_MAX:
        raise not_found(f"{part} {given[:20]!r} of the agent {call.params['agent']!r}")
    return int(given)


def _memory(item: MemoryItem) -> MemoryShape:
    return MemoryShape(time=item.time, **{n: v for n, v in msgspec.structs.asdict(item).items() if n != "at"})
