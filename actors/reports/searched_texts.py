"""Read what a search in many agents looks at, in one pass over the logs: what each said, stored and derived.

Used by `fleet_search`. Texts come agent by agent, so that memory holds those of a few agents at a time. An edit must
keep that an agent's texts are those that its own search reads.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from everlog.actors.memory.fleet_sql import views_of
from everlog.actors.ports.effects import Place
from everlog.events import Record
from everlog.projections.archival_memory import NO_END, AttachedSources
from everlog.projections.fleet_views import FleetViews
from everlog.projections.hot.rows import Row
from everlog.projections.search.memory_cache import RECORDS_MAX, KnownMemories
from everlog.projections.search.utterance import Utterance
from everlog.projections.sql_catalogue import fleet_view, sql
from everlog.store import Store

NAMED_MAX = 500
"""Number of agents up to which a query names them; of more, all texts are read and those of others left out."""
CHUNK_AGENTS = 256
CHUNK_TEXTS = 4096
"""Agents, and texts, that are handed on together at most; one agent may have more texts."""
_COLUMNS = ("agent_id", "part", "seq", "number", "kind", "time", "name", "text", "ref", "more")
_SOURCES = "SELECT agent_id, source, as_of_time FROM ({sources})"


class AgentFacts(msgspec.Struct, frozen=True):
    """Places in which an agent has something that a search can find, at the moment of the search."""

    head: int
    archive: bool
    documents: bool
    derived: bool
    indexed: bool
    """True if its memories are found through the index of the archive only."""
    zone: str

    def places(self, wanted: Sequence[Place]) -> list[Place]:
        """Return those of `wanted`, besides messages, in which something can be found."""
        filled = {"archive": self.archive, "documents": self.documents, "derived": self.derived}
        return [place for place in wanted if filled.get(place)]


class AgentTexts(msgspec.Struct):
    """Texts of one agent that a search looks at."""

    name: str
    facts: AgentFacts
    attached: AttachedSources
    said: list[Utterance] = []
    stored: list[Record] = []
    """Records of its memories."""
    kept: list[Row] = []
    """Memories as they are at the moment."""
    derived: list[Row] = []

    def known(self) -> KnownMemories | None:
        """Return its memories for a search without the index; None if the index has to be asked."""
        if self.facts.indexed:
            return None
        known = KnownMemories(since=1)
        for record in self.stored:
            known.add(record)
        return known


@contextmanager
def searched_texts(
    store: Store,
    until: int | None,
    *,
    opened: Callable[[Callable[[], None]], None] = lambda _: None,
    skip_damaged: bool = False,
) -> "Iterator[SearchedTexts]":
    """Open the texts of all agents of a store as of a time while the block runs. `opened`, `skip_damaged`: see
    `fleet_views`. Raises CorruptLog, StoreError.
    """
    with views_of(store, until=until, opened=opened, skip_damaged=skip_damaged) as (views, left_out):
        yield SearchedTexts(store, views, frozenset(one.partition for one in left_out), until)


class SearchedTexts:
    """Texts of all agents, as of the position of open views. For one thread at a time."""

    def __init__(self, store: Store, views: FleetViews, damaged: Collection[str], until: int | None) -> None:
        """Read the facts. `views`: of the store, without the partitions `damaged`; `until`: their time, None: now."""
        self._store = store
        self._views = views
        self._damaged = frozenset(damaged)
        self._until = until
        rows = views.table(sql("fleet/search_facts").format(stored_max=RECORDS_MAX)).to_pylist()
        self.facts: Mapping[str, AgentFacts] = {row.pop("agent_id"): AgentFacts(**row) for row in rows}
        """Facts of each agent that has records."""
        self._attached = self._sources()

    def _sources(self) -> dict[str, AttachedSources]:
        if not any(facts.documents for facts in self.facts.values()):
            return {}
        found: dict[str, list[str]] = {}
        times: dict[str, int] = {}
        for row in self._views.table(_SOURCES.format(sources=fleet_view("sources"))).to_pylist():
            if row["source"]:
                found.setdefault(row["agent_id"], []).append(row["source"])
            else:
                times[row["agent_id"]] = row["as_of_time"]
        return {
            name: AttachedSources(sorted(found.get(name, ())), NO_END if self._until is None else time)
            for name, time in times.items()
        }

    def lost(self, names: Sequence[str]) -> set[str]:
        """Return those of these agents of which the views have no record, or not all."""
        return {name for name in names if name not in self.facts or (self._damaged and self._is_damaged(name))}

    def _is_damaged(self, name: str) -> bool:
        above: tuple[str, int] | None = (name, 0)
        while above is not None:
            if not self._damaged.isdisjoint(self._store.route(above[0])):
                return True
            above = self._store.parent_of(above[0])
        return False

    def chunks(self, names: Iterable[str], places: Sequence[Place]) -> Iterator[list[AgentTexts]]:
        """Yield the agents of these names that have facts, some at a time, in no order. `places`: those searched."""
        wanted = {name for name in names if name in self.facts}
        some: list[AgentTexts] = []
        count = 0
        for agent in self._agents(wanted, places):
            size = len(agent.said) + len(agent.kept) + len(agent.derived)
            if some and (len(some) >= CHUNK_AGENTS or count + size > CHUNK_TEXTS):
                yield some
                some, count = [], 0
            some.append(agent)
            count += size
        if some:
            yield some

    def _agents(self, wanted: set[str], places: Sequence[Place]) -> Iterator[AgentTexts]:
        left = set(wanted)
        for name, rows in groupby(self._rows(wanted, places), key=itemgetter(0)):
            if name in left:
                left.remove(name)
                agent = self._empty(name)
                for row in rows:
                    _take(agent, row)
                yield agent
        for name in sorted(left):
            yield self._empty(name)

    def _empty(self, name: str) -> AgentTexts:
        return AgentTexts(name, self.facts[name], self._attached.get(name, AttachedSources((), NO_END)))

    def _rows(self, wanted: set[str], places: Sequence[Place]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the texts, those of an agent together and in order."""
        facts = [self.facts[name] for name in wanted]
        queries = [sql("fleet/search_said")]
        if "archive" in places and any(one.archive for one in facts):
            queries.append(sql("fleet/search_stored").format(archival_memory=fleet_view("archival_memory")))
        if "derived" in places and any(one.derived for one in facts):
            queries.append(sql("fleet/search_derived").format(search_derived=fleet_view("search_derived")))
        named = "', '".join(name.replace("'", "''") for name in sorted(wanted))
        among = f"WHERE agent_id IN ('{named}')" if len(wanted) <= NAMED_MAX else ""
        query = f"SELECT * FROM ({' UNION ALL '.join(queries)}) {among} ORDER BY agent_id, part, seq, number"
        for batch in self._views.select(query)[1]:
            yield from zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True)


def _take(agent: AgentTexts, row: tuple[Any, ...]) -> None:
    """Add a row to the texts of its agent."""
    _, part, seq, number, kind, time, name, text, ref, more = row
    if part == "said":
        agent.said.append(Utterance(seq, time, kind, name, text, ref))
    elif part == "stored":
        record = Record(
            agent_id=agent.name, seq=seq, commit=0, event_id=ref, recorded_at=time, said_at=None, type=kind, turn=0,
            step=0, cause=None, version=1, text=text, payload=more,
        )  # fmt: skip
        agent.stored.append(record)
    elif part == "kept":
        agent.kept.append({"seq": seq, "time": time, "text": text, "memory_id": ref, **msgspec.json.decode(more)})
    else:
        found = {"seq": seq, "part": number, "kind": kind, "time": time, "name": name, "text": text}
        agent.derived.append({**found, **msgspec.json.decode(more)})
