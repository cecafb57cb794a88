"""Measure a host's CPU time for a search by words in some hundred messages, for a single agent and among hundreds.

Used by `bench.retrieval`.

All agents of a host share one engine and have talked in turns, so the rows of each are scattered among those of all.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence

from bench.support.harness import Figure, Line, median
from bench.support.script import words
from everlog.events import AgentCreated, Event, MessageSent, Record, UserMessage, draft, place, uuid7
from everlog.projections import HEAD, ArchivalSearch, Projections, RecallSearch

KEYS = ("search_ms", "search_ms_500", "search_new_ms_500", "attached_ms_500")
GOALS = (4, 6, 6, 2)
MESSAGES = 300
NEW = 4
"""Number of messages since an agent's last search: two from the user, two answers."""
AT_ONCE, SEARCHED_AFTER = 4, 50
"""Number of consecutive messages of each agent before the next agent's turn, and before it searches."""
SEARCHES = 40
MESSAGE_WORDS, QUERY_WORDS = 20, 6
START_US, PAUSE_US = 1_700_000_000_000_000, 90_000_000


def _said(agent: str, seqs: range, chance: random.Random) -> Iterator[Record]:
    """Yield an agent's records of these seqs: the first creates it, the others are messages of user and agent in
    turn.
    """
    for seq in seqs:
        time_us = START_US + seq * PAUSE_US
        event: Event = AgentCreated()
        if seq > 1:
            kind = UserMessage if seq % 2 else MessageSent
            event = kind(text=words(chance, MESSAGE_WORDS), name="Sam" if seq % 2 else "", imported=True)
        made = draft(event, event_id=uuid7(time_us, seq), recorded_at=time_us, turn=0, step=0)
        yield place(made, agent, seq, seq)


def _add_talk(engine: Projections, names: Sequence[str], chance: random.Random) -> None:
    """Add messages of all agents, in turns, with a search from time to time."""
    for first in range(1, MESSAGES + 1, AT_ONCE):
        seqs = range(first, first + AT_ONCE)
        engine.add([record for name in names for record in _said(name, seqs, chance)])
        if seqs.stop % SEARCHED_AFTER == 1:
            for name in names:
                RecallSearch(engine, name, HEAD).recall("first", 0, 5)


def _ms(ask: Callable[[str], object], names: Sequence[str], begin: Callable[[str], object] = len) -> float:
    """Return the median CPU milliseconds of `ask` for one agent after the other; the cost of `begin` is not counted."""
    taken = []
    for number in range(SEARCHES):
        name = names[number * 7 % len(names)]
        begin(name)
        begun = time.process_time()
        ask(name)
        taken.append((time.process_time() - begun) * 1000)
    return median(taken)


def _measured(agents: int, chance: random.Random) -> tuple[float, float, float, float]:
    """Return the times of a search, of one after new messages, of the attached sources, and of the simplest query."""
    names = [f"agent-{number:05}" for number in range(agents)]
    heads = dict.fromkeys(names, MESSAGES + 1)
    with Projections() as engine:
        _add_talk(engine, names, chance)

        def search(name: str) -> object:
            return RecallSearch(engine, name, heads[name]).recall(words(chance, QUERY_WORDS), 0, 5)

        def talk(name: str) -> None:
            engine.add(list(_said(name, range(heads[name] + 1, heads[name] + 1 + NEW), chance)))
            heads[name] += NEW

        found = _ms(search, names)
        return (
            found,
            _ms(search, names, talk),
            _ms(lambda name: ArchivalSearch(engine, name, heads[name]).attached(), names),
            _ms(lambda name: engine.query("SELECT max(seq) FROM records WHERE agent_id = ?", [name], [name]), names),
        )


def figures(agents: int) -> list[Figure]:
    """Return the four figures; the last three among `agents` agents. The floor is the simplest query to the same
    engine.
    """
    chance = random.Random(1)
    alone, *_, bare = _measured(1, chance)
    *others, bare_among = _measured(agents, chance)
    values = [(alone, bare), *((value, bare_among) for value in others)]
    return [Figure(key, value, "ms", floor) for key, (value, floor) in zip(KEYS, values, strict=True)]


def lines(found: Sequence[Figure], agents: int) -> list[Line]:
    """Return the rows of the table."""
    return [
        Line(one.key, f"{one.value:.3g} ms", f"{one.floor:.3g}", f"{goal}", f"{MESSAGES} messages, {agents} agents")
        for one, goal in zip(found, GOALS, strict=True)
    ]
