"""Messages between agents under real kills: a process is killed at every point of a question and of its answer."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.replay.rebuild_check import verify
from everlog.events import AgentMessageSent, AgentReplyReceived, MessageSent, UserMessage, event_of
from everlog.store import FileStore, check
from tests.soak.effects_audit import Zygote
from tests.support.agents.killed_town import ENDS, SCENES
from tests.support.seeds import pick

ANYWHERE = "anywhere"


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """Yield the process that forks the processes to be killed."""
    found = Zygote(module="tests.support.agents.killed_town")
    yield found
    found.close()


def killed(
    zygote: Zygote, folder: Path, plans: Sequence[str], chance: random.Random, *, shared: bool, scene: str
) -> int:
    """Play a round for each plan and kill it there, between two rounds that are played to their end. Return the number
    of rounds.
    """

    def whole(number: int) -> float:
        """Play a round to its end. Return how many seconds it took."""
        start = time.monotonic()
        zygote.order(str(folder), shared, number, "", scene)
        assert dead(zygote) == 0
        return time.monotonic() - start

    took = whole(0)  # as long as a round takes here, a kill at a random moment may wait
    for number, plan in enumerate(plans, start=1):
        zygote.order(str(folder), shared, number, "rest" if plan == ANYWHERE else plan, scene)
        pid = until(zygote, "" if plan == ANYWHERE else plan)
        if plan == ANYWHERE:
            moment = time.monotonic() + chance.uniform(0, took)
            assert ["dead"] not in [line[:1] for line in zygote.heard(moment)]
        os.kill(pid, signal.SIGKILL)
        assert dead(zygote) == signal.SIGKILL
    whole(len(plans) + 1)
    return len(plans) + 2


def until(zygote: Zygote, point: str) -> int:
    """Read lines until the process has started, and has reached the point if one is named. Return its id."""
    pid = 0
    for kind, *words in zygote.heard():
        assert kind != "dead", f"a process ended by itself before it came to {point!r}: {words}"
        pid = words[0] if kind == "life" else pid
        if (kind == "life" and not point) or (kind == "point" and words == [point]):
            break
    return pid


def dead(zygote: Zygote) -> int:
    """Read lines until the process has ended. Return its status."""
    return next(words[0] for kind, *words in zygote.heard() if kind == "dead")


def judge(folder: Path, rounds: int, name: str) -> int:
    """Check that each message arrived once, that each answer came back once, and that nothing waits. Return the number
    of rounds; one that was killed before it was durable was never begun.
    """
    store, scene = FileStore(folder, lambda: 0), SCENES[name]
    assert [error for name in store.partitions() for error in check(store.partition(name), deep=True).errors] == []
    system = LocalSystem(store)
    lines: dict[str, Counter[str]] = {}
    for agent in scene.agents:
        view = system.view(agent)
        report = verify(view, system.tools)
        states = {row["state"] for row in view.rows("agent_messages")}
        events = [event_of(record) for record in view.reader.read(agent)]
        view.close()
        assert (report.faults, report.mismatches) == ([], [])
        assert states <= set(scene.states if agent == scene.first else ("answered", "received"))
        ends = Counter(event.message for event in events if isinstance(event, AgentReplyReceived))
        asked = [event for event in events if isinstance(event, AgentMessageSent) and event.expires_at]
        assert (set(ends.values()), len(ends)) == ({1} if asked else set(), len(asked))
        words = [e.text or "" for e in events if isinstance(e, UserMessage)]
        lines[agent] = Counter(line for text in words for line in text.splitlines())
        said = Counter(event.text for event in events if isinstance(event, MessageSent))
        if agent == scene.first:
            begun = [number for number in range(rounds) if lines[agent][scene.order.format(number)]]
            assert {lines[agent][scene.order.format(number)] for number in begun} == {1}
            assert not scene.said or {said[scene.said.format(number)] for number in begun} == {1}
    for agent, words in scene.heard.items():
        assert [lines[agent][words.format(n)] for n in range(rounds)] == [int(n in begun) for n in range(rounds)]
    return len(begun)


def play(zygote: Zygote, folder: Path, plans: Sequence[str], seed: int, *, shared: bool, scene: str) -> int:
    """Kill rounds as planned, and check the logs after all of them. Return the number of rounds that were begun."""
    rounds = killed(zygote, folder, plans, random.Random(seed), shared=shared, scene=scene)
    return judge(folder, rounds, scene)


@pytest.mark.parametrize("scene", ["message", "broadcast", "group"])
def test_a_kill_at_each_point_of_a_message_loses_and_doubles_nothing(
    tmp_path: Path, zygote: Zygote, scene: str
) -> None:
    """A process dies in any commit of a question, a message to a label or a round of a group: each message arrives
    once, each answer comes back once, and no wait is left.
    """
    plans = pick(SCENES[scene].points, 1, label=f"points of a {scene}")
    assert play(zygote, tmp_path, plans, 1, shared=False, scene=scene) >= len(plans)


@pytest.mark.parametrize("scene", ["message", "move"])
def test_a_kill_at_each_point_between_two_shards_loses_and_doubles_nothing(
    tmp_path: Path, zygote: Zygote, scene: str
) -> None:
    """The same holds for agents in two shards, each of which writes the commits of many agents at once."""
    plans = pick(SCENES[scene].points, 1, label=f"points of a {scene} between shards")
    assert play(zygote, tmp_path, plans, 1, shared=True, scene=scene) >= len(plans)


EVERY_KIND = [(scene, kind) for scene, one in SCENES.items() for kind in (*one.kinds, ANYWHERE)]


@pytest.mark.long
@pytest.mark.effects
@pytest.mark.parametrize(("scene", "point"), EVERY_KIND)
@pytest.mark.parametrize("shared", [False, True])
def test_many_kills_at_each_point_of_a_message(
    tmp_path: Path, zygote: Zygote, scene: str, point: str, shared: bool
) -> None:
    """The same holds for 100 kills at each commit: a quarter each in the three points during it, and after it."""
    plans = [ANYWHERE] * 100 if point == ANYWHERE else [f"{point} {end}" for end in ENDS for _ in range(25)]
    chance = random.Random(7)
    chance.shuffle(plans)
    begun = sum(
        play(zygote, tmp_path / str(at), plans[at : at + 25], at, shared=shared, scene=scene)
        for at in range(0, len(plans), 25)
    )
    where = "two shards" if shared else "own logs"
    print(f"\n{scene}, {point}, {where}: {len(plans)} kills, {begun} rounds, each message and answer once")
