"""docs/cluster.md is correct as far as a test can check: its commands, names, limits and links exist."""

import re

from everlog.actors.hosting.metrics import COUNTERS, GAUGES, HISTOGRAMS
from everlog.actors.ports import agent_constants
from tests.docs.test_docs_examples import ROOT

PAGE = ROOT / "docs" / "reference" / "cluster.md"
WHOLE = PAGE.read_text(encoding="utf-8")
TEXT = re.sub(r"<!--.*?-->", "", WHOLE, flags=re.DOTALL)


def test_every_metric_is_named() -> None:
    """The page names every existing metric, and no other."""
    named = set(re.findall(r"`(everlog_\w+)`", TEXT))
    assert named == {*COUNTERS, *GAUGES, *HISTOGRAMS}


def test_the_limits_are_those_of_the_code() -> None:
    """A number in the table of limits is the constant that is enforced."""
    for number in (agent_constants.INBOX_MAX, agent_constants.ASKS_WAITING_MAX):
        assert f"| {number:,}" in TEXT
    assert f"with {agent_constants.ASKS_MAX} under way" in TEXT
    assert f"| {agent_constants.ACTIVATIONS_MAX} by the supervisor" in TEXT


def test_the_slots_are_those_of_the_cluster_file() -> None:
    """A worker of the sizing table has as many slots as the cluster files give to a worker."""
    slots = re.search(r"agent_slot: (\d+)", (ROOT / "ray_cluster.yaml").read_text(encoding="utf-8"))
    assert slots is not None
    assert f"| {slots[1]} |" in TEXT
