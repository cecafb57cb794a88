"""`everlog cluster shards` over a store beside it, without a cluster."""

import pytest

from everlog.actors.ports.real_clock import RealClock
from everlog.actors.sharding import shard_mover
from everlog.interfaces.fleet import shards_command
from everlog.store import SHARDS_MAX, FileStore
from tests.support.cli.command_line import Line

pytestmark = pytest.mark.beside_store("the command changes the store beside it")


def agents(cli: Line, count: int) -> None:
    """Create agents in a store with two shards."""
    for number in range(count):
        cli.ok("create", f"agent-{number}", "--placement", "shared", "--shards", "2")


def test_the_agents_move_to_the_new_shards(cli: Line) -> None:
    """The command says the new number and how many agents it moved; asked again, it moves none, and shows where all
    are.
    """
    agents(cli, 6)
    store = FileStore(cli.root, RealClock().now)
    store.set_shards(5)
    wrong = len(shard_mover.misplaced(store))
    assert wrong
    assert cli.ok("cluster", "shards", "5") == f"The store has 5 shards now; moved {wrong} agents.\n"
    assert cli.json("cluster", "shards", "5") == {"shards": 5, "moved": 0, "misplaced": 0, "faults": []}
    assert sum(cli.json("cluster", "shards")["agents"].values()) == 6


def test_a_change_that_another_follows_says_the_number_that_holds(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process changes the number while the agents move, the command says the newer number, and that it is
    not its own.
    """
    agents(cli, 1)

    def overtaken(store: FileStore) -> list[str]:
        store.set_shards(4)
        return []

    monkeypatch.setattr(shards_command, "misplaced", overtaken)
    assert cli.ok("cluster", "shards", "3").splitlines() == [
        "The store has 4 shards now; moved 0 agents.",
        "Another command changed the number after this one had changed it to 3.",
    ]


@pytest.mark.parametrize("number", ["0", str(SHARDS_MAX + 1)])
def test_a_number_that_no_store_can_have_is_refused_with_the_limit(cli: Line, number: str) -> None:
    """A number out of range is refused before anything is read, with the range that holds for shards."""
    code, _, error = cli("cluster", "shards", number)
    assert code == 2
    assert f"1 to {SHARDS_MAX}" in error


@pytest.mark.parametrize("setting", ["4", "8:2", "0:3", "2:1000"])
def test_up_refuses_a_range_that_is_none(cli: Line, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range that cannot be used is refused before anything is started, by option and by variable."""
    assert "such as 2:16" in cli.fails("up", "--shards-by-load", setting)
    monkeypatch.setenv("EVERLOG_SHARDS", setting)
    assert "such as 2:16" in cli.fails("up")
    assert not cli.root.exists()
