"""A process to be killed around a message between two agents: it plays a round, and waits at a point for the kill.

    python -m tests.support.agents.killed_town

imports everything (and opens nothing, because a fork copies no threads), then forks a child for each line of standard
input: [store, shared, number, stop]. The child finishes what the log has left, then has `sam` ask `bob` for round
`number`, and waits at the point `stop` for SIGKILL. It ends when sam has said the answer and nothing is on its way.
"""

import asyncio
import gc
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

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
from tests.soak.killed_effects import Life, StoppingDisk, StoppingStore, say
from tests.support.agents.writing_agents import obedient

SIGNS = {
    "agent_message_sent": "question", "agent_message_received": "arrival", "agent_reply_received": "reply",
    "agent_message_settled": "end",
}  # fmt: skip
"""Kinds of commits by the type of a record that is in no other commit."""
KINDS = ("question", "arrival", "delivered", "answer", "reply", "returned")
POINTS = tuple(f"{kind} {end}" for kind in KINDS for end in ("torn", "written", "synced", "durable"))
"""Points of a round, in order: around and inside each commit of the question and of its answer."""
AGENTS = ("sam", "bob")


class Round(Life):
    """Progress of a process in a round."""

    def __init__(self, number: int, stop: str) -> None:
        super().__init__("", number, stop)

    def append(self, log: FileLog, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append to `log`, with points around and inside the commits of the messages."""
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
            return "delivered" if agent_id == "sam" else "returned"
        return "answer" if agent_id == "bob" and "message_sent" in types else kind


async def obey(_name: str, _url: str, request: bytes, *_: object, **__: object) -> ModelResponse:
    """Answer as the newest message orders, without a model."""
    return ModelResponse(obedient(request), 1000)


async def play(folder: str, shared: bool, life: Round) -> None:
    """Finish what is left, then play the round."""
    clock = RealClock()
    store = StoppingStore.create(Path(folder), clock.now, "soak", shards=1, disk=StoppingDisk(life))
    assert isinstance(store, StoppingStore)
    store.life = life
    ports = Ports(clock=clock)
    runtime = local_runtime(store, obey, None, ports=ports, idle_s=60, timers=True)
    settings = Settings(model="offline", optional_functions=NAMES)
    for name in AGENTS:
        if shared:
            store.register(name, shared=True)
        await done(runtime, name, OpenAgent(id=ports.ids.new(clock.now()), settings=settings))
        await done(runtime, name, ResumeTurns(id=ports.ids.new(clock.now())))
    await at_rest(store)
    life.armed = True
    if not any(record.text == order(life.number) for record in store.reader("sam").read("sam")):
        asked = UserMessage(text=order(life.number))
        await done(runtime, "sam", SendInput(id=ports.ids.new(clock.now()), event=asked))
    await at_rest(store, f"bob: round {life.number}")
    life.reach("rest")
    await runtime.close()


def order(number: int) -> str:
    """Return what a person says to sam in a round."""
    return f"ask bob (say (round {number}))"


async def done(runtime: LocalRuntime, agent_id: str, command: Any) -> None:
    """Have an agent carry out a command."""
    async for _ in runtime.perform(agent_id, command):
        pass


async def at_rest(store: StoppingStore, said: str = "") -> None:
    """Wait until no message is on its way and no turn is open; and until sam has said `said`."""
    system = LocalSystem(store)
    while True:
        left = 0
        for name in AGENTS:
            view = system.view(name)
            left += sum(
                row["state"] in ("pending", "waiting", "working", "ready") for row in view.rows("agent_messages")
            )
            left += len(view.rows("open_turns"))
            if name == "sam" and said:
                left += not any(row["text"] == said for row in view.rows("recall_memory"))
            view.close()
        if not left:
            return
        await asyncio.sleep(0.002)


def live(order: list[Any]) -> NoReturn:
    """Run one order in a process of its own, and exit."""
    code = 1
    try:
        say("life", os.getpid())
        folder, shared, number, stop = order
        asyncio.run(play(folder, shared, Round(number, stop)))
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
