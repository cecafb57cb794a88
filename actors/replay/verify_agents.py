"""Verify agents with `verify.Verifier`: read their records and contexts, of one agent or of many together.

Used by `everlog verify`, and through `rebuild_check.py` wherever one agent is verified. Nothing is written. An agent is
checked in the same way alone and together with others: only what is read and queried at once differs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, groupby
from typing import NamedTuple

import msgspec
import pyarrow as pa

from everlog.actors.agent.agent_view import AgentView, schemas_in
from everlog.actors.functions.tools import Tool
from everlog.actors.replay.replay_report import ReplayReport
from everlog.actors.replay.verify import ChosenRecord, RecordedAgent, Verifier
from everlog.events import EverlogError, Record
from everlog.projections import HEAD, Projections
from everlog.projections.projection_constants import BATCH_BYTES
from everlog.store import Head, LogReader, Store, batch_of, records_of

CALLS_AT_ONCE = 128
BYTES_AT_ONCE = 8 * 2**20
"""Contexts that are queried together: so many, or as many as have so many bytes of requests. The limits bound the
memory.
"""
AGENTS_AT_ONCE = 1024
"""Agents whose results are returned together, in order of their names."""
RECORDS_AT_ONCE = 16_384
"""Records that are in memory together; one agent alone may have more."""


class VerificationPlan(NamedTuple):
    """Calls that are checked, and the functions with which replies are executed again."""

    tools: Mapping[str, Tool]
    sample: int | None = None
    """Number of calls of each agent; None: all."""
    seed: str = ""
    """Text that selects the sample; empty: the head of each agent's chain."""


class VerifiedAgents(NamedTuple):
    """Results of some agents."""

    reports: Mapping[str, ReplayReport]
    """Report of each agent that was verified, by name."""
    deleted: Sequence[str]
    """Agents among `reports` that were deleted."""
    damage: Sequence[str]
    """Descriptions of damaged ends of the logs, see `TornTail`."""
    alone: Sequence[str]
    """Agents that have to be verified one by one: their logs cannot be read together with others, or are empty."""


class _ReadAgents(NamedTuple):
    """Agents whose records are in memory."""

    heads: Mapping[str, Head]
    records: Mapping[str, Sequence[Record]]
    """Records of each agent up to its head, as they were written."""
    table: pa.Table
    """The same records, each under the name of the agent that it belongs to."""
    damage: str = ""


def own_record(record: Record, agent_id: str) -> Record:
    """Return the record under the name of the agent:
    a fork's records before the fork point have its ancestor's name.
    """
    return record if record.agent_id == agent_id else msgspec.structs.replace(record, agent_id=agent_id)


def verify(view: AgentView, tools: Mapping[str, Tool], sample: int | None = None, seed: str = "") -> ReplayReport:
    """Check every request and every reply of the agent, or those of a sample, against the log alone."""
    records = list(view.reader.read(view.agent_id))
    agent = RecordedAgent(view.agent_id, view.head, records, view.schemas())
    return _reports([agent], view.projections, VerificationPlan(tools, sample, seed))[agent.agent_id]


def verify_many(
    store: Store, names: Sequence[str], projections: Projections, plan: VerificationPlan
) -> Iterator[VerifiedAgents]:
    """Check agents as `verify` does, some hundred at a time: each result is about the next of `names`.

    `projections`: an engine without any of these agents; it has none of them afterwards. Damage of a log is no error
    here: its agents are `alone`. Raises CorruptLog, StoreError if the register cannot be read.
    """
    group_of = {name: number for number, group in enumerate(store.reader_groups()) for name in group}
    for start in range(0, len(names), AGENTS_AT_ONCE):
        some = names[start : start + AGENTS_AT_ONCE]
        groups: dict[int, list[str]] = defaultdict(list)
        for name in some:
            groups[group_of[name]].append(name)
        reports: dict[str, ReplayReport] = {}
        deleted: list[str] = []
        damage: list[str] = []
        for parts in _together(part for group in groups.values() for part in _parts(store, group)):
            # An error is the error of one agent, which nothing names here: each is verified alone then.
            with suppress(EverlogError):
                found, gone = _verified(parts, projections, plan)
                reports.update(found)
                deleted += gone
            damage += [part.damage for part in parts if part.damage]
        yield VerifiedAgents(reports, deleted, damage, [name for name in some if name not in reports])


