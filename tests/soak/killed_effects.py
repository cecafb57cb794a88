"""A process to be killed around a call: it plays a round with an agent, and waits at a point until it is killed.

    python -m tests.soak.killed_effects [GUARD]

imports everything (and opens nothing, because a fork copies no threads), then forks a child for each line of standard
input: [store, agent, row, number, stop]. The child finishes an interrupted turn, then sends round `number`, whose reply
calls the function of `row`; at the point `stop` it waits for SIGKILL. Its outside effects are lines of its standard
output: a line in that pipe has happened, and no kill removes it.

`GUARD` names a guard of the agent that is broken on purpose; see GUARDS.
"""

import asyncio
import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from everlog.actors.agent import turn_runner, undo
from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.decide import ReplyExecution
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.functions.external_call import ExternalCall
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock
from everlog.actors.rules import approval_rules
from everlog.events import ApprovalDecided, Draft, Record, UserMessage
from everlog.store import Commit, FileLog, FileStore, RealDisk
from everlog.store.base.disk import RealFile
from tests.soak.effect_functions import FUNCTIONS, functions
from tests.support.agent_world import completion
from tests.support.agent_world import say as spoken

SIGNS = {"function_started": "intent", "approval_requested": "request", "approval_decided": "decision"}
"""Kinds of commits by the type of a record that is in no other commit."""
BEFORE = {"intent": "before intent", "result": "returned"}
"""Points right before a commit of a kind."""
DURABLE = ("request", "decision", "result")
"""Kinds of commits with a point after their acknowledgement. After that of an intent comes "before dispatch"."""
WINDOW = 32_768
"""Window in tokens, with room for all rounds of an agent, so that no summary is requested in between."""


def say(*words: Any) -> None:
    """Write one line in one system call, so that it is never cut short."""
    os.write(1, json.dumps(words).encode() + b"\n")


