"""A background agent in virtual time: it is told each word of the agent that it watches once, in order."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import ConfigureAgent, DeleteAgent, ResumeTurns
from everlog.actors.agent.local_journal import LocalJournal
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.agent_ref import AgentRef
from everlog.actors.hosting.pending_work import pending_work
from everlog.actors.mail import background
from everlog.actors.mail.mail_functions import NAMES, TEXT_CHARS_MAX
from everlog.events import AgentMessageSent, BadInput, Draft, EverlogError, MessageSent, UserMessage, event_of
from everlog.projections import DERIVER
from everlog.store import Commit, FileStore
from tests.support import virtual_time
from tests.support.agents.virtual_time_runtime import open_ref
from tests.support.agents.writing_agents import Town
from tests.support.seeds import split


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run `main` in virtual time."""
    return virtual_time.run(main)


def with_background(by: str = "eve", *, turns: int = 0, idle: int = 0) -> Settings:
    """Return the settings of an agent with another one in its background."""
    return Settings(optional_functions=NAMES, background=by, background_turns=turns, background_idle=idle)


async def watched(town: Town, *, turns: int = 0, idle: int = 0, name: str = "sam", by: str = "eve") -> AgentRef:
    """Open an agent with another one in its background, which is opened before it."""
    await town.person(by)
    ref = town.ref(name)
    await open_ref(ref, with_background(by.rpartition("~")[2], turns=turns, idle=idle))
    return ref


def told(town: Town, by: str = "eve", of: str = "sam") -> list[str]:
    """Return the lines that a background agent was told of an agent, without the line before them."""
    return [line for name, text in town.heard(by) if name == of for line in text.split("\n")[1:]]


def said(town: Town, name: str = "sam", *, after: int = 0) -> list[str]:
    """Return the lines that the background agent of an agent should be told: all that was said."""
    lines = []
    for record in town.log(name):
        event = event_of(record)
        if record.seq > after and isinstance(event, UserMessage):
            lines.append(f"[{record.seq}] {event.agent or 'user'}: {event.text}")
        elif record.seq > after and isinstance(event, MessageSent):
            lines.append(f"[{record.seq}] {name}: {event.text}")
    return lines


def status(town: Town, name: str = "sam") -> dict[str, Any]:
    """Return the row of `background` of an agent."""
    view = LocalSystem(town.store).view(name)
    try:
        return dict(view.rows("background")[0])
    finally:
        view.close()


def test_it_is_told_after_every_n_turns() -> None:
    """After the second turn it gets the words of both, and after the fourth those of the other two."""

    async def main() -> None:
        town = Town()
        sam = await watched(town, turns=2)
        for number in range(5):
            await sam.send(f"say (yes {number})")
            await asyncio.sleep(10)
        assert len(town.heard("eve")) == 2
        assert told(town) == said(town)[:8]
        assert told(town)[0].endswith("user: say (yes 0)")
        assert told(town)[-1].endswith("sam: yes 3")
        assert (status(town)["turns"], status(town)["messages"], status(town)["due_us"]) == (1, 2, None)
        await town.leave()

    run(main)


def test_it_is_told_when_the_agent_is_idle() -> None:
    """Ten minutes after the last turn it gets all words at once, and nothing while nothing new is said."""

    async def main() -> None:
        town = Town()
        sam = await watched(town, idle=10)
        for number in range(3):
            await sam.send(f"say (yes {number})")
            await asyncio.sleep(500)
        assert town.heard("eve") == []
        await asyncio.sleep(110)
        assert len(town.heard("eve")) == 1
        assert told(town) == said(town)
        await asyncio.sleep(10_000)
        assert len(town.heard("eve")) == 1
        await town.leave()

    run(main)


def test_a_turn_that_runs_is_told_when_it_has_ended() -> None:
    """An agent at work is not idle, and what was said in a turn that runs is not told in two pieces."""

    async def main() -> None:
        town = Town()
        sam = await watched(town, turns=1, idle=10)
        await sam.send("say (first)")
        town.pauses["sam"] = 2000
        work = asyncio.ensure_future(sam.send("say (second)"))
        await asyncio.sleep(1900)
        assert told(town) == said(town)[:2]
        await work
        await asyncio.sleep(10)
        assert told(town) == said(town)
        await town.leave()

    run(main)


