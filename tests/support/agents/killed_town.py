"""A process to be killed around messages between agents: it plays a round of a scene, and waits at a point for a kill.

    python -m tests.support.agents.killed_town

imports everything (and opens nothing, because a fork copies no threads), then forks a child for each line of standard
input: [store, shared, number, stop, scene]. The child finishes what the log has left, then plays round `number` of the
scene, and waits at the point `stop` for SIGKILL. It ends when the last words of the round were said and nothing is on
its way. The scenes: an agent asks another one; it waits in vain; it asks one that moves meanwhile; it writes to all
with a label; a person talks to a group. `shared`: the agents are in two shards, so that messages pass from one to the
other.
"""

import asyncio
import gc
import json
import os
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import Command, MoveAgent, OpenAgent, ResumeTurns, SendInput
from everlog.actors.agent.fork_agent import open_turns_of
from everlog.actors.hosting.local_runtime import LocalRuntime, local_runtime
from everlog.actors.mail import mail_functions
from everlog.actors.mail.mail_functions import NAMES
from everlog.actors.mail.open_messages import OpenMessages
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock
from everlog.events import Busy, Draft, HostLost, UserMessage
from everlog.store import Append, Commit, FileLog, FileStore
from everlog.store.base.disk import RealFile
from tests.soak.killed_effects import WINDOW, Life, StoppingDisk, say
from tests.support.agents.writing_agents import obedient

SIGNS = {
    "agent_message_sent": "question", "agent_message_received": "arrival", "agent_reply_received": "reply",
    "agent_message_settled": "end", "agent_moved": "move",
}  # fmt: skip
"""Kinds of commits by the type of a record that is in no other commit."""
TRIES = 100
"""Times that a command is sent again to an agent that has moved."""
ENDS = ("torn", "written", "synced", "durable")
"""Points around and inside a commit."""


class Scene(msgspec.Struct, frozen=True):
    """Round of messages between agents."""

    agents: Mapping[str, Settings]
    """Settings by name; those whom others name come first."""
    first: str
    """Agent that a person talks to."""
    order: str
    """Words of the person; `{}` is the number of the round."""
    heard: Mapping[str, str]
    """Words that each agent hears once in a round, by its name: a whole line of an input."""
    said: str
    """Words with which `first` ends a round; empty: none."""
    kinds: Sequence[str]
    """Kinds of commits with messages in a round, in order."""
    states: Collection[str]
    """Possible states of the messages of `first` after a round."""
    moves: str = ""
    """Agent that moves out of its shard and back while the message is on its way; empty: none."""
    wait_s: float = 0
    """Seconds after which a wait ends; 0: after the usual time."""
    pause_s: float = 0
    """Seconds that the model takes for a reply of any agent but `first`."""

    @property
    def others(self) -> Sequence[str]:
        """Return the agents that are not `first`."""
        return [name for name in self.agents if name != self.first]

    @property
    def points(self) -> Sequence[str]:
        """Points of a round, in order: around and inside each commit with messages."""
        return [f"{kind} {end}" for kind in self.kinds for end in ENDS]


PERSON = Settings(model="offline", optional_functions=NAMES, window=WINDOW)
CREW = Settings(model="offline", optional_functions=NAMES, window=WINDOW, labels=("crew",))
SCENES = {
    "message": Scene(
        agents={"eve": PERSON, "sam": PERSON},
        first="sam",
        order="ask eve (say (round {}))",
        heard={"sam": "round {}", "eve": "say (round {})"},
        said="eve: round {}",
        kinds=("question", "arrival", "delivered", "answer", "reply", "returned"),
        states=("answered",),
    ),
    "wait": Scene(
        agents={"eve": PERSON, "sam": PERSON},
        first="sam",
        order="ask eve (say (round {}))",
        heard={},
        said="",
        kinds=("question", "arrival", "delivered", "reply", "answer", "returned"),
        states=("expired", "answered"),  # a process that starts may have the answer before it ends the wait
        wait_s=0.5,
        pause_s=1.2,
    ),
    "move": Scene(
        agents={"eve": PERSON, "sam": PERSON},
        first="sam",
        order="ask eve (say (round {}))",
        heard={"sam": "round {}", "eve": "say (round {})"},
        said="eve: round {}",
        kinds=("question", "arrival", "delivered", "answer", "reply", "returned", "move", "move2", "move3", "move4"),
        states=("answered",),
        moves="eve",
    ),
    "broadcast": Scene(
        agents={"bob": CREW, "eve": CREW, "sam": PERSON},
        first="sam",
        order="shout crew (hear round {})",
        heard={"bob": "hear round {}", "eve": "hear round {}"},
        said="",
        kinds=("question", "arrival", "arrival2", "delivered"),
        states=("delivered",),
    ),
    "group": Scene(
        agents={
            "bob": PERSON, "eve": PERSON,
            "team": Settings(model="group/round-robin", members=("bob", "eve"), window=WINDOW),
        },
        first="team",
        order="say (round {})",
        heard={"bob": "say (round {})", "eve": "say (round {})"},
        said="eve: round {}",
        kinds=(
            "question", "arrival", "delivered", "answer", "reply", "question2", "returned", "arrival2", "delivered2",
            "answer2", "reply2", "returned2",
        ),
        states=("answered",),
    ),
}  # fmt: skip


