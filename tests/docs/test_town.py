"""docs/examples/town.py: a day of agents who plan, meet, tell each other news, change their plans and reflect."""

from pathlib import Path

import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.store import FileStore
from tests.support.example_module import example
from tests.support.town_day import INVITATION, TownDay

SMALL, HOURS = ("Isabella", "Klaus", "Maria", "Ayesha"), (12, 13, 14, 17)
"""People and hours of a short day: the invitation at noon, the news in the library, and the party."""


def check_logs(day: TownDay) -> None:
    """Each request renders to the bytes that were sent, and rebuilding each agent from its log changes nothing."""
    system = LocalSystem(FileStore(day.folder, lambda: 0))
    assert sorted(system.agents()) == sorted(day.people)
    for name in system.agents():
        view = system.view(name)
        assert verify(view, system.tools).faults == [] and rebuild(view).faults == [], name
        view.close()


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> TownDay:
    """The short day of four people."""
    return TownDay(tmp_path_factory.mktemp("town"), SMALL, HOURS)


def test_the_news_travels_from_mouth_to_mouth(short: TownDay) -> None:
    """The transcript has the invitation and who passed it on; each witness knows when, and from whom."""
    assert f"12:10  cafe       Isabella: {INVITATION}" in short.lines
    passed = [line for line in short.lines if line.endswith(f"Isabella said: {INVITATION}") and "library" in line]
    assert passed and passed[0].split()[0] == "13:10"
    heard = {row["agent_id"]: (f"{row['heard_at']:%H:%M}", row["from_whom"]) for row in short.heard}
    told_by = passed[0].split()[2].rstrip(":")
    assert heard["Klaus"] == heard["Maria"] == ("12:10", "Isabella")
    assert heard["Ayesha"] == ("13:10", told_by) and told_by in ("Klaus", "Maria")


def test_what_each_knew_at_a_moment_is_one_query(short: TownDay) -> None:
    """At 12:30 the guests of the cafe know of the party; at 14:00 Ayesha does, too."""
    assert short.known["12:30"].keys() == {"Isabella", "Klaus", "Maria"}
    assert short.known["14:00"].keys() == {"Isabella", "Klaus", "Maria", "Ayesha"}
    assert short.known["14:00"]["Ayesha"] in ("Klaus", "Maria")


def test_a_plan_changes_with_its_reason(short: TownDay) -> None:
    """A guest who hears of the party cancels the evening at home, says who told it, and plans to go; it goes there."""
    evening = {row["agent_id"]: row for row in short.plans if row["item"] == 3}
    assert evening["Klaus"]["status"] == "cancelled" and evening["Klaus"]["reason"] == "Isabella told me of the party"
    assert evening["Isabella"]["status"] == "planned"
    party = {row["agent_id"]: row["place"] for row in short.plans if row["text"] == "Go to the party"}
    assert party == dict.fromkeys(("Klaus", "Maria", "Ayesha"), "park")
    assert [f"17:00  park       {name} arrives" in short.lines for name in sorted(party)] == [True] * 3


def test_the_evening_ends_with_reflections(short: TownDay) -> None:
    """Klaus concludes from what he said that he moved."""
    thoughts = [line for line in short.lines if line.startswith("21:00  home       Klaus thinks: ")]
    assert thoughts == ["21:00  home       Klaus thinks: Klaus moved from Oak Street to Mill Lane on 4 May 2026."]


def test_the_logs_of_the_day_verify_and_rebuild(short: TownDay) -> None:
    """Derived memories of the day are those of the log alone."""
    check_logs(short)


@pytest.mark.long
@pytest.mark.agents
def test_the_whole_day_is_the_same_twice(tmp_path: Path) -> None:
    """Ten people live eleven hours twice: the same transcript and the same bytes of every record. Those who were never
    in a place with a person who knew of the party did not hear of it.
    """
    module = example("town")
    first, second = (TownDay(tmp_path / name, list(module.PEOPLE), module.HOURS) for name in ("first", "second"))
    assert first.lines == second.lines
    assert first.records() == second.records() and len(first.records()) == len(module.PEOPLE)
    heard = {row["agent_id"]: f"{row['heard_at']:%H:%M}" for row in first.heard}
    assert heard.keys() == module.PEOPLE.keys() - {"Jennifer", "Lea"}
    assert first.known["12:30"].keys() == {"Isabella", "Carlos", "Klaus", "Maria", "Sam"}
    assert {"Ayesha", "Tom", "Giorgio"} <= first.known["14:00"].keys()
    check_logs(first)
