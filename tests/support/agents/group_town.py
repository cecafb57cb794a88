"""Groups in virtual time, whose members do what the messages that they get say."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_ref import AgentRef
from everlog.actors.ports.effects import ModelResponse
from everlog.events import AgentMessageSent, UserMessage, event_of
from tests.support.agent_world import completion, say
from tests.support.agents.virtual_time_runtime import open_ref
from tests.support.agents.writing_agents import Town


class GroupTown(Town):
    """A town with groups."""

    def __init__(self, store: Any = None, **more: Any) -> None:
        super().__init__(store, **more)
        self.scripts: dict[str, list[str]] = {}
        """Answers of an agent to its next messages, by its name; an empty one is silence."""
        self.choices: dict[str, Callable[[str], str]] = {}
        """Answers of an agent to its newest message, by its name."""

    async def ask(self, name: str, base_url: str, request: bytes, agent_id: str, *rest: object, **more: object) -> Any:
        """Answer from the script of an agent, or as the newest message orders."""
        if b'"tools"' not in request:
            return ModelResponse(completion("They talked for long."), 1000)
        if agent_id in self.choices:
            newest = json.loads(json.loads(request)["messages"][-1]["content"])
            return ModelResponse(say(self.choices[agent_id](newest["message"])), 1000)
        if not self.scripts.get(agent_id):
            return await super().ask(name, base_url, request, agent_id, *rest, **more)
        await asyncio.sleep(self.pauses.get(agent_id, 0))
        text = self.scripts[agent_id].pop(0)
        return ModelResponse(say(text) if text else completion("Hm."), 1000)

    async def group(self, name: str, rule: str, *members: str, **more: Any) -> AgentRef:
        """Open a group of agents that exist."""
        ref = self.ref(name)
        await open_ref(ref, Settings(model=f"group/{rule}", members=members, **more))
        return ref

    async def people(self, *names: str) -> None:
        """Open agents that may be members."""
        for name in names:
            await self.person(name)

    async def settle(self) -> None:
        """Let all messages arrive and all turns end."""
        await asyncio.sleep(600)

    def asked(self, name: str) -> list[tuple[str, str]]:
        """Return the questions of a group in order: to whom, and their words."""
        events = map(event_of, self.log(name))
        return [(event.to, event.text or "") for event in events if isinstance(event, AgentMessageSent)]

    def inputs(self, name: str) -> list[str]:
        """Return the words of all inputs of an agent."""
        return [event.text or "" for event in map(event_of, self.log(name)) if isinstance(event, UserMessage)]
