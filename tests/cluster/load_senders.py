"""Load for a cluster that is damaged: senders that send a message again, with the same id, until it is answered.

Some agents use the offline model in their hosts. The others call an endpoint of the test through the gateway; for each
message it makes them call `pay`, an at_most_once function, and then answer.

    python -m tests.cluster.load_senders STORE PAID URL SHARED PAYING DEDICATED

runs the senders in a process that may die with its cluster. It prints a line of JSON for each message before it is
sent, ["said", id, agent, text], and when it was answered, ["answered", id]. The lines of its standard input up to an
empty one are the unanswered messages of earlier processes. It ends when its standard input is closed.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import SendInput
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.actors.batch_outcomes import outcomes_of
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.reply import SendOutcome
from everlog.events import ClusterError, HostLost, ModelError, StoreError, UserMessage
from tests.contract.contract_agents import SCRIPTED
from tests.support.agent_world import completion, say
from tests.support.models.loopback_server import Loopback, Reply

SHARDS = 4
AGAIN_S = 0.2
"""Seconds after which a sender without an answer sends the same message again."""
AGAIN = (HostLost, ClusterError, StoreError)
"""Errors that a sender with an id may answer by sending again."""
Bills = dict[str, tuple[str, str]]
"""Messages by id: agent and text."""


def payer(file: Path) -> Tool:
    """Return the function `pay`. Its outside effect is a line in `file`, which survives a kill."""
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
    """Reply as a model that depends on the request alone: call `pay`, then confirm the payment."""
    if not body:  # the caller was killed during its request
        return 400, "{}"
    users = [json.loads(m["content"]) for m in json.loads(body)["messages"] if m["role"] == "user"]
    last = next((user for user in reversed(users) if user["type"] == "user_message"), {"message": "0"})
    number = last["message"].split()[-1]
    if users and users[-1]["type"] == "user_message":
        return 200, completion(calls=[("pay", {"number": number, "request_heartbeat": True})])
    return 200, say(f"Paid {number}.")


def pays(endpoint: Loopback) -> None:
    """Let the endpoint reply with `answer`."""
    endpoint.answer = answer  # type: ignore[method-assign]


class Load:
    """Agents, the messages to them, and their answers."""

    def __init__(self, shared: int, paying: int, dedicated: int, tell: Callable[..., None] = lambda *_: None) -> None:
        """Take the numbers of shared agents, of shared agents that pay, and of dedicated agents, half of which pay.

        `tell` is called with each message before it is sent, and when it was answered.
        """
        self.shared = [f"shared {number}" for number in range(shared)]
        self.dedicated = [f"alone {number}" for number in range(dedicated)]
        self.paying = {*self.shared[:paying], *self.dedicated[: dedicated // 2]}
        self.said: Bills = {}
        self.answered: set[str] = set()
        self.failures: Counter[str] = Counter()
        self._tell = tell

    @property
    def agents(self) -> list[str]:
        """Names of all agents."""
        return self.shared + self.dedicated

    async def create(self, system: AgentSystem) -> None:
        """Create the agents, with as many attempts as it takes."""
        for names, placement in ((self.shared, "shared"), (self.dedicated, "dedicated")):
            for settings in (Settings(), SCRIPTED):
                left = {name for name in names if (name in self.paying) is (settings is SCRIPTED)}
                while left:
                    async for made in system.create_many(sorted(left), settings, placement=placement):  # type: ignore[arg-type]
                        if self._is_over(made):
                            left.discard(made.agent_id)

    async def round(self, system: AgentSystem, agents: Sequence[str]) -> None:
        """Send one message to each agent, again and again until it is answered."""
        bills: Bills = {}
        for agent in agents:
            known = system._new_id()
            self.said[known] = bills[known] = agent, f"My number is {known}"
            self._tell("said", known, *bills[known])
        await self.send(system, bills)

    async def send(self, system: AgentSystem, bills: Bills) -> None:
        """Send these messages, again and again until they are answered."""
        left = {
            known: (agent, SendInput(id=known, capabilities=system._capabilities, event=UserMessage(text=text)))
            for known, (agent, text) in bills.items()
        }
        while left:
            try:
                async for sent in outcomes_of(system.runtime, list(left.values()), system.prices):
                    if self._is_over(sent):
                        self.answered.add(sent.event_id)
                        self._tell("answered", sent.event_id)
                        del left[sent.event_id]
            except AGAIN as error:
                self.failures[type(error).__name__] += 1
            if left:
                await asyncio.sleep(AGAIN_S)

    def _is_over(self, sent: SendOutcome) -> bool:
        """Return True if the message need not be sent again. Raise errors that sending again cannot mend."""
        if sent.error is None:
            return True
        if not isinstance(sent.error, (*AGAIN, ModelError)):
            raise sent.error
        self.failures[type(sent.error).__name__] += 1
        return isinstance(sent.error, ModelError)

    async def keep_on(self, system: AgentSystem, agents: Sequence[str], end: asyncio.Event) -> None:
        """Send round after round until `end` is set."""
        while not end.is_set():
            await self.round(system, agents)

    async def recovered(self, system: AgentSystem) -> float:
        """Return the seconds until every agent has answered a new message."""
        began = time.monotonic()
        await self.round(system, self.agents)
        return time.monotonic() - began


def shouted(*words: Any) -> None:
    """Print one line in one system call, so that it is never cut short."""
    os.write(1, json.dumps(words).encode() + b"\n")


async def main(store: str, paid: str, url: str, *counts: str) -> None:
    """Send the unanswered messages again, then round after round."""
    load = Load(*map(int, counts), tell=shouted)
    left: Bills = {}
    for line in iter(sys.stdin.readline, "\n"):
        known, agent, text = json.loads(line)
        left[known] = agent, text
    async with open_system(
        store, runtime="ray", placement="shared", shards=SHARDS, base_url=url, tools=[payer(Path(paid))]
    ) as system:
        await load.create(system)
        await load.send(system, left)
        shouted("ready", await load.recovered(system))
        end = asyncio.Event()
        sender = asyncio.ensure_future(load.keep_on(system, load.agents, end))
        await asyncio.to_thread(sys.stdin.read)
        end.set()
        await sender


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
