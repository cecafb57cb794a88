"""Laws of derived memories: facts, what is outdated, merged names and plans equal folds in plain Python, as of any seq;
the views of the fleet have the rows of each agent.
"""

import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import strategies as st

from everlog.events import (
    AgentConfigured,
    AgentCreated,
    AgentDeleted,
    AgentMessageReceived,
    AgentMessageSent,
    AgentMessageSettled,
    ApprovalDecided,
    ApprovalRequested,
    ArchivalInserted,
    BlockRemoved,
    DerivedEvent,
    EntityNamed,
    Event,
    FactEnded,
    FactNoted,
    GenerationChosen,
    ImportanceRated,
    InsightNoted,
    MemoriesDerived,
    MemoriesWithdrawn,
    MemoryEdited,
    MessageSent,
    PlanChanged,
    PlanItem,
    PlanMade,
    Rating,
    Record,
    RecordsErased,
    TurnsHidden,
    UserMessage,
    draft,
    event_of,
    is_erased,
    place,
    tombstone,
    uuid7,
)
from everlog.projections import HEAD, Projections
from everlog.projections.fleet_views import CURRENT_VIEWS, FleetViews, QueryLimits
from everlog.projections.sql_catalogue import _FLEET_TIMES
from everlog.store import batch_of
from tests.laws.test_fleet_views import rows_of
from tests.support.law import law

NAMES = ("Lea", "Lea Maier", "Chad", "user", "Rome")
HOUR = 3_600_000_000


class Counted(msgspec.Struct):
    """Derived records of one incarnation that count, as of a seq, in order."""

    events: dict[int, DerivedEvent]


def an_event(chance: random.Random, seq: int) -> Event:
    """Return an event of a random kind; sources and targets are any earlier seqs."""
    earlier = list(range(2, seq)) or [1]

    def some() -> list[int]:
        return sorted(chance.sample(earlier, min(len(earlier), chance.randint(1, 3))))

    told = {"sources": some(), "deriver": chance.choice(["rules-1", "gpt"]), "generation": chance.choice([0, 1, 1, 2])}
    target, name = chance.choice(earlier), chance.choice(NAMES)
    time = chance.choice([None, seq * HOUR])
    makers: Sequence[Callable[[], Event]] = (
        lambda: UserMessage(text=f"{name} said 3 things to Lea Maier", name=name),
        lambda: MessageSent(text="Good morning"),
        lambda: ArchivalInserted(text="An oak"),
        lambda: FactNoted(text="x", subject=name, predicate="knows", object="Lea", valid_from=time, **told),
        lambda: FactNoted(
            text="y", subject=name, predicate="is", object="z", valid_to=time, to_precision="day", **told
        ),
        lambda: FactEnded(fact=target, successor=chance.choice([0, target]), valid_to=time, text="why", **told),
        lambda: InsightNoted(text="i", depth=2, **told),
        lambda: EntityNamed(alias=name, entity=chance.choice(NAMES), **told),
        lambda: PlanMade(text="p", items=[PlanItem("a", HOUR, 5), PlanItem("b", 2 * HOUR, 9)], **told),
        lambda: PlanChanged(plan=target, item=chance.choice([0, 1]), change=chance.choice(["done", "failed"]), **told),
        lambda: PlanChanged(plan=target, item=0, change="postponed", start=time, text="late", **told),
        lambda: ImportanceRated(ratings=[Rating(target, chance.randint(1, 10))], **told),
        lambda: MemoriesWithdrawn(seqs=some(), withdrawn=chance.random() < 0.7),
        lambda: GenerationChosen(generation=chance.choice([1, 2])),
        lambda: MemoriesDerived(derivation="facts", from_seq=1, to_seq=seq, noted=1, **told),
        AgentCreated,
    )
    weights = (3, 1, 1, 4, 2, 4, 4, 3, 3, 2, 2, 2, 2, 0.3, 1, 0.2)
    return chance.choices(makers, weights)[0]()


def log_of(agent_id: str, chance: random.Random) -> list[Record]:
    """Return a log of one agent, with some records erased."""
    events: list[Event] = [AgentCreated(), UserMessage(text="Hi", name="Chad")]
    events += [an_event(chance, seq) for seq in range(3, chance.randint(5, 40))]
    records = []
    for seq, event in enumerate(events, start=1):
        made = draft(event, event_id=uuid7(seq, seq), recorded_at=seq * HOUR, turn=0, step=0)
        record = place(made, agent_id, seq, seq)
        records.append(tombstone(record) if seq > 2 and chance.random() < 0.02 else record)
    return records


