"""Settings of groups: those that cannot work are refused in words, and nothing is written."""

from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import DeleteAgent
from everlog.actors.groups.rules import RULES
from everlog.events import BadInput, MessageSent, event_of
from everlog.interfaces.common.argument_values import GROUP_RULES
from tests.actors.groups.test_groups import run
from tests.support.agents.group_town import GroupTown
from tests.support.agents.virtual_time_runtime import open_ref

MANY = tuple(f"m{number}" for number in range(17))


def group(rule: str = "round-robin", *members: str, **more: Any) -> Settings:
    """Return the settings of a group."""
    return Settings(model=f"group/{rule}", members=members, **more)


BAD = [
    (group(), "1 to 16 members, not 0"),
    (group("round-robin", *MANY), "1 to 16 members, not 17"),
    (group("round-robin", "ann", "ann"), "'ann' is given twice"),
    (group("round-robin", "team"), "'team' cannot be a member of itself"),
    (group("round-robin", "annn"), "There is no agent 'annn'. Did you mean 'ann'"),
    (group("round-robin", "gone"), "'gone' was deleted"),
    (group("round-robin", "other~eve"), "no name of an agent that you can write to"),
    (group("round-robin", " "), "is the name of an agent, not ' '"),
    (group("round-robin", "ann", rounds=0), "`rounds` is 1 to 20, not 0"),
    (group("round-robin", "ann", rounds=1000), "`rounds` is 1 to 20, not 1000"),
    (group("round-robin", "ann", "bob", rounds=17), "make 34 speeches for one input; the most are 32"),
    (group("round-robin", "ann", answer_minutes=0), "`answer_minutes` is 1 to 10,080 minutes"),
    (group("round-robin", "ann", manager="bob"), "has no manager, such as 'bob'"),
    (group("supervisor", "ann"), "group/supervisor needs a manager"),
    (group("supervisor", "ann", manager="nil"), "There is no agent 'nil'"),
    (group("supervisor", "ann", manager="gone"), "'gone' was deleted"),
    (group("supervisor", "ann", manager="team"), "'team' cannot be a member of itself"),
    (group("supervisor", "ann", manager="ann"), "'ann' is a member and the manager"),
    (group("supervisor", "ann", manager="bob", rounds=2), "one round for each input, not 2"),
    (group("dynamic", "done", manager="bob"), "A member called 'done'"),
    (group("dice", "ann"), "There is no rule 'group/dice' for groups; there are group/round-robin"),
    (Settings(members=("ann",)), "Only a group has members and a manager, and the model 'offline' makes no group"),
    (Settings(manager="ann"), "Only a group has members and a manager"),
]


@pytest.mark.parametrize(("settings", "words"), BAD, ids=[words for _, words in BAD])
def test_a_group_that_cannot_work_is_refused(settings: Settings, words: str) -> None:
    """The error says what is wrong, no agent is made, and an agent that exists stays as it was."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob", "done", "gone", "other~eve")
        await town.ref("gone")._sender.perform(DeleteAgent)
        with pytest.raises(BadInput) as refused:
            await open_ref(town.ref("team"), settings)
        assert words in str(refused.value)
        assert str(refused.value).endswith("Nothing was changed.")
        assert town.log("team") == []
        await town.group("team", "round-robin", "bob")
        before = len(town.log("team"))
        if settings.model:
            with pytest.raises(BadInput):
                await town.ref("team").configure(settings)
        assert len(town.log("team")) == before
        await town.leave()

    run(main)


def test_an_agent_of_a_tenant_is_a_member_by_the_name_that_the_tenant_says() -> None:
    """A group of a tenant asks agents of that tenant only, by their names without the tenant's."""

    async def main() -> None:
        town = GroupTown()
        await town.people("shop~ann", "ann")
        team = await town.group("shop~team", "round-robin", "ann")
        await team.send("say (yes)")
        assert town.asked("shop~team") == [("shop~ann", "say (yes)")]
        await town.leave()

    run(main)


def test_a_group_can_be_changed_and_become_another_agent() -> None:
    """Members and rule can be changed between rounds; without members and with a model it is an agent like others."""

    async def main() -> None:
        town = GroupTown()
        await town.people("ann", "bob")
        team = await town.group("team", "round-robin", "ann")
        await team.send("say (one)")
        await town.settle()
        await team.configure(Settings(members=("bob",)))
        await team.send("say (two)")
        await town.settle()
        assert [to for to, _ in town.asked("team")] == ["ann", "bob"]
        await team.configure(Settings(model="offline", members=(), optional_functions=()))
        await team.send("say (three)")
        said = [event.text for event in map(event_of, town.log("team")) if isinstance(event, MessageSent)]
        assert said[-1] == "three"
        await town.leave()

    run(main)


def test_the_command_line_knows_the_rules_that_there_are() -> None:
    """The names of rules that the parser accepts without loading them are those that groups know."""
    assert GROUP_RULES == RULES
