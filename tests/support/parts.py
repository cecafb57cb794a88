"""Name the parts of the deep suite, each of which takes 20 minutes at most: `pytest -m "long and NAME"` runs one."""

import pytest

PARTS = {
    "simulation": "many thousand simulated disks, clocks and processes under the store",
    "hosts": "many thousand simulated hosts, supervisors, timers and shards",
    "agents": "turns that are cut, forked, verified and edited at every place",
    "effects": "turns that are killed at every pair of points, in this process and in real ones",
    "models": "real models, and a million damaged replies",
    "laws": "projections, codecs and views over many more random logs",
    "storage": "the store on a real disk: crashes, rot, backups and owners at every step",
    "damage": "every kind of file of a store, damaged in every way, one and two at once, and cured",
    "contract": "the contract of agents that share a partition, where it is that of all agents",
    "clients": "published programs of others, installed for the test, against a server",
    "commands": "commands that are interrupted at every step, and what a person's SQL cannot do",
    "cluster": "agents on a Ray of this machine",
    "nodes": "hosts, nodes and heads of a Ray cluster that are killed under load",
    "soak": "use without a pause: processes that are killed again and again for a quarter of an hour",
    "bench": "benchmarks that start a Ray of their own",
}
"""The parts by name of the marker, each with its subject."""


def check(item: pytest.Item) -> None:
    """Raise UsageError unless a deep test has exactly one part, and an ordinary test none."""
    named = sorted({mark.name for mark in item.iter_markers() if mark.name in PARTS})
    if len(named) != (item.get_closest_marker("long") is not None):
        raise pytest.UsageError(
            f"{item.nodeid} is of the parts {named}: a test that is marked long is of one part, any other of none"
        )