def approvals_of(agent_id: str, seq: int, chance: random.Random) -> list[Record]:
    """Return records from `seq` on in which calls of an agent wait, and some of them are decided, or taken back; and
    messages to and from another agent, some of which are delivered and answered; labels and members of the agent;
    blocks of its core memory; and, for some, the beginning of a new incarnation.
    """
    ask = ApprovalRequested(call_id="c", name="pay", arguments="{}", expires_at=chance.choice([0, 7]))
    events: list[Event] = [ask, ask]
    for request in (seq, seq, seq + 1, seq + 9)[: chance.randint(0, 4)]:
        how = chance.choice(["approved", "refused", "expired"])
        events.append(
            ApprovalDecided(request=request, call_id="c", name="pay", decision=how, arguments="{}", edited=how < "b")
        )
    message = seq + len(events)
    events.append(AgentMessageSent(text="m", to="bob", call_id="c", hops=["sam"], expires_at=chance.choice([0, 7])))
    events.append(AgentMessageReceived(sender="bob", sent="x", waits=True, message=3, hops=["bob"]))
    settled = [AgentMessageSettled(message=message + n, outcome="delivered") for n in (0, 1)]
    events += settled[: chance.randint(0, 2)]
    events += [TurnsHidden(turns=[1])] * chance.randint(0, 1)
    for labels in (["crew", "it's"], ["crew"], [])[: chance.randint(0, 3)]:
        rule, manager = chance.choice([("m", ""), ("group/dynamic", "eve"), ("group/round-robin", "")])
        members = ["bob", "it's"] if manager or rule != "m" else []
        configured = AgentConfigured(model=rule, window=8000, renderer=1, labels=labels, members=members)
        background = chance.choice(["", "bob"])
        events.append(msgspec.structs.replace(configured, manager=manager, background=background))
    for label in chance.choices(["human", "team", "rules"], k=chance.randint(0, 6)):
        edit = MemoryEdited(label=label, operation="set", text="x", limit=9, origin=chance.choice(["", "crew"]))
        events.append(chance.choice([edit, edit, BlockRemoved(label=label)]))
    if chance.random() < 0.2:
        events += [AgentDeleted(), AgentCreated(), MemoryEdited(label="human", operation="created", limit=9)]
    made = [draft(e, event_id=uuid7(n, n), recorded_at=n * HOUR, turn=1, step=1) for n, e in enumerate(events, seq)]
    return [place(one, agent_id, number, number) for number, one in enumerate(made, seq)]


@st.composite
def logs(draw: st.DrawFn) -> list[Record]:
    """Draw the log of one agent."""
    chance: random.Random = draw(st.randoms(use_true_random=False))
    return log_of("sam", chance)


def counted(records: Sequence[Record]) -> dict[int, DerivedEvent]:
    """Return the derived records that count, by seq: the definition as a loop."""
    found: dict[int, DerivedEvent] = {}
    withdrawn: dict[int, bool] = {}
    lost: set[int] = set()
    generation = 1
    for record in records:
        if record.type == "agent_created":
            found, withdrawn, lost, generation = {}, {}, set(), 1
        if is_erased(record.payload):
            lost.add(record.seq)
            continue
        event = event_of(record)
        if isinstance(event, DerivedEvent) and lost & set(event.sources):
            lost.add(record.seq)
        if isinstance(event, MemoriesWithdrawn):
            withdrawn |= dict.fromkeys(event.seqs, event.withdrawn)
        elif isinstance(event, GenerationChosen):
            generation = event.generation
        elif isinstance(event, DerivedEvent) and not isinstance(event, MemoriesDerived):
            found[record.seq] = event
    counts = {seq for seq in found if not withdrawn.get(seq) and seq not in lost}
    return {s: e for s, e in found.items() if s in counts and e.generation in (0, generation)}


def ends(events: dict[int, DerivedEvent]) -> dict[int, FactEnded]:
    """Return the first end of each fact."""
    found: dict[int, FactEnded] = {}
    for event in events.values():
        if isinstance(event, FactEnded):
            found.setdefault(event.fact, event)
    return found


