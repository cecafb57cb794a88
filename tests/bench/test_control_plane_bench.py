"""The benchmark of the control plane drives the supervisor that runs in production, over nodes that die."""

import asyncio
import json

import pytest

from bench.growth.control_plane import main, measure
from everlog.actors.ports import agent_constants
from everlog.store.base.store_constants import SHARDS_MAX
from tests.tidy.parsed_source import ROOT


@pytest.mark.parametrize(("placement", "hosts"), [("dedicated", 600), ("shared", None)])
def test_every_agent_has_a_host_again_after_a_node_died(placement: str, hosts: int | None) -> None:
    """All agents are placed, each with its timer, and the hosts of the lost node run elsewhere when the run ends."""
    found = asyncio.run(measure(placement, 600, 3))
    assert (found.timers, found.timers_left_out) == (600, 0)
    assert found.hosts == hosts if hosts else 0 < found.hosts < 600, "shared: several agents have one host"
    assert abs(found.lost_hosts - found.hosts / 3) <= 1, "nodes have equal shares"
    assert found.place_cpu_us > 0
    assert found.total_mib > 0


def test_the_figures_are_printed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON is printed for each placement that is asked for, and impossible sizes are refused."""
    assert main(["--agents", "20", "--nodes", "2", "--placement", "shared"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["placement"] == "shared"
    with pytest.raises(SystemExit):
        main(["--agents", "3", "--nodes", "9"])


def test_the_page_names_the_limits_of_the_code() -> None:
    """Each limit of docs/explanation/scale.md is the constant that is enforced."""
    page = (ROOT / "docs" / "explanation" / "scale.md").read_text(encoding="utf-8")
    limits = {
        "ACTIVATIONS_MAX": agent_constants.ACTIVATIONS_MAX,
        "SHARDS_MAX": SHARDS_MAX,
        "TIMED_AGENTS_MAX": agent_constants.TIMED_AGENTS_MAX,
        "STARTS_WAITING_MAX": agent_constants.STARTS_WAITING_MAX,
    }
    for name, limit in limits.items():
        assert f"(`{name}`) | {limit:,} |" in page