class Deaths:
    """Processes that end after a number of commits: the log takes no more until another one begins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: Sequence[int]) -> None:
        self.left, self.count, self.dead = list(after), 0, asyncio.Event()
        commit = LocalJournal.commit

        async def counting(journal: LocalJournal, agent_id: str, head: int, drafts: Sequence[Draft]) -> Commit:
            if self.dead.is_set():
                await asyncio.Event().wait()  # nothing that this process does is durable any more
            made = await commit(journal, agent_id, head, drafts)
            self.count += 1
            if self.left and self.count == self.left[0]:
                self.left.pop(0)
                self.dead.set()
                await asyncio.Event().wait()
            return made

        monkeypatch.setattr(LocalJournal, "commit", counting)


async def play(town: Town, deaths: Deaths, turns: int) -> Town:
    """Have sam take so many turns, in as many processes as it needs. Return the last one, at rest."""
    while True:
        deaths.dead.clear()

        async def live(town: Town) -> None:
            sam = await watched(town, turns=2, idle=10)
            for name in ("sam", "eve"):
                await town.ref(name)._sender.perform(ResumeTurns)
            for number in range(turns):
                if not any(record.text == f"say (yes {number})" for record in town.log("sam")):
                    await sam.send(f"say (yes {number})")
                await asyncio.sleep(20)
            await asyncio.sleep(5000)

        life = asyncio.create_task(live(town))
        death = asyncio.create_task(deaths.dead.wait())
        await asyncio.wait([life, death], return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if not deaths.dead.is_set():
            await life
            return town
        life.cancel()
        await asyncio.wait([life])
        await town.leave()
        town = Town(town.store)


COMMITS = 30
"""Commits of five turns, about; a death after a later one does not happen."""


@pytest.mark.parametrize("after", split(range(3, COMMITS), 4, label="deaths of the background", part="laws"))
def test_each_word_is_told_once_wherever_a_process_ends(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the log cut after any commit, and cut again three commits later, the next process tells what was not told,
    in order: all words of all turns, each once.
    """

    async def main() -> None:
        deaths = Deaths(monkeypatch, [after, after + 3])
        town = await play(Town(), deaths, 5)
        assert len([line for line in said(town) if "user:" in line]) == 5
        assert told(town) == said(town)
        assert town.states("sam") == ["delivered"] * 3
        await town.leave()

    run(main)


def test_a_fork_tells_what_was_said_after_it_only() -> None:
    """The parent tells all that it had said before the fork; the fork tells its own words."""

    async def main() -> None:
        town = Town()
        sam = await watched(town, idle=10)
        await sam.send("say (before)")
        LocalSystem(town.store).fork("sam", "tim")
        cut = town.log("tim")[-1].seq
        tim = town.ref("tim")
        await open_ref(tim, Settings())
        await asyncio.sleep(700)
        assert told(town, of="tim") == []
        await tim.send("say (after)")
        await asyncio.sleep(700)
        assert told(town, of="tim") == said(town, "tim", after=cut)
        assert told(town) == said(town)
        await town.leave()

    run(main)


def test_what_the_background_agent_says_does_not_wake_it() -> None:
    """It writes to the agent that it watches, and that asks a third one: neither turn is news to it alone, and both are
    told with the next words of a person.
    """

    async def main() -> None:
        town = Town()
        sam = await watched(town, turns=1, idle=10)
        await town.person("bob")
        eve = town.ref("eve")
        await eve.send("tell sam (ask bob (say (at 8)))")
        await asyncio.sleep(5000)
        assert [name for name, _ in town.heard("sam")] == ["eve", "bob"]
        assert town.heard("eve") == []
        town.silent = ("eve",)
        await sam.send("say (yes)")
        await asyncio.sleep(5000)
        assert len(town.heard("eve")) == 1
        assert told(town) == said(town)
        await town.leave()

    run(main)


def test_watchers_in_a_row_end() -> None:
    """An agent in the background may have one in its own: what a person says once is passed on once, to the last."""

    async def main() -> None:
        town = Town()
        await watched(town, turns=1, idle=1, name="eve", by="bob")
        sam = town.ref("sam")
        await open_ref(sam, with_background("eve", turns=1, idle=1))
        await sam.send("say (yes)")
        await asyncio.sleep(5000)
        assert (len(town.heard("eve")), len(town.heard("bob"))) == (1, 1)
        await town.leave()

    run(main)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sam", "An agent cannot work in its own background."),
        ("eva", "There is no agent 'eva'. Did you mean 'eve'? Nothing was changed."),
        ("old", "The agent 'old' was deleted."),
        ("acme~kim", "no name of an agent that you can write to"),
        ("block:notes", "reserved for shared memory blocks"),
        ("bob", "background agents: sam would tell bob, bob would tell eve, and eve would tell sam. Nothing"),
    ],
)
def test_a_background_agent_that_cannot_be_is_refused(name: str, words: str) -> None:
    """The settings are refused in words, and the agent stays as it was."""

    async def main() -> None:
        town = Town()
        sam = await town.person("sam")
        await town.person("acme~kim")
        old = await town.person("old")
        await old._sender.perform(DeleteAgent)
        await open_ref(town.ref("eve"), with_background("sam", turns=1))
        await open_ref(town.ref("bob"), with_background("eve", turns=1))
        head = town.log("sam")[-1].seq
        with pytest.raises(EverlogError) as refused:
            await sam._sender.perform(ConfigureAgent, settings=with_background(name, turns=1))
        assert words in str(refused.value)
        assert refused.value.args and town.log("sam")[-1].seq == head
        await town.leave()

    run(main)