class Round(Life):
    """Progress of a process in a round."""

    def __init__(self, number: int, stop: str, scene: Scene) -> None:
        super().__init__("", number, stop)
        self.scene = scene
        self.commits = 0
        self.seen: Counter[str] = Counter()
        """Commits so far, by kind."""
        self._thread = threading.local()
        """The kinds of the commits that a thread is writing: each shard writes in a thread of its own."""

    def append_group(self, log: FileLog, appends: Sequence[Append]) -> list[Any]:
        """Append to `log`, with points around and inside the commits of the messages."""
        self.commits += len(appends)
        kinds = [kind for one in appends if (kind := self.kind(one.agent_id, one.drafts))]
        self._thread.kinds = kinds
        try:
            found = FileLog.append_group(log, appends)
        finally:
            self._thread.kinds = []
        for kind in kinds:
            self.reach(f"{kind} durable")
        return found

    def append(self, log: FileLog, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append one commit in the same way."""
        (found,) = self.append_group(log, [Append(agent_id, expected_seq, drafts)])
        if isinstance(found, Commit):
            return found
        raise found

    def write(self, file: RealFile, parts: Sequence[bytes], offset: int) -> None:
        kinds = getattr(self._thread, "kinds", [])
        if self.armed and self.stop in [f"{kind} torn" for kind in kinds]:
            frame = b"".join(parts)
            RealFile.write(file, [frame[: len(frame) // 2]], offset)
            self.reach(self.stop)
        RealFile.write(file, parts, offset)
        for kind in kinds:
            self.reach(f"{kind} written")

    def sync(self, file: RealFile) -> None:
        RealFile.sync(file)
        for kind in getattr(self._thread, "kinds", []):
            self.reach(f"{kind} synced")

    def kind(self, agent_id: str, drafts: Sequence[Draft]) -> str:
        """Return the kind of a commit; empty for one without a message."""
        types = {draft.type for draft in drafts}
        kind = next((kind for sign, kind in SIGNS.items() if sign in types), "")
        if kind == "end":
            kind = "delivered" if agent_id == self.scene.first else "returned"
        elif agent_id != self.scene.first and "message_sent" in types:
            kind = "answer"
        if not kind or not self.armed:
            return ""
        self.seen[kind] += 1
        return kind if self.seen[kind] == 1 else f"{kind}{self.seen[kind]}"


class WatchedStore(FileStore):
    """A store whose logs report their points to the life."""

    life: Round

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> FileLog:
        log = super().open_partition(partition, command, label=label, take_over=take_over)
        log.append = lambda *rest: self.life.append(log, *rest)  # type: ignore[method-assign]
        log.append_group = lambda appends: self.life.append_group(log, appends)  # type: ignore[method-assign]
        return log


async def obey(_name: str, _url: str, request: bytes, *_: object, **__: object) -> ModelResponse:
    """Answer as the newest message orders, without a model."""
    return ModelResponse(obedient(request), 1000)


async def play(folder: str, shared: bool, life: Round) -> None:
    """Finish what is left, then play the round."""
    scene, clock = life.scene, RealClock()
    store = WatchedStore.create(Path(folder), clock.now, "soak", shards=2, disk=StoppingDisk(life))
    assert isinstance(store, WatchedStore)
    store.life = life
    ports = Ports(clock=clock)

    async def ask(name: str, url: str, request: bytes, agent_id: str, *rest: object, **more: object) -> ModelResponse:
        await asyncio.sleep(scene.pause_s if agent_id != scene.first else 0)
        return await obey(name, url, request)

    runtime = local_runtime(store, ask, None, ports=ports, idle_s=60, timers=True)

    async def perform(kind: Callable[..., Command], name: str, **more: Any) -> None:
        command_id = ports.ids.new(clock.now())
        for _ in range(TRIES):
            try:
                await done(runtime, name, kind(id=command_id, **more))
                return
            except HostLost:  # a move that a killed process had begun is finished now: to be sent again, as all do
                continue
        raise AssertionError(f"{name} was lost {TRIES} times")

    for name, settings in scene.agents.items():
        if shared or name == scene.moves:
            store.register(name, shared=True)
        await perform(OpenAgent, name, settings=settings)
        await perform(ResumeTurns, name)
    assert not shared or len(set(map(store.partition_of, scene.agents))) == 2, "all agents are in one shard"
    await at_rest(store, life)
    if scene.moves:
        await moved(perform, scene.moves, shared=True)
        await perform(ResumeTurns, scene.moves)
    life.armed = True
    order = scene.order.format(life.number)
    if not any(record.text == order for record in store.reader(scene.first).read(scene.first)):
        await perform(SendInput, scene.first, event=UserMessage(text=order))
    if scene.moves:
        await moved(perform, scene.moves, shared=False)
        await perform(ResumeTurns, scene.moves)
        await moved(perform, scene.moves, shared=True)
        await perform(ResumeTurns, scene.moves)
    await at_rest(store, life, scene.said.format(life.number))
    life.reach("rest")
    await runtime.close()


async def moved(perform: Callable[..., Awaitable[None]], name: str, *, shared: bool) -> None:
    """Move an agent as soon as it is idle."""
    while True:
        try:
            await perform(MoveAgent, name, shared=shared)
            return
        except (Busy, HostLost):  # it is at work, or just arrived
            await asyncio.sleep(0.01)


async def done(runtime: LocalRuntime, agent_id: str, command: Any) -> None:
    """Have an agent carry out a command."""
    async for _ in runtime.perform(agent_id, command):
        pass


async def at_rest(store: FileStore, life: Round, said: str = "") -> None:
    """Wait until no message is on its way and no turn is open; and until the first agent has said `said`."""
    looks = 0
    while looks < 2:  # the agents are looked at one after the other, and a message may pass between two looks
        before = life.commits
        await asyncio.sleep(0.02)
        if life.commits != before:  # a look holds up the commits
            looks = 0
            continue
        left = unfinished(store, life.scene, "", said)
        looks = 0 if left else looks + 1


def unfinished(store: FileStore, scene: Scene, order: str, said: str) -> int:
    """Return how many messages are on their way, turns are open, and of `order` and `said` (empty: none) are missing in
    the log of the first agent.
    """
    left = 0
    for name in scene.agents:
        records, open_messages = list(store.reader(name).read(name)), OpenMessages()
        open_messages.add(records)
        turns = open_turns_of(records)
        left += len(turns) + len(open_messages.rows(turns))
        if name == scene.first:
            left += len({order, said} - {"", *(record.text for record in records)})
    return left


def live(order: list[Any]) -> NoReturn:
    """Run one order in a process of its own, and exit."""
    code = 1
    try:
        say("life", os.getpid())
        folder, shared, number, stop, scene = order
        if wait_s := SCENES[scene].wait_s:
            mail_functions.MICROSECONDS = round(wait_s * 1_000_000 / (mail_functions.WAIT_MINUTES * 60))
        asyncio.run(play(folder, shared, Round(number, stop, SCENES[scene])))
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


def main() -> None:
    """Fork a child for each order, one after the other."""
    gc.freeze()
    mail_functions.PER_MINUTE_MAX = 10_000  # rounds are faster than conversations
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            live(json.loads(line))
        say("dead", os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