def _parts(store: Store, group: Sequence[str]) -> Iterator[_ReadAgents]:
    """Yield the agents of a group that one reader reads, with their records, about RECORDS_AT_ONCE at a time. Agents
    whose records cannot be read, and agents without records, are left out.
    """
    with suppress(EverlogError):
        reader = store.reader(group[0])
        heads = {name: head for name, head in reader.heads(group).items() if head.seq}
        numbers = accumulate((head.seq for head in heads.values()), initial=0)
        for _, some in groupby(zip(numbers, heads, strict=False), key=lambda item: item[0] // RECORDS_AT_ONCE):
            part = _read(reader, {name: heads[name] for _, name in some})
            if part is not None:
                yield part


def _read(reader: LogReader, heads: Mapping[str, Head]) -> _ReadAgents | None:
    """Read the records of agents up to these heads, which are not empty. None if several have too many bytes."""
    if len(heads) == 1:
        name, head = next(iter(heads.items()))
        # The records of a fork are read as they were written: the chain covers their writers' names.
        records = {name: list(reader.read(name, 1, head.seq))}
        table = pa.Table.from_batches([batch_of([own_record(record, name) for record in records[name]])])
    else:
        # A writer may have appended since the heads were read.
        table = pa.concat_tables(states.after for states in reader.states(None, heads))
        if table.nbytes > BATCH_BYTES:
            return None
        records = {name: [] for name in heads}
        for record in records_of(table):
            if record.seq <= heads[record.agent_id].seq:
                records[record.agent_id].append(record)
    damage = getattr(reader, "damage", None)
    return _ReadAgents(heads, records, table, "" if damage is None else str(damage))


def _together(parts: Iterable[_ReadAgents]) -> Iterator[Sequence[_ReadAgents]]:
    """Combine parts until they have RECORDS_AT_ONCE records: many agents may have a partition of their own each."""
    some: list[_ReadAgents] = []
    for part in parts:
        if some and sum(read.table.num_rows for read in (*some, part)) > RECORDS_AT_ONCE:
            yield some
            some = []
        some.append(part)
    if some:
        yield some


def _verified(
    parts: Sequence[_ReadAgents], projections: Projections, plan: VerificationPlan
) -> tuple[Mapping[str, ReplayReport], Sequence[str]]:
    """Return the report of each agent of the parts, and the names of those that were deleted."""
    heads = {name: head for part in parts for name, head in part.heads.items()}
    now = [(name, HEAD) for name in heads]
    try:
        projections.load(pa.concat_tables(part.table for part in parts).combine_chunks())
        schemas = map(schemas_in, projections.answers("configurations", now))
        records = {name: records for part in parts for name, records in part.records.items()}
        agents = [
            RecordedAgent(name, heads[name], records[name], known) for name, known in zip(heads, schemas, strict=True)
        ]
        reports = _reports(agents, projections, plan)
        standing = zip(heads, projections.answers("standing", now), strict=True)
        return reports, [name for name, rows in standing if rows[0]["deleted"]]
    finally:
        projections.forget_many(list(heads))


def _reports(
    agents: Sequence[RecordedAgent], projections: Projections, plan: VerificationPlan
) -> Mapping[str, ReplayReport]:
    """Return the report of each agent, by name. `projections` has all records of the agents."""
    verifiers = {agent.agent_id: Verifier(agent, plan.tools, plan.sample, plan.seed) for agent in agents}
    chosen = ((name, record) for name, verifier in verifiers.items() for record in verifier.chosen())
    for some in _at_once(chosen):
        contexts = projections.answers("context_window", [(name, record.seq - 1, record.turn) for name, record in some])
        for (name, record), rows in zip(some, contexts, strict=True):
            verifiers[name].judge(record, rows)
    return {name: verifier.finish() for name, verifier in verifiers.items()}


def _at_once(items: Iterable[tuple[str, ChosenRecord]]) -> Iterator[Sequence[tuple[str, ChosenRecord]]]:
    """Split the items into groups whose contexts are queried together."""
    some: list[tuple[str, ChosenRecord]] = []
    size = 0
    for item in items:
        some.append(item)
        size += item[1].request_bytes
        if len(some) >= CALLS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some
