"""Agents that write to each other in virtual time: what each one does is said by the messages that it gets."""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.agent_ref import AgentRef
from everlog.actors.mail.mail_functions import NAMES
from everlog.actors.ports.effects import ModelResponse
from everlog.events import AgentMessageReceived, AgentReplyReceived, FunctionResult, MessageSent, UserMessage, event_of
from tests.support.agent_world import completion
from tests.support.agents.virtual_time_runtime import Home, open_ref

BEGIN = re.compile(r"(?:(tell|ask|shout) (\S+)|say) \(")
FUNCTIONS = {
    "tell": ("message_agent", "name"), "ask": ("ask_agent", "name"), "shout": ("message_agents", "label"),
}  # fmt: skip
LONG = "x" * 20_001
"""Words for LONG in an order."""


def orders(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that a text orders, one after the other:
    `tell bob (hi)`, `ask bob (say (yes))`, `shout LABEL (hi)`, `say (yes)`.
    """
    calls: list[tuple[str, dict[str, Any]]] = []
    while found := BEGIN.search(text):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        words = text[found.end() : end - 1].replace("LONG", LONG)
        if found[1]:
            function, to = FUNCTIONS[found[1]]
            calls.append((function, {to: found[2], "message": words}))
        else:
            calls.append(("send_message", {"message": words}))
        text = text[end:]
    return calls


def obedient(request: bytes) -> str:
    """Answer the newest message with the calls that it orders, and say the answers of other agents."""
    said = [message for message in json.loads(request)["messages"] if message["role"] == "user"]
    envelope = json.loads(said[-1]["content"])
    text, from_agent = envelope.get("message") or "", envelope["type"] == "agent_message"
    if "This is what became of your message" in (envelope.get("instructions") or ""):
        return completion(calls=[("send_message", {"message": f"{envelope['name']}: {text}"})])
    if "pass it on" in text and from_agent:
        return completion(calls=[("message_agent", {"name": envelope["name"], "message": text})])
    return completion(calls=orders(text))


class Town(Home):
    """A home whose agents obey messages."""

    def __init__(self, store: Any = None, **more: Any) -> None:
        super().__init__(store, **more)
        self.pauses: dict[str, float] = {}
        """Seconds that the model takes for a reply of an agent, by the agent's name."""
        self.silent: Sequence[str] = ()
        """Agents that obey nothing, and say nothing."""

    async def ask(self, name: str, base_url: str, request: bytes, agent_id: str, *_: object, **__: object) -> Any:
        """Answer as the newest message orders."""
        await asyncio.sleep(self.pauses.get(agent_id, 0))
        return ModelResponse(completion() if agent_id in self.silent else obedient(request), 1000)

    async def person(self, name: str, labels: Sequence[str] = ()) -> AgentRef:
        """Open an agent that may write to others, with labels."""
        ref = self.ref(name)
        await open_ref(ref, Settings(optional_functions=NAMES, labels=labels))
        return ref

    def said(self, name: str) -> list[str]:
        """Return what an agent said to its user, or in answer to another agent."""
        return [event.text or "" for event in map(event_of, self.log(name)) if isinstance(event, MessageSent)]

    def heard(self, name: str) -> list[tuple[str, str]]:
        """Return what other agents said to an agent: their names and words."""
        events = map(event_of, self.log(name))
        return [(e.agent, e.text or "") for e in events if isinstance(e, UserMessage) and e.agent]

    def results(self, name: str) -> list[str]:
        """Return the results of the functions by which an agent wrote to others."""
        events = map(event_of, self.log(name))
        return [e.text or "" for e in events if isinstance(e, FunctionResult) and e.name in NAMES]

    def of(self, name: str, kind: type[AgentMessageReceived | AgentReplyReceived]) -> list[Any]:
        """Return the events of a kind in an agent's log."""
        return [event for event in map(event_of, self.log(name)) if isinstance(event, kind)]

    def states(self, name: str) -> list[str]:
        """Return the states of an agent's messages."""
        view = LocalSystem(self.store).view(name)
        try:
            return [row["state"] for row in view.rows("agent_messages")]
        finally:
            view.close()
