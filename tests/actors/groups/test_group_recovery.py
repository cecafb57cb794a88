"""Groups whose process dies, whose context is summarized, and which are forked: what they do is the same."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example
from hypothesis import strategies as st

from everlog.actors.agent.commands import ResumeTurns, SummarizeContext
from everlog.actors.agent.local_journal import LocalJournal
from everlog.actors.agent.local_system import LocalSystem
from everlog.events import Draft, EverlogError, StoreError
from everlog.store import Commit
from tests.actors.groups.test_groups import assert_sound, run
from tests.support.agents.group_town import GroupTown
from tests.support.law import law
from tests.support.seeds import few_and_all, pick

RULES = ("round-robin", "supervisor", "dynamic")
PEOPLE = ("ann", "bob", "boss")
COMMITS = {"round-robin": 15, "supervisor": 20, "dynamic": 21}
"""Number of commits of a round, in all logs together."""


def choice(text: str) -> str:
    """Return the next speaker that the manager names: bob, unless it has spoken."""
    return "done" if "bob:" in text else "bob"


class Death:
    """Death of a process: from a commit on, none is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        """Number of commits until the death; below 0: alive."""
        commit = LocalJournal.commit

        async def dying(journal: LocalJournal, agent_id: str, head: int, drafts: Sequence[Draft]) -> Commit:
            if self.left == 0:
                raise StoreError("The process is dead.")
            self.left -= 1
            return await commit(journal, agent_id, head, drafts)

        monkeypatch.setattr(LocalJournal, "commit", dying)


async def grouped(town: GroupTown, rule: str, rounds: int = 1) -> None:
    """Open the people and their group."""
    await town.people(*PEOPLE)
    manager = {} if rule == "round-robin" else {"manager": "boss"}
    if rule == "dynamic":
        town.choices["boss"] = choice
    await town.group("team", rule, "ann", "bob", rounds=rounds, **manager)


async def next_process(town: GroupTown) -> GroupTown:
    """Return the process after that of `town`, which has continued all that was left."""
    await town.leave()
    after = GroupTown(town.store)
    after.choices = town.choices
    for name in (*PEOPLE, "team"):
        await after.open(name)
        await after.ref(name)._sender.perform(ResumeTurns)
    await after.settle()
    return after


async def play_cut(death: Death, rule: str, commits: int) -> bool:
    """Play a round that dies after so many commits, and finish it in the next process. Return False if it ended before
    that.
    """
    town = GroupTown()
    await grouped(town, rule)
    death.left = commits
    try:
        await town.ref("team").send("say (yes)", event_id=town.ids.new(town.clock.now()))
    except EverlogError:
        pass
    await town.settle()
    died = death.left == 0
    death.left = -1
    town = await next_process(town)
    sent = town.inputs("team").count("say (yes)")
    speakers = {"round-robin": ["ann", "bob"], "supervisor": ["boss"], "dynamic": ["bob"]}[rule]
    assert town.said("team") == ([f"{name}: yes" for name in speakers] if sent else [])
    for name in (*PEOPLE, "team"):
        assert_sound(town, name)
    await town.leave()
    return died


@pytest.mark.parametrize("count", few_and_all(1, part="effects"))
@pytest.mark.parametrize("rule", RULES)
def test_a_round_that_dies_after_any_commit_is_finished_once(
    monkeypatch: pytest.MonkeyPatch, rule: str, count: int | None
) -> None:
    """The next process asks the members that were not asked, and says what was not said: each answer once, in order."""
    death = Death(monkeypatch)
    for number in pick(range(COMMITS[rule]), count, label=f"commits of {rule}"):
        assert run(lambda number=number: play_cut(death, rule, number)), f"the round ended before commit {number}"
    if count is None:
        assert not run(lambda: play_cut(death, rule, COMMITS[rule])), "the round has more commits"


async def talked(rule: str, rounds: int, words: Sequence[str], disturbed: Sequence[str]) -> tuple[Any, ...]:
    """Return what a group asked and said in a talk, and what its fork asks and says about the last words.

    `disturbed`: what happens before each of the words: `summary` or `restart` after a rest, only the rest, or nothing:
    then the words may come while a round runs.
    """
    town = GroupTown()
    await grouped(town, rule, rounds)
    for number, text in enumerate(words):
        what = disturbed[number] if number < len(disturbed) else "rest"
        if what:
            await town.settle()
        if what == "summary":
            await town.ref("team")._sender.perform(SummarizeContext)
        if what == "restart":
            town = await next_process(town)
        if number == len(words) - 1:
            await town.settle()
            LocalSystem(town.store).fork("team", "twin")
        await town.ref("team").send(f"say ({text})", speaker="Eve" if number % 2 else "")
    await town.settle()
    before = len(town.asked("twin")), len(town.said("twin"))
    await town.open("twin")
    await town.ref("twin").send(f"say ({words[-1]})", speaker="" if len(words) % 2 else "Eve")
    await town.settle()
    twin = town.asked("twin")[before[0] :], town.said("twin")[before[1] :]
    found = town.asked("team"), town.said("team"), twin
    await town.leave()
    return found


WORDS = st.lists(st.text(alphabet="abc", min_size=1, max_size=3), min_size=1, max_size=4)
WHAT = st.lists(st.sampled_from(["", "rest", "summary", "restart"]), max_size=4)


@example("dynamic", 2, ["a", "b", "c"], ["", "summary", "restart"])
@law(st.sampled_from(RULES), st.integers(1, 3), WORDS, WHAT, few=1, many=20)
def test_summaries_restarts_and_forks_do_not_change_what_a_group_does(
    rule: str, rounds: int, words: list[str], disturbed: list[str]
) -> None:
    """A group whose context was summarized, or whose process was another one, asks and says the same, word for word;
    and so does its fork that hears the same words, if it was at rest.
    """
    rounds = 1 if rule == "supervisor" else rounds
    plain = run(lambda: talked(rule, rounds, words, ["rest" if what else "" for what in disturbed]))
    assert run(lambda: talked(rule, rounds, words, disturbed)) == plain
    asked, said, (twin_asked, twin_said) = plain
    assert twin_asked == asked[len(asked) - len(twin_asked) :]
    assert twin_said == said[len(said) - len(twin_said) :]
