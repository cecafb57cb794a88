"""Modules in the process of a dedicated agent: each costs every such process time and memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HOST = """
import asyncio, json, sys
from pathlib import Path
import ray, ray.actor
before = set(sys.modules)
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import CommandResult, OpenAgent, SendInput
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.host_actors import DedicatedActor
from everlog.actors.cluster.placement import FenceRight, dedicated
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import UserMessage
from everlog.store import FileStore, HostMark

ray_api.own_node = lambda: "here"
ray_api.find_actor = lambda *_: None
ids, now, root = RealIds(), RealClock().now, Path(sys.argv[1])
FileStore.create(root, now, "store").register("sam")

async def done(host, command):
    return [got async for got in host.perform("sam", command)][-1]

async def main():
    found = []
    for message in ("Hi, I am Ann and I sail.", "And I bake."):
        host = DedicatedActor(str(root), dedicated("sam"), 600, FenceRight(HostMark("here", 1)))
        await host.ready()
        last = [await done(host, OpenAgent(id=ids.new(now()), settings=Settings(model=OFFLINE)))]
        last.append(await done(host, SendInput(id=ids.new(now()), event=UserMessage(text=message))))
        found.append({"failed": [str(one) for one in last if not isinstance(one, CommandResult)],
                      "modules": sorted(set(sys.modules) - before)})
        await host.close()
    print(json.dumps(found))

asyncio.run(main())
"""
"""A host's actor without a cluster: it opens an agent and answers, closes, opens it again from its log and answers."""

HEAVY = {"pandas", "lancedb", "openai", "wordllama", "scipy", "sklearn", "httpx", "rich"}
"""Packages that the process of one agent never needs."""

OF_OTHERS = {
    "everlog.actors.gateway.gateway", "everlog.actors.hosting.shard", "everlog.actors.hosting.shard_journal",
    "everlog.actors.hosting.pending_work", "everlog.store.archive",
    "pyarrow.parquet",
}  # fmt: skip
"""Modules for the work of the gateway, of shards and of sealed files."""

OURS_MAX = 304
"""Modules of everlog in the process after the first reply: 0.6 ms and 40 kB each."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[str]]]:
    """Return the modules of a host's process beyond Ray's: after the first reply, and after another from its log."""
    run = subprocess.run(
        [sys.executable, "-c", HOST, str(tmp_path_factory.mktemp("thin") / "store")],
        capture_output=True, text=True, cwd=ROOT, check=False, env={**os.environ}, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    answers: list[dict[str, list[str]]] = json.loads(run.stdout.splitlines()[-1])
    return answers


@pytest.mark.parametrize("life", [0, 1], ids=["new", "from-its-log"])
def test_the_process_of_an_agent_is_thin(found: list[dict[str, list[str]]], life: int) -> None:
    """After its first reply the process has loaded DuckDB and Arrow, no heavy package, and nothing of other actors."""
    assert found[life]["failed"] == []
    modules = set(found[life]["modules"])
    assert {"duckdb", "pyarrow"} <= modules
    assert {name.partition(".")[0] for name in modules} & HEAVY == set()
    assert modules & OF_OTHERS == set()


def test_the_number_of_modules_is_known(found: list[dict[str, list[str]]]) -> None:
    """A module that is added to every agent's process is added on purpose."""
    ours = [name for name in found[0]["modules"] if name.startswith("everlog.")]
    assert len(ours) <= OURS_MAX, f"{len(ours)} modules: import what a reply does not need when it is needed"
