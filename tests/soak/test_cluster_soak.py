"""Memory and files of a cluster's processes do not grow while agents are activated and unloaded for minutes."""

import subprocess
import sys

import pytest

from tests.soak.cluster_soak import MIB, Look, Process, slope_of
from tests.soak.test_killed_processes import ROOT

MINUTES = 4
"""Minutes of the long run; `python -m tests.soak.cluster_soak --minutes N` takes N."""


@pytest.mark.long
@pytest.mark.soak
def test_a_cluster_with_churn_does_not_grow() -> None:
    """No process that runs all the time grows, neither hosts nor the head of the cluster."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.cluster_soak", "--minutes", str(MINUTES)],
        cwd=ROOT, capture_output=True, text=True, timeout=60 * (MINUTES + 3), check=False,
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gcs_server" in done.stdout
    assert "host of shard-000" in done.stdout


def test_growth_is_seen() -> None:
    """A process that grows by a MiB a second, or keeps files open, is reported; one that stays the same is not."""
    flat = [Look(float(at), 80 * MIB, 60 * MIB, 40) for at in range(60)]
    grows = [look._replace(private=look.private + round(look.at) * MIB) for look in flat]
    assert slope_of(flat) == 0
    assert round(slope_of(grows) / MIB) == 60
    assert not Process("flat", flat[0], flat[-1], 0).faults
    assert Process("grows", grows[0], grows[-1], 0).faults == ["grows grew by 59 MiB"]
    assert Process("files", flat[0], flat[-1]._replace(files=60), 0).faults
