"""Groups in virtual time: each rule asks whom it should, in order, with what was said, and says the answers once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from everlog.actors.agent.commands import DeleteAgent, ResumeTurns
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.replay.rebuild_check import verify
from tests.support import virtual_time
from tests.support.agents.group_town import GroupTown

QUIET = "Nothing was said since you spoke. Say what you want to add."
PICK = "Who is to speak next? Answer with one of these names and nothing else, or with done if nobody is to: ann, bob"


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run `main` in virtual time."""
    return virtual_time.run(main)


def assert_sound(town: GroupTown, name: str) -> None:
    """Check that no message of an agent is on its way, and that its log verifies."""
    assert set(town.states(name)) <= {"answered", "silent", "expired", "undeliverable"}
    system = LocalSystem(town.store)
    view = system.view(name)
    report = verify(view, system.tools)
    view.close()
    assert (report.faults, report.mismatches) == ([], [])


def test_the_members_of_a_round_robin_speak_in_order() -> None:
    """Each member is asked once a round with what was said since it was asked, and the group says each answer."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob")
        team = await town.group("team", "round-robin", "ann", "bob", rounds=2)
        await team.send("say (yes)", speaker="Eve")
        await asyncio.sleep(60)
        assert town.asked("team") == [
            ("ann", "Eve: say (yes)"), ("bob", "Eve: say (yes)\nann: yes"), ("ann", "bob: yes"), ("bob", QUIET),
        ]  # fmt: skip
        silence = ["ann ended without an answer.", "bob ended without an answer."]
        assert town.said("team") == ["ann: yes", "bob: yes", *silence]
        assert_sound(town, "team")
        await town.leave()

    run(main)


def test_a_supervisor_gets_the_answers_of_all_members_and_answers() -> None:
    """All members are asked at once; the supervisor is asked when all have answered, and only it is heard."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob", "boss")
        town.pauses |= {"ann": 30, "bob": 5}
        team = await town.group("team", "supervisor", "ann", "bob", manager="boss")
        await team.send("say (yes)")
        await asyncio.sleep(10)
        assert town.asked("team") == [("ann", "say (yes)"), ("bob", "say (yes)")]
        await asyncio.sleep(60)
        answers = "The members of your group answered you:\nann: yes\nbob: yes\nNow say what you answer to all this."
        assert town.asked("team")[2:] == [("boss", f"say (yes)\n\n{answers}")]
        assert town.said("team") == ["boss: yes"]
        await team.send("thanks")
        await asyncio.sleep(90)
        assert town.asked("team")[3:5] == [("ann", "boss: yes\nthanks"), ("bob", "boss: yes\nthanks")]
        assert_sound(town, "team")
        await town.leave()

    run(main)


def test_the_manager_of_a_dynamic_group_names_each_speaker() -> None:
    """The member whose exact name the manager says is asked next, until the manager says that all is done."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob", "boss")
        town.scripts["boss"] = ["bob", " ann\n", "done"]
        team = await town.group("team", "dynamic", "ann", "bob", manager="boss", rounds=3)
        await team.send("say (yes)")
        await asyncio.sleep(60)
        assert town.asked("team") == [
            ("boss", f"say (yes)\n\n{PICK}"),
            ("bob", "say (yes)"),
            ("boss", f"bob: yes\n\n{PICK}"),
            ("ann", "say (yes)\nbob: yes"),
            ("boss", f"ann: yes\n\n{PICK}"),
        ]
        assert town.said("team") == ["bob: yes", "ann: yes"]
        assert_sound(town, "team")
        await town.leave()

    run(main)


def test_a_manager_that_names_no_member_is_asked_once_more() -> None:
    """A name inside of other words is no name: the manager is asked again with the names, then the round ends and says
    why.
    """

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob", "boss")
        town.scripts["boss"] = ["I think ann should speak", "bob", "Ann", "ANN"]
        team = await town.group("team", "dynamic", "ann", "bob", manager="boss", rounds=3)
        await team.send("say (yes)")
        await asyncio.sleep(60)
        assert town.asked("team") == [
            ("boss", f"say (yes)\n\n{PICK}"),
            ("boss", f"'I think ann should speak' is none of the names. {PICK}"),
            ("bob", "say (yes)"),
            ("boss", f"bob: yes\n\n{PICK}"),
            ("boss", f"'Ann' is none of the names. {PICK}"),
        ]
        why = "The round has ended: boss was to name a member or say done, and answered: ANN"
        assert town.said("team") == ["bob: yes", why]
        await town.leave()

    run(main)


def test_a_dynamic_round_ends_after_its_speeches() -> None:
    """A manager that never says that all is done gets as many speeches as members times rounds."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob", "boss")
        town.scripts["boss"] = ["ann"] * 100
        team = await town.group("team", "dynamic", "ann", "bob", manager="boss", rounds=4)
        await team.send("say (yes)")
        await asyncio.sleep(600)
        asked = [to for to, _ in town.asked("team")]
        assert (asked.count("ann"), asked.count("boss")) == (8, 8)
        await town.leave()

    run(main)


