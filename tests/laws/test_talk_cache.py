"""Laws of the cache of talks: it changes no answer, stays in its bounds, and keeps no word that was dropped."""

import pytest
from hypothesis import strategies as st

from everlog.events import RecordsErased, draft, place, uuid7
from everlog.projections import HEAD, Projections, RecallSearch
from everlog.projections.search.talk_cache import TalkCache
from everlog.projections.talk_reads import read_talks
from tests.laws.test_projections import place_again
from tests.laws.test_recall_search import LIVES, lived
from tests.laws.test_resume_from_states import table_of
from tests.support.law import law

NAMES = ("ann", "bob", "cid")


def found(engine: Projections, name: str, as_of: int) -> list[dict]:
    """Return all results of a search for some words of the lives."""
    return list(RecallSearch(engine, name, as_of).recall("sail boat cake", 0, 100))


@law(st.lists(LIVES, min_size=3, max_size=3), st.data(), few=3, many=80)
def test_a_cache_of_any_size_changes_no_answer(lives, data):
    """Searches of several agents as of any moments and incarnations, between additions, find the same with a cache that
    keeps everything, with one that keeps one talk only, and with a new engine.
    """
    records = {
        name: [place_again(one, name) for one in lived(life)[0]] for name, life in zip(NAMES, lives, strict=True)
    }
    head = min(map(len, records.values()))
    cut = data.draw(st.integers(1, head))
    searches = data.draw(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, head)), min_size=1, max_size=8))
    with Projections() as large, Projections() as small:
        small.caches.talks = TalkCache(bytes_max=1)
        for engine in (large, small):
            for name in NAMES:
                engine.add(records[name][:cut])
                found(engine, name, HEAD)
                engine.add(records[name][cut:])
        for name, as_of in [*searches, *((name, HEAD) for name in NAMES)]:
            with Projections() as fresh:
                fresh.add(records[name][: None if as_of == HEAD else as_of])
                assert found(large, name, as_of) == found(small, name, as_of) == found(fresh, name, HEAD)


def spoken(name: str, count: int) -> list:
    """Return the records of an agent that was told `count` different things."""
    said = [("Sam", f"thing number{number} of {name}", 60) for number in range(count)]
    return [place_again(one, name) for one in lived(said)[0]]


def test_the_talk_searched_longest_ago_is_dropped_first():
    """A cache above its bytes drops the talk of the agent that was searched longest ago, and never that of the last."""
    with Projections() as engine:
        for name in NAMES:
            engine.add(spoken(name, 50))
        engine.caches.talks = TalkCache(bytes_max=10**9)
        found(engine, "ann", HEAD)
        engine.caches.talks = TalkCache(bytes_max=5 * engine.caches.talks.used // 2)
        for name in ("ann", "bob", "ann", "cid"):
            found(engine, name, HEAD)
        assert engine.caches.talks.agents == {"ann", "cid"}
        engine.caches.talks = TalkCache(bytes_max=1)
        found(engine, "bob", HEAD)
        assert engine.caches.talks.agents == {"bob"}


def reads(engine: Projections, monkeypatch: pytest.MonkeyPatch) -> list:
    """Return a list that gets the questions of each search that reads rows of the engine."""
    read: list = []
    asked = engine.search_many
    monkeypatch.setattr(engine, "search_many", lambda name, wanted: read.append(wanted) or asked(name, wanted))
    return read


def test_a_search_of_an_agent_in_memory_reads_nothing(monkeypatch):
    """A search of an agent whose records were all added one by one runs no query, as of any seq of its life."""
    with Projections() as engine:
        read = reads(engine, monkeypatch)
        records = spoken("ann", 20)
        for record in records:
            engine.add([record])
        assert len(RecallSearch(engine, "ann", HEAD).talk()) == 20
        assert len(RecallSearch(engine, "ann", 12).talk()) == 11
    assert read == []


def test_the_talk_of_activated_agents_takes_one_query(monkeypatch):
    """Agents that were activated from their logs take one query for all of them, and none when messages were added
    since.
    """
    with Projections() as engine:
        read = reads(engine, monkeypatch)
        records = {name: spoken(name, 20) for name in NAMES}
        engine.load(table_of([one for name in NAMES for one in records[name][:-1]]))
        assert [len(view) for view in read_talks(engine, [(name, HEAD) for name in NAMES])] == [19, 19, 19]
        assert read == [[(name, HEAD) for name in NAMES]]
        for name in NAMES:
            engine.add(records[name][-1:])
        assert [len(view) for view in read_talks(engine, [(name, HEAD) for name in NAMES])] == [20, 20, 20]
        assert len(read) == 1


@pytest.mark.parametrize("drop", ["forget", "erase", "close"])
def test_dropped_words_are_gone_from_the_index(drop):
    """Unloading an agent, a record of an erasure, and closing an engine leave no word of the agent's talk in memory."""
    with Projections() as engine:
        records = spoken("ann", 5)
        engine.add(records)
        found(engine, "ann", HEAD)
        assert engine.caches.talks.used
        if drop == "forget":
            engine.forget("ann")
        elif drop == "erase":
            event = RecordsErased(from_seq=2, to_seq=2)
            time = records[-1].recorded_at + 1
            engine.add([place(draft(event, event_id=uuid7(time, 99), recorded_at=time, turn=0, step=0), "ann", 7, 7)])
        else:
            engine.close()
        assert engine.caches.talks.used == 0
        assert not engine.caches.talks.agents


def test_an_agent_without_messages_keeps_nothing():
    """A search of an agent that was told nothing finds nothing, and leaves no index behind."""
    with Projections() as engine:
        engine.add(spoken("ann", 0))
        assert found(engine, "ann", HEAD) == []
        assert engine.caches.talks.used == 0
