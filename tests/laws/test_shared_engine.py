"""Laws of an engine for many agents: its rows of each agent equal those of an engine for that agent alone."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from everlog.events import CorruptLog, Record
from everlog.projections import DERIVER, HEAD, PROJECTIONS, Projections, RecallSearch, activate_many, resumed_agents
from everlog.projections.projection_constants import FEW_AGENTS, MANY_AGENTS
from everlog.projections.search.talk_index import TalkView
from everlog.projections.talk_reads import read_talks
from everlog.store import SCHEMA, State, States, batch_of
from tests.laws.test_projections import BIRTH, STREAMS, loaded, many, place_again, small_life
from tests.support import engines, event_strategies
from tests.support.law import law
from tests.support.seeds import few_and_all, pick

LIVES = event_strategies.lives(BIRTH)
NAMES = ("ann", "bob", "o'hara")
PRESENT = ("context_window", "configurations", "standing", "open_turns")
PAST = ("agents", "recall_memory")


def table_of(records: list[Record]) -> pa.Table:
    return pa.Table.from_batches([batch_of(records)] if records else [], SCHEMA)


class Shelf:
    """A partition of agents with equal records; each agent may have a state of its first records."""

    partition = "shelf"

    def __init__(self, records: list[Record], cuts: dict[str, int]) -> None:
        self.records = list(records)
        self._cuts = cuts
        self.whole_reads = 0
        self.broken = ""

    def of(self, agent_id: str) -> list[Record]:
        return [place_again(record, agent_id) for record in self.records]

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        cut = self._cuts[agent_id]
        if not cut or (as_of is not None and cut > as_of):
            return None
        return State(cut, DERIVER(None, table_of(self.of(agent_id)[:cut])))

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        assert agent_id is not None
        if agent_id == self.broken:
            raise CorruptLog("damaged")
        self.whole_reads += from_seq == 1
        return table_of(self.of(agent_id)[from_seq - 1 : to_seq])

    def states(self, maker: str | None, agents: Sequence[str]) -> Iterator[States]:
        found = {name: None if maker is None else self.state(name, maker) for name in agents}
        known = {name: state for name, state in found.items() if state is not None}
        rows = pa.concat_tables([state.rows for state in known.values()]) if known else None
        after = [self.table(name, known[name].seq + 1 if name in known else 1) for name in agents]
        yield States(agents, rows, pa.concat_tables(after))


def told(engine: Projections, agent_id: str) -> dict[str, list[str]]:
    """Return an engine's tables of an agent: the present first, because an earlier moment makes the engine read all
    records.
    """
    return {name: sorted(map(repr, engine.rows(name, agent_id))) for name in (*PRESENT, *PAST)}


@law(STREAMS | LIVES, st.data(), few=2, many=32)
def test_agents_activated_together_are_as_if_each_were_alone(records: list[Record], data: st.DataObject) -> None:
    """Activated from states or from nothing, extended, unloaded and activated again, in an engine that is compacted
    meanwhile, each agent's projections equal those of all its records.
    """
    cuts = {name: data.draw(st.integers(0, len(records)), label=name) for name in NAMES}
    middle = data.draw(st.integers(max(cuts.values()), len(records)))
    shelf = Shelf(records[:middle], cuts)
    with Projections() as engine:
        activate_many(engine, shelf, NAMES)  # type: ignore[arg-type]
        engine.compact()
        forgotten = data.draw(st.lists(st.sampled_from(NAMES), unique=True))
        engine.forget_many(forgotten)
        assert not any(engine.rows("standing", name) for name in forgotten)
        activate_many(engine, shelf, forgotten)  # type: ignore[arg-type]
        for record in records[middle:]:
            shelf.records.append(record)
            engine.add([place_again(record, name) for name in NAMES])
        engine.compact()
        for name in NAMES:
            with loaded([place_again(record, name) for record in records]) as alone:
                assert told(engine, name) == told(alone, name), name


@pytest.mark.parametrize("count", few_and_all(6, part="laws"))
def test_each_answer_of_many_equals_the_answer_to_one_agent(count: int | None) -> None:
    """The answers are in the order of the request, with duplicates and unknown names, few or many: rows, columns and
    slices agree.
    """
    engine, wanted = many(MANY_AGENTS)
    for asked in ([*wanted[: FEW_AGENTS + 2], wanted[0], ("nobody", HEAD)], wanted[:3]):
        for name in pick(PROJECTIONS, count, label="answers of many"):
            answers = engine.answers(name, asked)
            assert len(answers) == len(asked)
            for (agent_id, as_of), rows in zip(asked, answers, strict=True):
                alone = engine.batch(name, [(agent_id, as_of)])
                assert sorted(map(repr, rows)) == sorted(map(repr, alone)), name
                assert [rows[n] for n in range(len(rows))] == list(rows) == list(rows[:])
    context = engine.answers("context_window", wanted)[1]
    assert list(context.values("seq", "type")) == [(row["seq"], row["type"]) for row in context]
    assert [row["seq"] for row in context] == sorted(row["seq"] for row in context)
    engine.close()


def test_a_search_of_one_agent_reads_no_history_of_another() -> None:
    """A search of one agent that was resumed from a state makes the engine read that agent's records, and no other
    agent's.
    """
    life = small_life()
    shelf = Shelf(life, dict.fromkeys(NAMES, len(life)))
    with Projections() as engine:
        activate_many(engine, shelf, NAMES)  # type: ignore[arg-type]
        assert shelf.whole_reads == 0
        assert [row["text"] for row in RecallSearch(engine, "bob", HEAD).recall("hello", 0, 2)] == [
            "hello 1",
            "hello 2",
        ]
        assert shelf.whole_reads == 1


@law(STREAMS | LIVES, st.data(), few=3, many=60)
def test_the_talk_of_resumed_agents_is_read_without_their_rows(records: list[Record], data: st.DataObject) -> None:
    """The talk of agents that continue from states, of different lengths, is that of an engine with all their records,
    and stays so with records that follow. The engine gets no rows, and the log may have newer records than it.
    """
    cuts = {name: data.draw(st.integers(0, len(records))) for name in NAMES}
    seen = data.draw(st.integers(max(cuts.values()), len(records)))
    shelf = Shelf(records[:seen], cuts)
    wanted = [(name, HEAD) for name in NAMES]
    with Projections() as engine, Projections() as whole:
        activate_many(engine, shelf, NAMES)  # type: ignore[arg-type]
        shelf.records = list(records)
        whole.load(table_of([place_again(record, name) for name in NAMES for record in records[:seen]]))
        rows = engine.query("SELECT count(*) AS n FROM records", agents=())
        assert [words(view) for view in read_talks(engine, wanted)] == [words(v) for v in read_talks(whole, wanted)]
        assert engine.query("SELECT count(*) AS n FROM records", agents=()) == rows
        for record in records[seen:]:
            for one in (engine, whole):
                one.add([place_again(record, name) for name in NAMES])
        assert [words(view) for view in read_talks(engine, wanted)] == [words(v) for v in read_talks(whole, wanted)]


def words(view: TalkView) -> list[tuple[object, ...]]:
    """Return what a view shows of each message."""
    columns = (view.seq, view.time, view.role, view.chars, view.linked, [view.names[n] for n in view.speaker])
    return list(zip(*(list(column) for column in columns), strict=True))


def test_logs_are_read_together_and_only_so_much_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of agents that search together are read together, up to a number of records; a log that is longer is
    read alone.
    """
    life = small_life()
    shelf = Shelf(life, dict.fromkeys(NAMES, len(life)))
    read: list[Sequence[str]] = []
    states = shelf.states
    with Projections() as engine:
        activate_many(engine, shelf, NAMES)  # type: ignore[arg-type]
        monkeypatch.setattr(shelf, "states", lambda maker, some: read.append(list(some)) or states(maker, some))
        for room, batches in ((2 * len(life), [["ann", "bob"], ["o'hara"]]), (1, [["ann"], ["bob"], ["o'hara"]])):
            monkeypatch.setattr(resumed_agents, "LOGGED_RECORDS_AT_ONCE", room)
            assert len(list(engine.resumed.logged(engine.heads(NAMES)))) == len(batches)
            assert read == batches
            read.clear()


