"""The journal of a shard leaves the past of its agents to the log, however long they talk without a rest."""

import asyncio

import pytest

from everlog.actors.hosting import shard_journal
from everlog.events import AnyEvent, Draft, MessageSent, ModelReply, Summary, Usage, UserMessage, draft
from everlog.projections import HEAD, Projections, RecallSearch
from tests.laws.test_projections import BIRTH
from tests.support import virtual_time
from tests.support.agents.journal_world import Desk

AGENTS = tuple(f"agent-{number}" for number in range(4))
LIMIT = 6_000
"""Bytes of the past that the journal of these tests keeps of all agents: that of a few turns."""
TURN_RECORDS = 4


class Talk:
    """Agents whose every turn ends with a summary of all before it."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.heads = dict.fromkeys(AGENTS, 0)
        self._turn = 0

    async def begin(self) -> None:
        """Create the agents, and activate them."""
        for name in AGENTS:
            await self.desk.ticks.enter(name)
            await self._commit(name, [(event, 0) for event in BIRTH])

    async def turns(self, count: int) -> None:
        """Have each agent run so many turns, all agents at the same time."""
        for _ in range(count):
            self._turn += 1
            await asyncio.gather(*(self._commit(name, self._events(self.heads[name])) for name in AGENTS))

    def _events(self, head: int) -> list[tuple[AnyEvent, int]]:
        reply = ModelReply(text="", usage=Usage(9, 1, 10), context_sha256="0", context_bytes=9)
        summary = Summary(text="s", covers_from=1, covers_to=head, kept_from=head + 1, hidden=1, total=2, summarized=1)
        said = f"sail number{self._turn} " + "far and wide " * 20
        return [(UserMessage(text=said), 0), (reply, 1), (MessageSent(text="ahoy", call_id="c"), 1), (summary, 1)]

    async def _commit(self, name: str, events: list[tuple[AnyEvent, int]]) -> None:
        drafts = [self._draft(event, step) for event, step in events]
        await self.desk.ticks.commit(name, self.heads[name], drafts)
        await self.desk.ticks.rows("context_window", name, HEAD)
        self.heads[name] += len(drafts)

    def _draft(self, event: AnyEvent, step: int) -> Draft:
        now = self.desk.clock.now()
        return draft(event, event_id=self.desk.ids.new(now), recorded_at=now, turn=self._turn, step=step)

    def rows(self) -> int:
        """Return the number of rows in the engine, without a question of it, which would read the log."""
        return int(self.desk.ticks.projections._hot.rows("SELECT count(*) AS n FROM records", ())[0]["n"])


def talked(turns: int) -> int:
    """Return the largest number of rows that the engine had after any of so many turns of each agent."""

    async def work() -> int:
        talk = Talk()
        await talk.begin()
        rows = 0
        for _ in range(turns):
            await talk.turns(1)
            rows = max(rows, talk.rows())
        await talk.desk.ticks.close()
        return rows

    return virtual_time.run(work)


def test_eight_times_the_messages_take_no_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """During 40 turns of agents that never rest, no more rows are in memory than during 5; without the limit, those of
    all turns are.
    """
    without = talked(10)
    monkeypatch.setattr(shard_journal, "HISTORY_BYTES_MAX", LIMIT)
    assert without >= 10 * TURN_RECORDS * len(AGENTS)
    few, many = talked(5), talked(40)
    assert many <= 1.1 * few < without / 2


def test_the_past_of_a_shrunk_agent_is_read_from_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal answers questions about the past as one that has all rows in memory, and finds the same words."""

    async def work() -> list[object]:
        talk = Talk()
        await talk.begin()
        await talk.turns(12)
        ticks, found = talk.desk.ticks, []
        for name in AGENTS:
            for view in ("recall_memory", "summaries", "turns", "model_calls"):
                found.append([{**row, "event_id": ""} for row in await ticks.rows(view, name, HEAD)])
            found += [[*await ticks.rows("context_window", name, 30)], (await ticks.talk(name, 40)).seq.tolist()]
            found.append(list(RecallSearch(ticks.projections, name, HEAD).recall("number3", 0, 9)))
        await ticks.close()
        return found

    kept = virtual_time.run(work)
    monkeypatch.setattr(shard_journal, "HISTORY_BYTES_MAX", LIMIT)
    assert virtual_time.run(work) == kept


def test_a_long_past_that_was_read_last_does_not_make_others_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent whose past takes more than the limit keeps it after a question, and the others are shrunk as seldom as
    without it.
    """
    monkeypatch.setattr(shard_journal, "HISTORY_BYTES_MAX", LIMIT)
    shrunk: list[int] = []
    shrink = Projections.shrink
    monkeypatch.setattr(Projections, "shrink", lambda own, past: (shrunk.append(len(past)), shrink(own, past))[1])

    def shrinks(*, is_read: bool) -> int:
        async def work() -> int:
            talk = Talk()
            await talk.begin()
            await talk.turns(20)
            if is_read:
                await talk.desk.ticks.rows("recall_memory", AGENTS[0], HEAD)
            shrunk.clear()
            await talk.turns(10)
            await talk.desk.ticks.close()
            return len(shrunk)

        return virtual_time.run(work)

    assert 0 < shrinks(is_read=True) <= shrinks(is_read=False)
