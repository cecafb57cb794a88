"""`everlog pressure` and `everlog cost` over patterns and over all agents."""

import subprocess
import sys

import pytest

from everlog.projections import HEAD, Projections
from everlog.projections.fleet_views import FleetViews
from everlog.store import FileStore, PartitionReader
from tests.interfaces.conftest import Line
from tests.support.cli.command_line import completion

NAMES = ("fleet-1", "fleet-2", "fleet-3", "sam")


@pytest.fixture
def fleet(cli: Line) -> Line:
    """Return a command line with four agents, of which `fleet-2` talked most, and `fleet-3` never."""

    def make(line: Line) -> None:
        for name in NAMES:
            line.ok("create", name, "--model", "gpt-4o")
        for name in ("sam", "fleet-1", "fleet-2", "fleet-2"):
            line.script.answers = [completion(("send_message", {"message": "Hi."})).replace('"script"', '"gpt-4o"')]
            line.ok("send", name, "Hello")

    cli.begin("figures of a fleet", make)
    return cli


def test_pressure_of_each_is_that_of_its_page(fleet: Line) -> None:
    """A row has what the page of the agent has, without the next request; forks and agents of a second life too."""
    fleet.ok("fork", "fleet-2", "--new-name", "kid")
    fleet.ok("delete", "fleet-3", "--yes")
    fleet.ok("create", "fleet-3")
    rows = fleet.json("pressure")
    assert [row["agent"] for row in rows] == [*NAMES[:3], "kid", "sam"]
    for row in rows:
        alone = fleet.json("pressure", row["agent"])
        assert {**alone, "used": row["used"]} == {**row, "cached": alone["cached"], "estimate": alone["estimate"]}
        assert row["used"] == row["tokens"] / row["window"]


def test_pressure_and_cost_take_patterns_an_order_and_a_limit(fleet: Line) -> None:
    """The options mean what they mean for `agents`."""
    assert [row["agent"] for row in fleet.json("pressure", "fleet-*", "--reverse")] == ["fleet-3", "fleet-2", "fleet-1"]
    found = fleet.json("cost", "fleet-*", "--sort", "calls", "--limit", "1")
    assert [(row["agent"], row["calls"]) for row in found["rows"]] == [("fleet-2", 2)]
    assert found["total"]["calls"] == 3
    assert "... and 2 more; --limit 0 lists all" in fleet.ok("pressure", "fleet-*", "--limit", "1")
    assert "... and 2 more; --limit 0 lists all" in fleet.ok("cost", "fleet-*", "--limit", "1")
    for command in ("pressure", "cost"):
        code, _, err = fleet(command, "flet-*")
        assert (code, "no agent matches 'flet-*'" in err, "'fleet-1'" in err) == (2, True, True)
        code, _, err = fleet(command, "sam", "--sort", "tokens")
        assert (code, "give a pattern" in err) == (2, True)


def test_costs_of_each_add_up_to_the_costs_of_all(fleet: Line) -> None:
    """A deleted agent has a row too, so that no money is missing; agents without calls have zeros."""
    fleet.ok("delete", "fleet-1", "--yes")
    whole, each = fleet.json("cost"), fleet.json("cost", "--sort", "agent")
    assert [row["agent"] for row in each["rows"]] == list(NAMES)
    assert each["total"] == whole["total"] and each["total"]["cost"] > 0
    assert [row["calls"] for row in each["rows"]] == [1, 2, 0, 1]
    one = fleet.json("cost", "fleet-2")["total"]
    (row,) = fleet.json("cost", "fleet-[2]")["rows"]
    assert row == {"agent": "fleet-2", **one}


def test_the_pages_show_a_row_for_each_agent(fleet: Line) -> None:
    """The tables have the figures of each agent, and the costs of all."""
    said = fleet.ok("pressure", "fleet-*")
    assert "fleet-2" in said and "1,020" in said and "%" in said and "sam" not in said
    said = fleet.ok("cost", "*")
    assert "USD" in said and "all" in said and "2,000" in said and "4,000" in said


def test_pressure_of_many_takes_a_time_and_no_seq(fleet: Line) -> None:
    """Each agent has seqs of its own; as of a time before everything there is no agent."""
    assert "each agent has seqs of its own" in fleet.fails("pressure", "--as-of", "3")
    assert fleet.json("pressure", "--as-of", "2020-01-01") == []


@pytest.mark.beside_store("the queries are counted where a command makes them")
@pytest.mark.parametrize("command", [["pressure"], ["cost", "--sort", "cost"]])
def test_a_listing_asks_the_views_once_and_reads_no_log(
    fleet: Line, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """One query answers for all agents, and no agent's log is opened."""
    asked: list[str] = []
    table = FleetViews.table

    def counted(self: FleetViews, query: str) -> object:
        asked.append(query)
        return table(self, query)

    def refuse(*_: object) -> None:
        raise AssertionError("a log was read")

    monkeypatch.setattr(FleetViews, "table", counted)
    for name in ("_pieces", "_states"):
        monkeypatch.setattr(PartitionReader, name, refuse)
    fleet.ok(*command)
    assert len(asked) == 1


@pytest.mark.parametrize("command", ["agents", "pressure", "cost"])
def test_a_listing_of_shared_agents_does_not_load_pandas(cli: Line, command: str) -> None:
    """Arrow imports pandas, if it is installed, when it first gets Python values; a listing gives it none."""
    cli.ok("create", "ann", "--placement", "shared")
    program = "import sys; from everlog.interfaces.cli.main import main; main(sys.argv[1:]); "
    program += "sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", program, "--store", str(cli.root), command, "--sort", "agent"], check=True)


def test_the_rows_agree_with_the_projection(fleet: Line) -> None:
    """Tokens, window and fraction are those of the projection `memory_pressure`, from the records of the agent."""
    store = FileStore(fleet.root, lambda: 0)
    for row in fleet.json("pressure"):
        with Projections() as projections:
            projections.load(store.reader(row["agent"]).table(row["agent"]))
            (known,) = projections.batch("memory_pressure", [(row["agent"], HEAD)])
        assert {key: row[key] for key in ("tokens", "window", "fraction", "warned")} == {
            key: known[key] for key in ("tokens", "window", "fraction", "warned")
        }
