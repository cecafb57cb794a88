"""`everlog memories`, `facts` and `plans`: what is shown, as of which moment, and why."""

import asyncio

import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.ports import Ports
from everlog.events import (
    EntityNamed,
    Event,
    FactEnded,
    FactNoted,
    InsightNoted,
    MemoriesWithdrawn,
    PlanItem,
    PlanMade,
)
from everlog.interfaces.common.argument_values import moment
from everlog.store import FileStore
from tests.support.cli.command_line import Line, says

TOLD = {"deriver": "rules-1", "generation": 1}


def leave(cli: Line, *events: Event) -> int:
    """Append events to the log of sam, one commit. Return the seq of the first."""

    async def write() -> int:
        ports = Ports(clock=cli.world.clock, ids=cli.world.ids)
        async with LocalSystem(FileStore(cli.root, cli.clock.now), ports=ports).agent("sam", create=False) as agent:
            left = await agent.commit(events, turn=agent.turn, step=0)
            return left[0].seq

    return asyncio.run(write())


@pytest.fixture
def concluded(cli: Line) -> dict[str, int]:
    """Return the seqs of what sam concluded: a move from Paris to Rome, an insight that rests on Paris, and a plan."""
    cli.script.answers = [says("Nice.")]
    cli.ok("send", "sam", "I live in Paris with Lea Maier")
    said = next(row["seq"] for row in cli.lines("events", "sam") if row["type"] == "user_message")
    paris = leave(cli, FactNoted(text="Chad lives in Paris", subject="Chad", predicate="lives_in", object="Paris",
                                 single=True, sources=[said], **TOLD))  # fmt: skip
    insight = leave(cli, InsightNoted(text="Chad likes Lea's city", question="Where?", sources=[said, paris], **TOLD))
    deeper = leave(cli, InsightNoted(text="Museums suit Chad", depth=2, sources=[insight], **TOLD))
    moved = moment("2024-05-01")
    rome = leave(
        cli,
        FactNoted(text="Chad lives in Rome", subject="Chad", predicate="lives_in", object="Rome", single=True,
                  sources=[said], valid_from=moved, from_precision="month", **TOLD),
    )  # fmt: skip
    leave(cli, FactEnded(fact=paris, successor=rome, valid_to=moved, to_precision="month", sources=[said], **TOLD))
    plan = leave(
        cli,
        PlanMade(text="Tuesday", items=[PlanItem("Visit the museum", moved, 90, "Rome")], sources=[deeper], **TOLD),
        EntityNamed(alias="Lea Maier", entity="Lea", sources=[said], **TOLD),
    )
    return {"said": said, "paris": paris, "insight": insight, "deeper": deeper, "rome": rome, "plan": plan}


def test_memories_are_listed_with_what_they_rest_on(cli: Line, concluded: dict[str, int]) -> None:
    """Insights, facts and plans are shown in the order of time; what rests on the ended fact says so."""
    rows = cli.json("memories", "sam")
    assert [row["kind"] for row in rows] == ["fact", "insight", "insight", "fact", "plan"]
    page = cli.ok("memories", "sam")
    assert f"insight {concluded['deeper']}" in page and f"outdated: fact {concluded['paris']} has ended" in page
    assert f"from {concluded['insight']} · rules-1" in page
    assert next(row["text"] for row in cli.json("memories", "sam", "--kind", "message")).startswith("I live in Paris")


def test_memories_about_an_entity_are_found_by_all_of_its_names(cli: Line, concluded: dict[str, int]) -> None:
    """A merged name finds what rests on a message with the other name."""
    found = {row["seq"] for row in cli.json("memories", "sam", "--about", "lea")}
    assert found == {concluded[name] for name in ("paris", "insight", "rome")}


def test_the_tree_of_a_memory_goes_down_to_messages(cli: Line, concluded: dict[str, int]) -> None:
    """--because shows each source below what rests on it; an unknown memory is an error that says what to do."""
    tree = cli.json("memories", "sam", "--because", str(concluded["deeper"]))
    nodes = {node["seq"]: node for node in tree["nodes"]}
    assert nodes[concluded["deeper"]]["sources"] == [concluded["insight"]]
    assert nodes[concluded["insight"]]["sources"] == [concluded["said"], concluded["paris"]]
    assert "I live in Paris" in cli.ok("memories", "sam", "--because", str(concluded["deeper"]))
    assert "has no memory with seq 1." in cli.fails("memories", "sam", "--because", "1")


def test_facts_have_two_times(cli: Line, concluded: dict[str, int]) -> None:
    """--at asks what held at a time, --as-of what was believed at a moment of the agent's life."""

    def objects(*words: str) -> list[str]:
        return [row["object"] for row in cli.json("facts", "sam", *words)]

    assert objects() == ["Rome"]
    assert objects("--all") == ["Paris", "Rome"]
    assert objects("--at", "2024-04-30") == ["Paris"]
    assert objects("--at", "2024-05-02") == ["Rome"]
    assert objects("--as-of", str(concluded["deeper"])) == ["Paris"]
    assert objects("--as-of", str(concluded["deeper"]), "--at", "2024-05-02") == ["Paris"]
    assert "2024-05" in cli.ok("facts", "sam")


def test_plans_show_what_is_to_come(cli: Line, concluded: dict[str, int]) -> None:
    """An item has its start, place and status; a plan that rests on an ended fact is marked."""
    (row,) = cli.json("plans", "sam")
    assert (row["text"], row["minutes"], row["place"], row["status"]) == ("Visit the museum", 90, "Rome", "planned")
    assert row["outdated"]
    assert "(outdated)" in cli.ok("plans", "sam")


def test_a_withdrawn_memory_is_not_shown_until_it_counts_again(cli: Line, concluded: dict[str, int]) -> None:
    """A withdrawal takes one memory out of the list, and another event brings it back."""
    leave(cli, MemoriesWithdrawn(seqs=[concluded["insight"]], text="wrong"))
    assert concluded["insight"] not in {row["seq"] for row in cli.json("memories", "sam")}
    leave(cli, MemoriesWithdrawn(seqs=[concluded["insight"]], withdrawn=False))
    assert concluded["insight"] in {row["seq"] for row in cli.json("memories", "sam")}


def test_an_agent_without_memories_says_so(cli: Line) -> None:
    """Each page of an agent that concluded nothing says so and names the command that derives."""
    cli.ok("create", "ann")
    assert "everlog reflect ann" in cli.ok("memories", "ann")
    assert "no facts" in cli.ok("facts", "ann")
    assert "no plans" in cli.ok("plans", "ann")
