"""A running agent asks few projections, once a step, by statements that are the projections' own text."""

from collections import Counter
from collections.abc import Sequence

import pytest

from everlog.actors.agent.agent import Agent
from everlog.events import UserMessage
from everlog.projections import Projections, Rows
from everlog.projections.hot.rows import Wanted
from everlog.projections.sql_catalogue import batch_query, sql
from tests.actors.agent.test_undo import during, told
from tests.support.agent_world import World, say

FULL = 6500


def test_seven_turns_ask_one_statement_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven turns with a warning and a summary read the state by one statement a request: pressure, blocks and header
    are parts of it. The activation asks once, and so does the budget of the day.
    """
    asked: Counter[str] = Counter()
    answers = Projections.answers

    def counted(engine: Projections, name: str, wanted: Sequence[Wanted]) -> list[Rows]:
        asked[name] += len(wanted)
        return answers(engine, name, wanted)

    world = World()
    told(world, "Hello")
    before = len(world.model.requests)
    monkeypatch.setattr(Projections, "answers", counted)

    async def talk(agent: Agent) -> None:
        for number in range(7):
            world.model.lines = [say("Yes.", total=FULL if number == 2 else 100)]
            await agent.receive(say_to(number))
            await agent.run()
            if number == 4:
                assert await agent.summarize()

    during(world, talk)
    kinds = [record.type for record in world.log()]
    assert (kinds.count("system_alert"), kinds.count("summary")) == (1, 1)
    requests = len(world.model.requests) - before
    assert asked == {"waking": 1, "configurations": 1, "context_window": requests}


def say_to(number: int) -> UserMessage:
    """Return the message of a turn."""
    return UserMessage(text=f"message {number}")


def test_the_statement_of_a_step_has_the_definitions_of_the_projections() -> None:
    """The warning, the beginning of the context and the newest blocks are the text of `memory_pressure.sql` and
    `latest.sql`: there is no second definition.
    """
    for changed in (True, False):
        statement = batch_query("context_window", changed=changed)
        for name in ("memory_pressure", "latest"):
            assert sql(name, changed=changed, asked=False) in statement
