"""A group's talk that is read from record to record is the talk that is read from the whole log."""

import random
from typing import Any

import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.groups.talk import GroupReading, GroupTalk
from everlog.events import Record
from tests.support import virtual_time
from tests.support.agents.group_town import GroupTown

RULES: dict[str, dict[str, Any]] = {
    "round-robin": {"rounds": 2},
    "supervisor": {"manager": "boss"},
    "dynamic": {"manager": "boss", "rounds": 2},
}


def talked(rule: str) -> tuple[GroupTown, list[Record]]:
    """Return a town whose group has talked: with a hidden turn, an agent that asks it, and a refused question."""

    async def main() -> tuple[GroupTown, list[Record]]:
        town = GroupTown()
        await town.people("ann", "bob", "boss")
        town.choices["boss"] = lambda words: "ann" if "speak next" in words and "ann:" not in words else "done"
        team = await town.group("team", rule, "ann", "bob", **RULES[rule])
        await town.person("sam")
        await team.send("say (yes)", speaker="Eve")
        await team.send("say (no)")
        await town.settle()
        await town.ref("sam").send("ask team (say (well))")
        await town.settle()
        await town.ref("bob").delete()
        await team.send("say (and now)")
        await town.settle()
        await team.undo_turns(1)
        await team.send("say (at last)")
        await town.settle()
        await town.leave()
        return town, list(town.log("team"))

    found: tuple[GroupTown, list[Record]] = virtual_time.run(main)
    return found


@pytest.mark.parametrize("rule", RULES)
def test_talk_is_the_same_from_record_to_record(rule: str) -> None:
    """From the first record on, or from the rows at any record on, with turns asked for in order."""
    town, records = talked(rule)
    view = LocalSystem(town.store).view("team")
    last = records[-1].turn

    def whole(turn: int, seq: int) -> GroupTalk:
        return GroupReading(view.rows("group_talk", seq)).talk(turn)

    chance = random.Random(rule)
    for cut in [0, *sorted(chance.sample(range(1, len(records)), 3))]:
        reading = GroupReading(view.rows("group_talk", cut) if cut else ())
        for record in records[cut:]:
            reading.add([record])
            if record.step and chance.random() < 0.3:
                assert reading.talk(record.turn) == whole(record.turn, record.seq)
        assert reading.talk(last) == whole(last, records[-1].seq)
    view.close()
