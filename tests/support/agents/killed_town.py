"""A process to be killed around messages between agents: it plays a round of a scene, and waits at a point for a kill.

    python -m tests.support.agents.killed_town

imports everything (and opens nothing, because a fork copies no threads), then forks a child for each line of standard
input: [store, shared, number, stop, scene]. The child finishes what the log has left, then plays round `number` of the
scene, and waits at the point `stop` for SIGKILL. It ends when the last words of the round were said and nothing is on
its way. The scenes: an agent asks another one; it writes to all with a label; a person talks to a group.
"""

import asyncio
import gc
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import OpenAgent, ResumeTurns, SendInput
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.hosting.local_runtime import LocalRuntime, local_runtime
from everlog.actors.mail import mail_functions
from everlog.actors.mail.mail_functions import NAMES
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock
from everlog.events import Draft, UserMessage
from everlog.store import Commit, FileLog
from tests.soak.killed_effects import WINDOW, Life, StoppingDisk, StoppingStore, say
from tests.support.agents.writing_agents import obedient

SIGNS = {
    "agent_message_sent": "question", "agent_message_received": "arrival", "agent_reply_received": "reply",
    "agent_message_settled": "end",
}  # fmt: skip
"""Kinds of commits by the type of a record that is in no other commit."""
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
    state: str
    """State of all messages of `first` after a round."""

    @property
    def points(self) -> Sequence[str]:
        """Points of a round, in order: around and inside each commit with messages."""
        return [f"{kind} {end}" for kind in self.kinds for end in ENDS]


PERSON = Settings(model="offline", optional_functions=NAMES, window=WINDOW)
CREW = Settings(model="offline", optional_functions=NAMES, window=WINDOW, labels=("crew",))
SCENES = {
    "message": Scene(
        agents={"bob": PERSON, "sam": PERSON},
        first="sam",
        order="ask bob (say (round {}))",
        heard={"sam": "round {}", "bob": "say (round {})"},
        said="bob: round {}",
        kinds=("question", "arrival", "delivered", "answer", "reply", "returned"),
        state="answered",
    ),
    "broadcast": Scene(
        agents={"bob": CREW, "eve": CREW, "sam": PERSON},
        first="sam",
        order="shout crew (hear round {})",
        heard={"bob": "hear round {}", "eve": "hear round {}"},
        said="",
        kinds=("question", "arrival", "arrival2", "delivered"),
        state="delivered",
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
        state="answered",
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

    def append(self, log: FileLog, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append to `log`, with points around and inside the commits of the messages."""
        self.commits += 1
        self.appending = self.kind(agent_id, drafts)
        commit = FileLog.append(log, agent_id, expected_seq, drafts)
        kind, self.appending = self.appending, ""
        if kind:
            self.reach(f"{kind} durable")
        return commit

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


async def obey(_name: str, _url: str, request: bytes, *_: object, **__: object) -> ModelResponse:
    """Answer as the newest message orders, without a model."""
    return ModelResponse(obedient(request), 1000)


async def play(folder: str, shared: bool, life: Round) -> None:
    """Finish what is left, then play the round."""
    scene = life.scene
    clock = RealClock()
    store = StoppingStore.create(Path(folder), clock.now, "soak", shards=1, disk=StoppingDisk(life))
    assert isinstance(store, StoppingStore)
    store.life = life
    ports = Ports(clock=clock)
    runtime = local_runtime(store, obey, None, ports=ports, idle_s=60, timers=True)
    for name, settings in scene.agents.items():
        if shared:
            store.register(name, shared=True)
        await done(runtime, name, OpenAgent(id=ports.ids.new(clock.now()), settings=settings))
        await done(runtime, name, ResumeTurns(id=ports.ids.new(clock.now())))
    await at_rest(store, life)
    life.armed = True
    order = scene.order.format(life.number)
    if not any(record.text == order for record in store.reader(scene.first).read(scene.first)):
        asked = UserMessage(text=order)
        await done(runtime, scene.first, SendInput(id=ports.ids.new(clock.now()), event=asked))
    await at_rest(store, life, scene.said.format(life.number))
    life.reach("rest")
    await runtime.close()


async def done(runtime: LocalRuntime, agent_id: str, command: Any) -> None:
    """Have an agent carry out a command."""
    async for _ in runtime.perform(agent_id, command):
        pass


async def at_rest(store: StoppingStore, life: Round, said: str = "") -> None:
    """Wait until no message is on its way and no turn is open; and until the first agent has said `said`."""
    system, looks = LocalSystem(store), 0
    scene = life.scene
    while looks < 2:  # the agents are looked at one after the other, and a message may pass between two looks
        before = life.commits
        await asyncio.sleep(0.02)
        if life.commits != before:  # a look takes as long as many commits, which it holds up
            looks = 0
            continue
        left = 0
        for name in scene.agents:
            view = system.view(name)
            left += sum(
                row["state"] in ("pending", "waiting", "working", "ready") for row in view.rows("agent_messages")
            )
            left += len(view.rows("open_turns"))
            if name == scene.first and said:
                left += not any(row["text"] == said for row in view.rows("recall_memory"))
            view.close()
        looks = 0 if left else looks + 1


def live(order: list[Any]) -> NoReturn:
    """Run one order in a process of its own, and exit."""
    code = 1
    try:
        say("life", os.getpid())
        folder, shared, number, stop, scene = order
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