def test_people_join_while_a_round_runs() -> None:
    """Words that come while a member is asked are given to the next one; if there is none, they begin a round."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob")
        town.pauses |= {"ann": 30, "bob": 30}
        team = await town.group("team", "round-robin", "ann", "bob")
        await team.send("say (one)", speaker="Eve")
        await asyncio.sleep(5)
        await team.send("say (two)", speaker="Tom")
        await asyncio.sleep(30)
        await team.send("say (three)", speaker="Eve")
        await asyncio.sleep(200)
        assert town.asked("team") == [
            ("ann", "Eve: say (one)"),
            ("bob", "Eve: say (one)\nTom: say (two)\nann: one"),
            ("ann", "Tom: say (two)\nEve: say (three)\nbob: one\ntwo"),
            ("bob", "Eve: say (three)\nann: two\nthree"),
        ]
        assert_sound(town, "team")
        await town.leave()

    run(main)


@pytest.mark.parametrize("rule", ["round-robin", "supervisor", "dynamic"])
def test_a_member_that_gives_no_answer_is_named_and_the_round_continues(rule: str) -> None:
    """A member that was deleted, is silent, or does not answer in time is named with the reason; the others speak."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob", "tim", "eve")
        more = {}
        if rule != "round-robin":
            await town.people("boss")
            more = {"manager": "boss"}
        if rule == "dynamic":
            town.scripts["boss"] = ["ann", "bob", "tim", "eve"]
        town.scripts["tim"] = [""]
        town.pauses["bob"] = 4000
        team = await town.group("team", rule, "ann", "bob", "tim", "eve", **more)
        await town.ref("ann")._sender.perform(DeleteAgent)
        await team.send("say (yes)")
        await asyncio.sleep(9000)
        said = town.said("team")
        assert "ann could not be asked: " in said[0]
        assert "deleted" in said[0] or "no agent" in said[0]
        for words in ("bob has not answered in time.", "tim ended without an answer."):
            assert said.count(words) == 1
        assert said[-1] == ("boss: yes" if rule == "supervisor" else "eve: yes")
        assert len(said) == 4
        assert_sound(town, "team")
        await town.leave()

    run(main)


def test_a_group_answers_another_agent_with_what_its_members_say() -> None:
    """A group that is asked by an agent, or by another group, answers once its round is over, for that question."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob", "sam")
        town.pauses["ann"] = 20
        await town.group("crew", "round-robin", "ann", "bob")
        team = await town.group("team", "round-robin", "crew")
        sam = town.ref("sam")
        await town.person("sam")
        await asyncio.gather(team.send("say (one)"), sam.send("ask crew (say (two))"))
        await asyncio.sleep(200)
        assert town.heard("sam") == [("crew", "ann: two\nbob: two")]
        assert town.said("team") == ["crew: ann: one\nbob: one"]
        for name in ("crew", "team", "sam"):
            assert_sound(town, name)
        await town.leave()

    run(main)


def test_groups_that_are_members_of_each_other_come_to_an_end() -> None:
    """A circle of groups is refused as other circles are: the round says so and continues with the next member."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "crew")
        team = await town.group("team", "round-robin", "crew")
        await town.group("crew", "round-robin", "team", "ann")
        await team.send("say (yes)")
        await asyncio.sleep(60)
        assert "That would be a circle: team asks crew asks team." in town.said("crew")[0]
        assert town.said("crew")[1] == "ann: yes"
        assert len(town.said("team")) == 1
        await town.leave()

    run(main)


def test_a_group_continues_in_the_next_process() -> None:
    """A process that leaves while a member is asked changes nothing: the next one finishes the round, once."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob")
        town.pauses["ann"] = 60
        team = await town.group("team", "round-robin", "ann", "bob")
        await team.send("say (yes)")
        await asyncio.sleep(5)
        await town.leave()
        town = GroupTown(town.store)
        for name in ("ann", "bob", "team"):
            await town.open(name)
            await town.ref(name)._sender.perform(ResumeTurns)
        await asyncio.sleep(60)
        assert town.said("team") == ["ann: yes", "bob: yes"]
        assert [to for to, _ in town.asked("team")] == ["ann", "bob"]
        assert_sound(town, "team")
        await town.leave()

    run(main)
