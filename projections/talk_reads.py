"""Read what agents have said and heard, for many searches at once.

Used by `recall_search` for one search, and by the journal of a shard for all searches that wait in a tick. The engine's
cache answers without a query, unless an agent was activated since: the talk of all such agents takes one query.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from everlog.projections.engine import Projections
from everlog.projections.rows import Wanted
from everlog.projections.search.talk_cache import AgentTalk
from everlog.projections.search.utterance import Utterance
from everlog.projections.sql_catalogue import HEAD

if TYPE_CHECKING:
    from everlog.projections.search.talk_index import TalkView

_FACTS = itemgetter(*Utterance._fields)


def read_talks(projections: Projections, wanted: Sequence[Wanted]) -> "list[TalkView]":
    """Return for each (agent, seq) what the agent had said and heard by the seq, inclusive, in its life at that seq."""
    talks = projections.caches.talks
    unknown = {agent_id for agent_id, *_ in wanted if not talks.knows(agent_id)}
    filled = dict(_read(projections, [(agent_id, HEAD) for agent_id in sorted(unknown)]))
    for agent_id, talk in filled.items():
        talks.keep(agent_id, talk)
    found = []
    for agent_id, said_by, *_ in wanted:
        view, new = talks.view(agent_id, said_by), filled.get(agent_id)
        if view is None and new is not None and said_by >= new.since:
            view = new.view(said_by)  # there was no room to keep it
        if view is None:  # of an earlier life: read, and not kept
            view = dict(_read(projections, [(agent_id, said_by)]))[agent_id].view(said_by)
        found.append(view)
    return found


def _read(projections: Projections, wanted: Sequence[tuple[str, int]]) -> Iterator[tuple[str, AgentTalk]]:
    """Yield the talk of each of these agents, each named once, in its life at a seq."""
    if not wanted:
        return
    rows = projections.search_many("search_talk", wanted)
    mine = {agent_id: list(some) for agent_id, some in groupby(rows, key=itemgetter("agent_id"))}
    for agent_id, _ in wanted:
        yield agent_id, _talk(mine.get(agent_id, ()))


def _talk(rows: Sequence[dict[str, Any]]) -> AgentTalk:
    since = max((row["seq"] for row in rows if row["is_birth"]), default=0)
    return AgentTalk(since, (Utterance(*_FACTS(row)) for row in rows if not row["is_birth"]))
