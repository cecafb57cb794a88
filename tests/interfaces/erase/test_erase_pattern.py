"""`everlog erase PATTERN`: the same rules as for one agent, and the outcome of each."""

import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.erasure import store_eraser
from everlog.actors.erasure.erase_planned import ErasureReport
from everlog.actors.erasure.erasure_plan import ErasurePlan
from everlog.store import FileStore, Progress
from tests.interfaces.conftest import Line

SECRET = "XylophoneQuagmire"


@pytest.fixture
def fleet(cli: Line) -> Line:
    """Return a command line with four agents; two of them, one deleted, heard the secret."""

    def make(line: Line) -> None:
        for name in ("fleet-1", "fleet-2", "fleet-3", "sam"):
            line.ok("create", name)
        for name in ("fleet-1", "fleet-2", "sam"):
            line.ok("send", name, f"It is {SECRET}.")
        line.ok("send", "fleet-3", "Hello")
        line.ok("delete", "fleet-2", "--yes")

    cli.begin("erased fleet", make)
    return cli


def heard(fleet: Line) -> list[str]:
    """Return the agents of whose records one says the secret."""
    query = (
        f"SELECT DISTINCT agent_id FROM records WHERE contains(payload || coalesce(text, ''), '{SECRET}') ORDER BY 1"
    )
    return [name for (name,) in fleet.json("sql", query)["rows"]]


def test_each_agent_that_matches_is_erased(fleet: Line) -> None:
    """Deleted agents are erased too, others keep what they know, and each outcome is told; once more is refused."""
    said = fleet.ok("erase", "fleet-*", "--match", SECRET, "--derived", "--yes")
    assert "Erased 4 records of fleet-1 (seq 8 to 11)." in said and "Erased 4 records of fleet-2 (seq " in said
    assert "Erased records of 2 agents; nothing to erase in 1 agent." in said and "everlog export" in said
    assert heard(fleet) == ["sam"]
    assert "of none is a record left to erase" in fleet.fails("erase", "fleet-*", "--match", SECRET, "--yes")
    assert fleet.json("verify", "fleet-1")["faults"] == []


def test_a_dry_run_lists_the_records_of_each_and_changes_nothing(fleet: Line) -> None:
    """Each record is listed below the name of its agent; programs get the plan of every agent."""
    said = fleet.ok("erase", "fleet-*", "--match", SECRET, "--dry-run")
    assert "fleet-1:" in said and "fleet-2:" in said and "fleet-3:" not in said
    assert said.count(SECRET) == 2 and "Nothing was erased (--dry-run)." in said
    plans = fleet.json("erase", "fleet-*", "--match", SECRET, "--dry-run")
    assert [(plan["agent"], len(plan["records"]), plan["dry_run"]) for plan in plans] == [
        ("fleet-1", 1, True), ("fleet-2", 1, True), ("fleet-3", 0, True),
    ]  # fmt: skip
    assert heard(fleet) == ["fleet-1", "fleet-2", "sam"]


def test_programs_get_the_outcome_of_each(fleet: Line) -> None:
    """The JSON is a list with the keys of one erasure."""
    done = fleet.json("erase", "fleet-*", "--match", SECRET, "--yes")
    assert [(one["agent"], one["erased"], one["dry_run"]) for one in done] == [
        ("fleet-1", 1, False), ("fleet-2", 1, False), ("fleet-3", 0, False),
    ]  # fmt: skip


def test_nothing_is_erased_without_a_yes(fleet: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal --yes is required; on a terminal anything but yes changes nothing."""
    assert fleet("erase", "fleet-*", "--all")[0] == 2
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    fleet.typed = ["n", "y"]
    code, out, err = fleet("erase", "fleet-*", "--all")
    assert (code, "Nothing was erased." in out, "persona" in err) == (1, True, True)
    assert heard(fleet) == ["fleet-1", "fleet-2", "sam"]
    assert "Erased records of 3 agents." in fleet.ok("erase", "fleet-*", "--all")
    assert heard(fleet) == ["sam"]


@pytest.mark.parametrize("argv", [["--seq", "3"], ["--turn", "1"], ["--from", "2"], ["--to", "5"], []])
def test_numbers_that_belong_to_one_agent_are_refused(fleet: Line, argv: list[str]) -> None:
    """A seq or a turn names another record in each agent, and nothing selected is no selection: exit code 2."""
    assert fleet("erase", "fleet-*", *argv, "--yes")[0] == 2
    assert heard(fleet) == ["fleet-1", "fleet-2", "sam"]


def test_an_erasure_reaches_forks_once(fleet: Line) -> None:
    """Records that a fork has from its parent go with the parent's, its own are erased too, and nothing fails."""
    fleet.ok("fork", "fleet-1", "--new-name", "fleet-0")
    said = fleet.ok("erase", "fleet-[01]", "--match", SECRET, "--yes")
    assert "Erased 1 record of fleet-1" in said and "failed" not in said
    fleet.ok("send", "fleet-0", f"Again: {SECRET}.")
    fleet.ok("send", "fleet-1", f"Again: {SECRET}.")
    said = fleet.ok("erase", "fleet-[01]", "--match", SECRET, "--derived", "--yes")
    assert "of fleet-0" in said and "of fleet-1" in said
    assert heard(fleet) == ["fleet-2", "sam"]


def test_one_agent_that_is_in_use_does_not_keep_the_others(fleet: Line) -> None:
    """The error of an agent that another process holds open is told; the others are erased; the exit code is 1."""
    log = FileStore(fleet.root, fleet.clock.now).open("fleet-1", "everlog chat")
    try:
        code, out, err = fleet("erase", "fleet-*", "--match", SECRET, "--yes")
    finally:
        log.close()
    assert (code, "'fleet-1' was not erased" in err) == (1, True)
    assert "Erased records of 1 agent; nothing to erase in 1 agent; 1 failed." in out
    assert heard(fleet) == ["fleet-1", "sam"]


@pytest.mark.beside_store("Ctrl-C is raised by the store, which the server has")
def test_an_interrupted_erasure_goes_on_with_the_same_command(fleet: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C says how many agents are done; the same command erases the rest."""
    erase_planned = store_eraser.erase_planned
    begun: list[str] = []

    def interrupted(system: LocalSystem, plan: ErasurePlan, *rest: Progress) -> ErasureReport:
        begun.append(plan.agent_id)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return erase_planned(system, plan, *rest)

    monkeypatch.setattr(store_eraser, "erase_planned", interrupted)
    code, _, err = fleet("erase", "fleet-*", "--match", SECRET, "--derived", "--yes")
    assert (code, "1 of 2 agents erased. Run the same command again" in err) == (130, True)
    assert heard(fleet) == ["fleet-2", "sam"]
    fleet.ok("erase", "fleet-*", "--match", SECRET, "--derived", "--yes")
    assert heard(fleet) == ["sam"]