def outdated(events: dict[int, DerivedEvent]) -> set[int]:
    """Return the seqs of what rests on an ended fact: marked again and again until nothing is added."""
    over = {seq for seq in ends(events) if isinstance(events.get(seq), FactNoted)}
    marked: set[int] = set()
    while True:
        more = {
            seq
            for seq, event in events.items()
            if isinstance(event, InsightNoted | FactNoted | PlanMade) and (over | marked) & set(event.sources)
        }
        if more <= marked:
            return marked
        marked |= more


def canonical(events: dict[int, DerivedEvent]) -> dict[str, str]:
    """Return the name of the entity of each other name: merges are followed at most eight times, not in a circle."""
    merges = {e.alias: e.entity for e in events.values() if isinstance(e, EntityNamed)}
    return {alias: followed(alias, merges) for alias in merges}


def followed(alias: str, merges: dict[str, str]) -> str:
    """Return the end of the merges that begin at an alias."""
    name = merges[alias]
    for _ in range(7):
        if merges.get(name, alias) == alias:
            break
        name = merges[name]
    return name


@law(logs(), few=4, many=1000)
def test_derived_memories_are_the_fold_of_the_records(records: list[Record]) -> None:
    """As of each of some seqs: believed facts, ends, outdated records, names and items of plans equal the folds."""
    with Projections() as engine:
        engine.load(pa.Table.from_batches([batch_of(records)]))
        for as_of in {len(records), len(records) // 2, 3}:
            events = counted(records[:as_of])
            over = ends(events)
            facts = {row["seq"]: row for row in engine.rows("facts", "sam", as_of)}
            assert facts.keys() == {seq for seq, event in events.items() if isinstance(event, FactNoted)}
            for seq, row in facts.items():
                assert row["believed"] == (seq not in over)
                end, own = over.get(seq), events[seq]
                assert isinstance(own, FactNoted)
                assert row["valid_to"] == (end.valid_to if end and end.valid_to is not None else own.valid_to)
                assert row["successor"] == (end.successor if end else 0)
            assert {row["seq"] for row in engine.rows("outdated", "sam", as_of)} == outdated(events)
            names = {row["alias"]: row["entity"] for row in engine.rows("entity_names", "sam", as_of)}
            assert names == canonical(events)
            check_items(engine.rows("plan_items", "sam", as_of), events)


def check_items(rows: Sequence[dict[str, Any]], events: dict[int, DerivedEvent]) -> None:
    """Check the items of all plans against their newest changes."""
    changes = {(e.plan, e.item): e for e in events.values() if isinstance(e, PlanChanged)}
    expected = {
        (seq, number): changes.get((seq, number))
        for seq, event in events.items()
        if isinstance(event, PlanMade)
        for number, _ in enumerate(event.items)
    }
    assert {(row["plan"], row["item"]): row["status"] for row in rows} == {
        key: change.change if change else "planned" for key, change in expected.items()
    }


def test_each_view_of_the_fleet_has_the_rows_of_each_agent() -> None:
    """For 100 random agents, each view of memories has exactly the rows of the agents' projections."""
    chance = random.Random(7)
    logs_of_all = {f"agent {number}": log_of(f"agent {number}", chance) for number in range(100)}
    records = [
        record for name, log in logs_of_all.items() for record in (*log, *approvals_of(name, len(log) + 1, chance))
    ]
    erased = draft(RecordsErased(from_seq=1, to_seq=2), event_id=uuid7(1, 1), recorded_at=1, turn=0, step=0)
    records.append(place(erased, "z", 1, 1))  # as every store with tombstones has it
    table = pa.Table.from_batches([batch_of(records)])
    with FleetViews([], table, limits=QueryLimits(threads=1)) as views, Projections() as engine:
        engine.load(table)
        agents = sorted({record.agent_id for record in records})
        for name in CURRENT_VIEWS:
            theirs = engine.batch(name, [(agent_id, HEAD) for agent_id in agents])
            renamed = dict(reversed(pair.split(" AS ")) for pair in _FLEET_TIMES.get(name, "").split(", ") if pair)
            rows = rows_of(views, name)
            found = [{renamed.get(column, column): value for column, value in row.items()} for row in rows]
            expected = [{column: value for column, value in row.items() if column != "as_of"} for row in theirs]
            assert comparable(found) == comparable(expected), name
            assert found, name


def comparable(rows: Sequence[dict[str, Any]]) -> list[list[tuple[str, str]]]:
    """Return rows in an order of their own, without times that one engine returns as objects."""
    assert not any(isinstance(value, datetime) for row in rows for value in row.values())
    return sorted(sorted((key, repr(value)) for key, value in row.items()) for row in rows)