def test_a_background_agent_without_a_time_is_refused() -> None:
    """An agent that would never be told anything is a mistake, and the words say which settings it needs."""

    async def main() -> None:
        town = Town()
        await town.person("eve")
        with pytest.raises(BadInput, match="would never be told anything: set `background_turns`, `background_idle`"):
            await open_ref(town.ref("sam"), with_background())
        await town.leave()

    run(main)


def test_agents_of_a_tenant_have_background_agents_of_the_tenant() -> None:
    """The name is the one that the tenant says, also where another tenant has an agent of that name."""

    async def main() -> None:
        town = Town()
        await town.person("eve")
        sam = await watched(town, turns=1, name="acme~sam", by="acme~eve")
        await sam.send("say (yes)")
        await asyncio.sleep(10)
        assert [line.partition(" ")[2] for line in told(town, "acme~eve", "acme~sam")] == [
            "user: say (yes)",
            "sam: yes",
        ]
        assert town.heard("eve") == []
        await town.leave()

    run(main)


def test_a_background_agent_that_is_deleted_later_stops_nothing() -> None:
    """Its agent answers as before and may be another one's background agent; no turn is opened for words that cannot be
    told, and a note says so.
    """

    async def main() -> None:
        town = Town()
        sam = await watched(town, turns=1)
        await town.ref("eve")._sender.perform(DeleteAgent)
        await open_ref(town.ref("bob"), with_background("sam", turns=1))
        town.silent = ("bob",)
        await sam.send("say (one)")
        await asyncio.sleep(10)
        await sam.send("say (two)")
        await asyncio.sleep(10)
        assert town.said("sam") == ["one", "two"]
        assert town.heard("sam") == []
        assert town.states("sam") == ["undeliverable"] * 2
        assert any("its background agent 'eve' cannot be told: 'eve' was deleted" in note for note in town.notes)
        assert town.log("bob")[1].type == "agent_configured"
        await town.leave()

    run(main)


def test_long_words_are_cut_and_many_are_left_out_with_a_line_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message has its limit: what is longer comes in several, and of more than ten the oldest are named only."""
    monkeypatch.setattr(background, "PARTS_MAX", 2)

    async def main() -> None:
        town = Town()
        sam = await watched(town, idle=10)
        for _ in range(4):
            await sam.send(f"be quiet {'x' * 19_000}")
        await asyncio.sleep(700)
        sent = [event for event in map(event_of, town.log("sam")) if isinstance(event, AgentMessageSent)]
        assert len(sent) == 2
        assert all(len(event.text or "") <= TEXT_CHARS_MAX for event in sent)
        seqs = [record.seq for record in town.log("sam") if record.type == "user_message"]
        assert [(event.from_seq, event.to_seq) for event in sent] == [(seqs[2], seqs[2]), (seqs[3], seqs[3])]
        assert (sent[0].text or "").startswith(f"Left out, as too long: records {seqs[0]} to {seqs[1]}, ")
        assert "(9,009 more characters, which `everlog events` shows)" in (sent[1].text or "")
        await asyncio.sleep(5000)
        assert len(town.heard("eve")) == 2
        await town.leave()

    run(main)


def test_a_supervisor_finds_what_is_to_be_told_in_the_log(tmp_path: Path) -> None:
    """After a restart an agent with one in its background is opened, before and after its log is sealed: its host knows
    when the other is to be told.
    """

    async def main() -> None:
        town = Town(FileStore.create(tmp_path, virtual_time.WallClock().now, "0" * 32))
        sam = await watched(town, idle=10)
        await sam.send("say (yes)")
        await town.leave()
        assert {one.agent_id for one in pending_work(town.store, town.notes.append) if one.unfinished} == {"sam"}
        log = town.store.open("sam", "test")
        log.seal(DERIVER)
        log.close()
        assert {one.agent_id for one in pending_work(town.store, town.notes.append) if one.unfinished} == {"sam"}
        town = Town(town.store)
        await town.ref("sam")._sender.perform(ResumeTurns)
        await asyncio.sleep(700)
        assert told(town) == said(town)
        await town.leave()

    run(main)
