"""Erasures of words that an agent sent to other agents: they are found in the logs of those, however far they went."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.erasure.erasure_plan import ErasurePlan, plan_erasure
from everlog.actors.erasure.selection import Selection
from everlog.events import is_erased
from tests.support import virtual_time
from tests.support.agents.writing_agents import Town

PEOPLE = ("sam", "bob", "eve", "tom")


def town_after(talk: Callable[[Town], Awaitable[Any]]) -> Town:
    """Return a town of four agents after a talk, which has ended."""
    made: list[Town] = []

    async def main() -> None:
        town = Town()
        made.append(town)
        for name in PEOPLE:
            await town.person(name)
        await talk(town)
        await asyncio.sleep(60)
        await town.leave()

    virtual_time.run(main)
    return made[0]


def plan(town: Town, name: str, *, derived: bool = False, **selection: Any) -> ErasurePlan:
    return plan_erasure(town.store, name, Selection(**selection), derived=derived)


def where(town: Town, words: str) -> dict[str, int]:
    """Return the number of records that say the words, by agent."""
    found = {name: sum(words in record.payload + (record.text or "") for record in town.log(name)) for name in PEOPLE}
    return {name: count for name, count in found.items() if count}


async def told(town: Town) -> None:
    await town.ref("sam").send("tell bob (4711)")
    await town.ref("sam").send("tell eve (good day)")


async def asked(town: Town) -> None:
    await town.ref("sam").send("ask bob (say (4711 it is))")


async def passed_on(town: Town) -> None:
    await town.ref("sam").send("tell bob (tell eve (tell tom (4711)))")


def test_the_receivers_of_a_message_are_listed_and_erased_with_derived() -> None:
    """A message that is erased stands in the receiver's log too: it is named with the record that it came from, and the
    turn that it opened follows.
    """
    town = town_after(told)
    sent = next(record.seq for record in town.log("sam") if record.type == "agent_message_sent")
    found = plan(town, "sam", seqs=[(sent, sent)])
    assert next((one.stream, one.type, one.why) for one in found.left if one.stream != "sam") == (
        "bob", "user_message", f"caused by sam {sent}",
    )  # fmt: skip
    assert {one.stream for one in found.left} <= {"sam", "bob"}
    gone = plan(town, "sam", match=["4711"], derived=True)
    LocalSystem(town.store).erase_spans(gone.spans)
    assert where(town, "4711") == {}
    assert where(town, "good day").keys() == {"sam", "eve"}


def test_an_answer_is_found_with_the_agent_that_asked() -> None:
    """The agent that answered erases its words: the input with the answer, and what was said of it, are found."""
    town = town_after(asked)
    said = next(record.seq for record in town.log("bob") if record.type == "message_sent")
    found = plan(town, "bob", seqs=[(said, said)])
    answer = next(one for one in found.left if one.stream == "sam")
    assert (answer.type, answer.why) == ("user_message", f"caused by bob {said}")
    LocalSystem(town.store).erase_spans(plan(town, "bob", everything=True, derived=True).spans)
    assert where(town, "4711").keys() == {"sam"}
    later = [record for record in town.log("sam") if record.seq >= answer.seq]
    assert not any("4711" in record.payload + (record.text or "") for record in later), "its user said it before"


def test_words_are_followed_as_far_as_they_were_passed_on() -> None:
    """A message that made the receiver write to a third agent, and that one to a fourth, is found with all of them."""
    town = town_after(passed_on)
    gone = plan(town, "sam", turns=[1], derived=True)
    assert [*gone.spans] == ["tom", "eve", "bob", "sam"]
    LocalSystem(town.store).erase_spans(gone.spans)
    assert where(town, "4711") == {}
    assert all(is_erased(r.payload) for r in town.log("tom") if r.type == "user_message")


@pytest.mark.parametrize("after", range(4))
def test_an_interrupted_erasure_is_finished_by_the_same_command(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The process ends after some of the logs: the next run of the same command finds what is left."""
    town = town_after(passed_on)
    gone = plan(town, "sam", turns=[1], derived=True)
    LocalSystem(town.store).erase_spans(dict(list(gone.spans.items())[:after]))
    again = plan(town, "sam", turns=[1], derived=True)
    LocalSystem(town.store).erase_spans(again.spans)
    assert where(town, "4711") == {}
