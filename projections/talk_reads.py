"""Read what agents have said and heard, for many searches at once.

Used by `recall_search` for one search, and by the journal of a shard for all searches that wait in a tick. The engine's
cache answers without a query, unless an agent was activated since. The talk of all such agents takes one query, and one
reading of their log for those that continue from states: the engine gets no rows for that.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from everlog.projections.engine import Projections
from everlog.projections.hot.rows import Wanted
from everlog.projections.projection_constants import HEAD
from everlog.projections.search.talk_cache import SAID_BY, AgentTalk, talk_of
from everlog.projections.search.utterance import Utterance
from everlog.store.base.arrow_schema import records_of
from everlog.store.base.arrow_values import text_array
from everlog.store.base.lazy_pyarrow import pc

if TYPE_CHECKING:
    from everlog.projections.search.talk_index import TalkView

_FACTS = itemgetter(*Utterance._fields)
_KINDS = [*SAID_BY, "agent_created"]


def read_talks(projections: Projections, wanted: Sequence[Wanted]) -> "list[TalkView]":
    """Return for each (agent, seq) what the agent had said and heard by the seq, inclusive, in its life at that seq."""
    talks = projections.caches.talks
    unknown = {agent_id for agent_id, *_ in wanted if not talks.knows(agent_id)}
    filled = _read_now(projections, unknown)
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


def _read_now(projections: Projections, agents: Collection[str]) -> dict[str, AgentTalk]:
    """Return the talk of each of these agents up to its newest record in the engine."""
    resumed = projections.resumed.among(agents)
    held = sorted(set(agents).difference(resumed))
    found = dict(_read(projections, [(agent_id, HEAD) for agent_id in held]))
    heads = projections.heads(resumed)
    for table in projections.resumed.logged(heads):
        spoken = records_of(table.filter(pc.is_in(table.column("type"), text_array(_KINDS))))
        said = [record for record in spoken if record.seq <= heads[record.agent_id]]
        for agent_id, records in groupby(sorted(said, key=attrgetter("agent_id")), key=attrgetter("agent_id")):
            found[agent_id] = talk_of(records)
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
