"""Load for a cluster that is hurt: senders with ids of their own, and books that hold it all against the logs.

Some agents are answered by the offline model in their hosts; the others by an endpoint in this process, through the
gateway: for each message it has them call `pay`, which acts once at most, and then say so.
"""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actors.api import AgentSystem
from actors.commands import Say
from actors.replay import rebuild, verify
from actors.setup import Settings
from actors.tools import Tool, tool
from events import ClusterError, FunctionResult, HostLost, ModelError, Record, StoreError, UserMessage, event_of
from store import check
from tests.actors.loopback import Loopback, Reply
from tests.contract.agent_world import SCRIPTED
from tests.world import completion, say

AGAIN_S = 0.2
"""Who was not answered says the same again after so long."""
AGAIN = (HostLost, ClusterError, StoreError)
"""What somebody who sends with an id may answer by sending again."""


def payer(file: Path) -> Tool:
    """The function: what it does outside is a line in `file`, which no kill takes back."""
    path = str(file)

    @tool
    def pay(number: str) -> str:
        """Pay.

        Args:
            number: Of the bill.
        """
        out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(out, f"{number}\n".encode())
        finally:
            os.close(out)
        return f"paid {number}"

    return pay


def answer(headers: dict[str, str], body: bytes) -> Reply:
    """A model whose reply follows from the request alone: it pays, and then says so."""
    if not body:  # who asked was killed while asking
        return 400, "{}"
    users = [json.loads(m["content"]) for m in json.loads(body)["messages"] if m["role"] == "user"]
    last = next((user for user in reversed(users) if user["type"] == "user_message"), {"message": "0"})
    number = last["message"].split()[-1]
    if users and users[-1]["type"] == "user_message":
        return 200, completion(calls=[("pay", {"number": number, "request_heartbeat": True})])
    return 200, say(f"Paid {number}.")


def pays(endpoint: Loopback) -> None:
    """Have an endpoint be that model."""
    endpoint.answer = answer  # type: ignore[method-assign]


class Load:
    """Agents, what was said to them, and what was acknowledged."""

    def __init__(self, shared: int, paying: int, dedicated: int) -> None:
        """How many agents: of each sort of placement, and how many of the shared ones pay; half of the others do."""
        self.shared = [f"shared {number}" for number in range(shared)]
        self.dedicated = [f"alone {number}" for number in range(dedicated)]
        self.paying = {*self.shared[:paying], *self.dedicated[: dedicated // 2]}
        self.said: dict[str, tuple[str, str]] = {}
        """By id: to whom, and what."""
        self.acknowledged: set[str] = set()
        self.failures: Counter[str] = Counter()
        self.at: dict[str, float] = {}
        """When an agent answered last."""
        self._number = 0

    @property
    def agents(self) -> list[str]:
        """All of them."""
        return self.shared + self.dedicated

    async def create(self, system: AgentSystem) -> None:
        """Make the agents; all must be there."""
        for names, placement in ((self.shared, "shared"), (self.dedicated, "dedicated")):
            for settings in (Settings(), SCRIPTED):
                some = [name for name in names if (name in self.paying) is (settings is SCRIPTED)]
                async for sent in system.create_many(some, settings, placement=placement):  # type: ignore[arg-type]
                    assert sent.error is None, sent.error

    async def round(self, system: AgentSystem, agents: Sequence[str]) -> None:
        """Say one thing to each, again and again until it is answered."""
        left = dict(self._bill(system, agent) for agent in agents)
        while left:
            try:
                async for sent in system._sent_many(list(left.values())):
                    self._hear(sent)
                    if sent.error is None or isinstance(sent.error, ModelError):
                        self.at[sent.agent_id] = time.monotonic()
                        del left[sent.event_id]
                    else:
                        assert isinstance(sent.error, AGAIN), sent.error
            except AGAIN as error:
                self.failures[type(error).__name__] += 1
            if left:
                await asyncio.sleep(AGAIN_S)

    def _bill(self, system: AgentSystem, agent: str) -> tuple[str, tuple[str, Say]]:
        self._number += 1
        known = system._new_id()
        text = f"My number is {self._number}"
        self.said[known] = agent, text
        return known, (agent, Say(id=known, means=system._means, event=UserMessage(text=text)))

    def _hear(self, sent: Any) -> None:
        self.acknowledged.update(record.event_id for record in sent.records if record.type == "user_message")
        if sent.error is None:
            self.acknowledged.add(sent.event_id)
        else:
            self.failures[type(sent.error).__name__] += 1

    async def keep_on(self, system: AgentSystem, agents: Sequence[str], end: asyncio.Event) -> None:
        """A sender: round after round until it is told to end."""
        while not end.is_set():
            await self.round(system, agents)

    async def recovered(self, system: AgentSystem) -> float:
        """The seconds until every agent has answered something that was said from now on."""
        began = time.monotonic()
        await self.round(system, self.agents)
        return time.monotonic() - began


def judge(system: AgentSystem, load: Load, paid: Path, sample: int = 10) -> str:
    """Hold everything against the logs; the figures, in a line. Raises AssertionError."""
    effects = Counter(paid.read_text().split()) if paid.exists() else Counter[str]()
    assert not [number for number, times in effects.items() if times > 1], "an effect happened twice"
    assert load.acknowledged == load.said.keys(), "not everything was acknowledged in the end"
    for agent in load.agents:
        _judge_agent(system, load, agent, effects)
    assert all(check(system.store.partition(name)).ok for name in system.store.partitions())
    step = max(1, len(load.agents) // sample)
    for agent in [*load.agents[::step], *load.dedicated]:
        view = system.look(agent)
        assert (verify(view, system._reading.tools).faults, rebuild(view).faults) == ([], []), agent
        view.close()
    failures = ", ".join(f"{count} {name}" for name, count in sorted(load.failures.items())) or "none"
    return f"{len(load.said)} messages, {sum(effects.values())} effects; heard and sent again: {failures}"


def _judge_agent(system: AgentSystem, load: Load, agent: str, effects: Counter[str]) -> None:
    """Each message is in the log once and was answered once."""
    view = system.look(agent)
    try:
        records = list(view.reader.read(agent))
        turns = {int(turn["turn"]): str(turn["status"]) for turn in view.rows("turns")}
    finally:
        view.close()
    inputs = {record.event_id: record for record in records if record.type == "user_message"}
    assert len(inputs) == sum(record.type == "user_message" for record in records), f"{agent}: doubled"
    assert inputs.keys() == {known for known, (to, _) in load.said.items() if to == agent}, f"{agent}: lost or invented"
    for known, record in inputs.items():
        assert record.text == load.said[known][1]
        assert turns[record.turn] == "done", f"{agent}: turn {record.turn} is {turns[record.turn]}"
        answers = [r.text for r in records if r.turn == record.turn and r.type == "message_sent"]
        assert len(answers) == 1, f"{agent}: {record.text!r} was answered with {answers}"
        if agent in load.paying:
            _judge_payment([r for r in records if r.turn == record.turn], (record.text or "").split()[-1], effects)
    assert len({record.turn for record in inputs.values()}) == len(inputs), f"{agent}: two inputs in one turn"


def _judge_payment(turn: Sequence[Record], number: str, effects: Counter[str]) -> None:
    """Paid as often as the log says: once, or nobody knows."""
    results = [event for event in map(event_of, turn) if isinstance(event, FunctionResult) and event.name == "pay"]
    assert len(results) == 1, f"{number}: {results}"
    assert results[0].unknown or effects[number] == 1, f"{number}: paid {effects[number]} times"