class Life:
    """Progress of a process, and the point at which it stops. Points are reported once the interrupted turn is
    finished.
    """

    def __init__(self, row: str, number: int, stop: str) -> None:
        self.row = row
        self.number = number
        self.stop = stop
        self.armed = False
        self.appending = ""

    def reach(self, point: str) -> None:
        if self.armed:
            say("point", point)
            if point == self.stop:
                stand_still()

    def act(self, number: int, key: str = "") -> str:
        """Do what every function of a row does: one outside effect."""
        self.reach("before dispatch")
        say("call", number, key)
        self.reach("dispatched")
        return f"done {number}"

    def append(self, log: FileLog, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append to `log`, with points around and inside the commits of the intent and of the result."""
        kind = self.kind_of(drafts)
        if kind in BEFORE:
            self.reach(BEFORE[kind])
        self.appending = kind
        commit = FileLog.append(log, agent_id, expected_seq, drafts)
        self.appending = ""
        if kind in DURABLE:
            self.reach(f"{kind} durable")
        return commit

    def kind_of(self, drafts: Sequence[Draft]) -> str:
        types = {draft.type for draft in drafts}
        if kind := next((kind for sign, kind in SIGNS.items() if sign in types), ""):
            return kind
        mine = f'"{FUNCTIONS[self.row]}"'
        return "result" if any(d.type == "function_result" and mine in d.payload for d in drafts) else ""

    def write(self, file: RealFile, parts: Sequence[bytes], offset: int) -> None:
        if self.armed and self.appending and self.stop == f"{self.appending} torn":
            frame = b"".join(parts)
            RealFile.write(file, [frame[: len(frame) // 2]], offset)
            self.reach(self.stop)
        RealFile.write(file, parts, offset)
        if self.appending:
            self.reach(f"{self.appending} written")

    def sync(self, file: RealFile) -> None:
        RealFile.sync(file)
        if self.appending:
            self.reach(f"{self.appending} synced")


def stand_still() -> NoReturn:
    """Wait to be killed; the end of standard input ends a process that is not killed."""
    os.read(0, 1)
    os._exit(3)


class Player:
    """A model that plays the rounds: its reply depends on the request alone."""

    name = "scripted"

    def __init__(self, life: Life) -> None:
        self.life = life

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        messages = json.loads(request)["messages"]
        users = [json.loads(message["content"]) for message in messages if message["role"] == "user"]
        number = [int(u["message"].split()[1]) for u in users if u["type"] == "user_message"][-1]
        if self.life.row == "model":
            self.life.act(number)
        elif users[-1]["type"] == "user_message":
            asked = {"number": number, "request_heartbeat": True}
            return ModelResponse(completion(calls=[(FUNCTIONS[self.life.row], asked)]), 1000)
        told = next(m["content"] for m in reversed(messages) if m["role"] == "tool")
        say("told", number, messages[-1]["content"] if users[-1]["type"] == "function_result" else told)
        return ModelResponse(spoken(f"Round {number} is over."), 1000)

    async def close(self) -> None:
        pass


class StoppingDisk(RealDisk):
    """The real disk, whose files report their points to the life."""

    def __init__(self, life: Life) -> None:
        self.life = life

    def create(self, path: Path) -> RealFile:
        return self._watched(super().create(path))

    def open(self, path: Path) -> RealFile:
        return self._watched(super().open(path))

    def _watched(self, file: RealFile) -> RealFile:
        file.write = lambda parts, offset: self.life.write(file, parts, offset)  # type: ignore[method-assign]
        file.sync = lambda: self.life.sync(file)  # type: ignore[method-assign]
        return file


class StoppingStore(FileStore):
    """The store in a folder, whose logs report their points to the life."""

    life: Life

    def open(self, agent_id: str, command: str, *, take_over: bool = False, expected: str | None = None) -> FileLog:
        log = super().open(agent_id, command, take_over=take_over, expected=expected)
        log.append = lambda *rest: self.life.append(log, *rest)  # type: ignore[method-assign]
        return log


def shown(records: Sequence[Record]) -> None:
    """Print the ids of acknowledged records."""
    say("kept", [record.event_id for record in records])


async def approve(agent: Agent) -> None:
    """Approve the call that waits, if one does: as a person would who got no answer from a killed process."""
    for row in await agent.rows("approvals"):
        if row["decision"] == "waiting":
            call = {name: row[name] for name in ("call_id", "name", "arguments")}
            await agent.receive(ApprovalDecided(request=row["seq"], decision="approved", **call))
    await agent.run()


async def play(folder: str, agent_id: str, life: Life) -> None:
    """Finish an interrupted turn, then play the round."""
    clock = RealClock()
    store = StoppingStore.create(Path(folder), clock.now, "soak", disk=StoppingDisk(life))
    assert isinstance(store, StoppingStore)
    store.life = life
    system = LocalSystem(store, models=lambda _: Player(life), tools=functions(life.act), ports=Ports(clock=clock))
    settings = Settings(model="scripted", window=WINDOW)
    async with system.agent(agent_id, settings, command="soak", on_commit=shown) as agent:
        await agent.run()
        await approve(agent)
        assert agent.waiting == 0
        await agent.receive(UserMessage(text=f"round {life.number}"))
        life.armed = True
        await agent.run()
        await approve(agent)
        life.reach("rest")


def live(order: list[Any]) -> NoReturn:
    """Run one order in a process of its own, and exit."""
    code = 1
    try:
        say("life", os.getpid())
        folder, agent_id, row, number, stop = order
        asyncio.run(play(folder, agent_id, Life(row, number, stop)))
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


def _no_approval() -> None:
    """Break a guard: run a call that must wait for an approval at once."""
    approval_rules.action_for = lambda *_: "allow"


def _no_intent() -> None:
    ExternalCall.intended = False


def _effect_first() -> None:
    """Break a guard: run the function before the commit of its intent."""
    started, results = ReplyExecution.started, {}

    def run_first(step: ReplyExecution, outside: ExternalCall) -> None:
        results[step, outside.key] = outside.tool.function(**outside.arguments)
        started(step, outside)

    async def take(_: turn_runner.TurnRunner, work: ReplyExecution, outside: ExternalCall, *_more: object) -> None:
        work.ended(outside, results[work, outside.key])

    ReplyExecution.started, turn_runner.TurnRunner._run_outside = run_first, take


def _run_again() -> None:
    """Break a guard: run an interrupted call again, as if it had not started."""
    given = ReplyExecution.given
    ReplyExecution.given = lambda step, result: None if result.unknown else given(step, result)


def _another_key() -> None:
    """Break a guard: make the key depend on the process, not on the call."""
    made = turn_runner.TurnRunner._step

    def step(self: turn_runner.TurnRunner, *arguments: Any) -> ReplyExecution:
        work = made(self, *arguments)
        work._place += f"/{os.getpid()}"
        work._keys = {}
        return work

    turn_runner.TurnRunner._step = step


def _not_told() -> None:
    undo.INTERRUPTED = "It failed."


def _not_taken_up() -> None:
    """Break a guard: begin an interrupted turn at its first step again."""

    async def first(self: turn_runner.TurnRunner, turn: int) -> tuple[str, int, bool]:
        records = [row for row in await self._agent.rows("turn_records") if row["turn"] == turn]
        return str(records[0]["event_id"]), 1, True

    turn_runner.TurnRunner._resume_point = first


GUARDS: dict[str, Callable[[], None]] = {
    "the intent is durable first": _no_intent,
    "an intent is committed before its effect": _effect_first,
    "what may have happened is not run again": _run_again,
    "the same call has the same key": _another_key,
    "the model is told": _not_told,
    "a turn goes on where it was": _not_taken_up,
    "a call waits for its approval": _no_approval,
}
"""Functions that break a guard in this process, by the guard's name."""


def main(guard: str = "") -> None:
    """Fork a child for each order, one after the other."""
    gc.freeze()  # a collection in a child would copy every page
    if guard:
        GUARDS[guard]()
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            live(json.loads(line))
        _, status = os.waitpid(child, 0)
        say("dead", status)


if __name__ == "__main__":
    main(*sys.argv[1:])
