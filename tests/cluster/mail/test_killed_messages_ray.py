"""Messages between agents in two shards of a Ray cluster, whose hosts are killed at every step of them."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.store import FileStore
from tests.actors.mail.test_killed_messages import judge
from tests.cluster.conftest import ends
from tests.cluster.mail.armed_host import arm
from tests.cluster.process_kills import actor, until
from tests.support.agents.killed_town import ENDS, SCENES, Scene, unfinished
from tests.support.agents.writing_agents import obedient
from tests.support.models.loopback_server import Loopback, Reply, serving

KILLS = int(os.environ.get("EVERLOG_KILLS", "1"))
"""Kills at each point: around and inside each commit."""
ROUND_S = 300
"""Seconds after which a round counts as stuck: a host that died four times in a row is started after a minute, and
starts slowly on a busy machine.
"""
TRIES = 10
"""Times that a round is played until a host dies, if a wait ends in it: an answer that was not asked for in time is no
step of the round.
"""
DEATH_S = 20
"""Seconds that a host may take to die: the last commit of a round may be in the log before its process has ended."""
STEPS = {
    "message": ("sam question", "eve arrival", "sam end", "eve answer", "sam reply", "eve end"),
    "wait": ("sam question", "eve arrival", "sam end", "sam reply", "eve answer", "eve end"),
    "broadcast": ("sam question", "bob arrival", "eve arrival", "sam end"),
    "group": (
        "team question", "bob arrival", "team end", "bob answer", "team reply", "team question2", "bob end",
        "eve arrival", "team end2", "eve answer", "team reply2", "eve end",
    ),
}  # fmt: skip
"""Commits with messages in a round of each scene, by agent and kind."""


def obeying(endpoint: Loopback, scene: Scene) -> None:
    """Let a server answer as the newest message of a request orders, and take its time for questions."""

    def answer(_headers: dict[str, str], body: bytes) -> Reply:
        newest = json.loads([one for one in json.loads(body)["messages"] if one["role"] == "user"][-1]["content"])
        if scene.pause_s and newest["type"] == "agent_message" and "(" in newest["message"]:
            threading.Event().wait(scene.pause_s)
        return 200, obedient(body)

    endpoint.answer = answer  # type: ignore[method-assign]


def described(folder: Path, endpoint: Loopback) -> None:
    """Describe the endpoint of the agents in a new store: one that a letter wakes in a new host has no caller."""
    folder.mkdir()
    models = f'[endpoints.obeying]\nurl = "{endpoint.url}"\nmodels = ["scripted"]\n'
    (folder / "models.toml").write_text(models)


async def armed(system: AgentSystem, stop: str, scene: Scene) -> Sequence[int]:
    """Let both hosts die at a point; return their process ids."""
    hosts = [actor(system, f"shard-00{number}") for number in (0, 1)]
    return [await host.__ray_call__.remote(arm, stop, scene.wait_s) for host in hosts]


def ended(pids: Sequence[int], milliseconds: int) -> Sequence[int]:
    """Return which processes have ended, as soon as one has, or after so many milliseconds."""
    until_ms = time.monotonic() * 1000 + milliseconds
    while True:
        if (died := [pid for pid in pids if ends(pid, 10)]) or time.monotonic() * 1000 >= until_ms:
            return died


async def played(system: AgentSystem, folder: Path, scene: Scene, number: int, stop: str) -> Sequence[int]:
    """Play a round whose host dies at the point `stop` (empty: at none). Return the processes that died."""
    order, said = scene.order.format(number), scene.said.format(number)
    for agent in scene.agents:  # a host that died in the last commit of a round starts again when it is needed
        await system.agent(agent)
    pids = await armed(system, stop, scene)
    async with asyncio.timeout(ROUND_S):
        await (await system.agent(scene.first)).send(order)
        await until(lambda: not unfinished(FileStore(folder, lambda: 0), scene, order, said))
    return ended(pids, 1000 * DEATH_S if stop else 0)


async def play(folder: Path, name: str, plans: Sequence[str]) -> int:
    """Play a round for each plan, whose host dies there, and one to its end. Return the number of kills."""
    scene, kills, rounds = SCENES[name], 0, 0
    with serving() as endpoint:
        obeying(endpoint, scene)
        described(folder, endpoint)
        async with open_system(folder, runtime="ray", placement="shared", shards=2) as system:
            for agent, settings in scene.agents.items():
                plain = {} if settings.members else {"model": "scripted", "verify_first": False}
                await system.agent(agent, msgspec.structs.replace(settings, **plain))
            for stop in [*plans, ""]:
                died: Sequence[int] = ()
                for _ in range(TRIES if stop and scene.wait_s else 1):
                    died = await played(system, folder, scene, rounds, stop)
                    rounds += 1
                    if died:
                        break
                assert bool(died) == bool(stop), f"{len(died)} hosts died at {stop!r}"
                kills += len(died)
    assert judge(folder, rounds, name) == rounds
    return kills


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.parametrize(("name", "step"), [(name, step) for name, steps in STEPS.items() for step in steps])
def test_a_host_is_killed_at_each_step_of_a_message(folder: Path, name: str, step: str) -> None:
    """A host dies before, in and after the commit of a step: each message arrives once, each answer comes back once,
    no wait is left, and no agent is stuck. EVERLOG_KILLS says how often at each point.
    """
    plans = [f"{step} {end}" for _ in range(KILLS) for end in ENDS]
    kills = asyncio.run(play(folder, name, plans))
    print(f"\n{name}, {step}: {kills} hosts killed at {len(plans)} points, each message and answer once")