def test_unloading_an_agent_drops_its_talk() -> None:
    """An agent that is unloaded and activated again finds its records once; the other agents still find theirs. Nothing
    of the talk of an unloaded agent stays in memory.
    """
    life = small_life()
    with Projections() as engine:
        engine.load(table_of([place_again(record, name) for name in NAMES for record in life]))
        found = {name: RecallSearch(engine, name, HEAD).recall("hello", 0, 5) for name in NAMES}
        used = engine.caches.talks.used
        engine.forget("bob")
        assert 0 < engine.caches.talks.used < used
        engine.load(table_of([place_again(record, "bob") for record in life]))
        assert {name: RecallSearch(engine, name, HEAD).recall("hello", 0, 5) for name in NAMES} == found
        engine.forget_many(NAMES)
        assert engine.caches.talks.used == 0


def test_a_log_that_cannot_be_read_leaves_the_engine_as_it_was() -> None:
    """A damaged log among those to activate raises an error, and no agent is partly loaded."""
    life = small_life()
    shelf = Shelf(life, dict.fromkeys(NAMES, 0))
    shelf.broken = "bob"
    with Projections() as engine:
        with pytest.raises(CorruptLog):
            activate_many(engine, shelf, NAMES)  # type: ignore[arg-type]
        assert not engine.query("SELECT 1 FROM records")


def test_memory_follows_what_is_in_the_engine() -> None:
    """After thousands of activations and unloads the engine is no larger than after the first ones, and an agent takes
    less than 15 kB.
    """
    life = small_life()
    names = [f"agent-{number}" for number in range(300)]
    records = table_of([place_again(record, name) for name in names for record in life])
    with engines.own(), Projections() as engine:
        used = []
        for _ in range(12):
            engine.load(records)
            used.append(bytes_of(engine))
            engine.forget_many(names)
        engine.compact()
        empty = bytes_of(engine)
        engine.load(records)
        engine.compact()
        full = bytes_of(engine)
    assert max(used[4:]) <= max(used[:4])
    assert empty < used[0] / 10
    assert full - empty < 15 * 1024 * len(names)


def test_rows_that_only_pass_through_an_engine_take_no_memory() -> None:
    """An engine that has been asked for states again and again is no larger than after the first time. No table of it
    is temporary: DuckDB never frees what is deleted from such a table.
    """
    names = [f"agent-{number}" for number in range(60)]
    with engines.own(), Projections() as engine:
        engine.load(table_of([place_again(record, name) for name in names for record in small_life()]))
        used = []
        for _ in range(5):
            assert engine.states(names).num_rows
            engine.compact()
            used.append(bytes_of(engine))
        assert not engine.query("SELECT table_name FROM duckdb_tables() WHERE temporary")
    assert max(used) == used[0]


def bytes_of(engine: Projections) -> int:
    """Return the size of the rows that DuckDB holds."""
    return int(engine.query("SELECT sum(memory_usage_bytes)::BIGINT AS n FROM duckdb_memory()")[0]["n"])
