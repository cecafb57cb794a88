"""Reply as the rule of a group, in the form of a chat completion. Used by `agent/model_step.py`."""

from typing import Any, Protocol

import msgspec

from everlog.actors.groups.rules import GroupRule, moves
from everlog.actors.groups.talk import ASK, GroupReading, GroupTalk
from everlog.actors.models.model_types import GROUP
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.ports.effects import ModelResponse
from everlog.events import AgentConfigured


def rule_of(config: AgentConfigured) -> GroupRule:
    """Return the rule of a group."""
    return GroupRule(config.model.removeprefix(GROUP), config.members, config.manager, config.rounds)


class TalkingGroup(Protocol):
    """Method of an agent that is a group."""

    async def folded(self, kind: type[GroupReading], name: str) -> GroupReading: ...


async def answer_as_group(group: TalkingGroup, config: AgentConfigured, turn: int) -> ModelResponse:
    """Return the reply in a turn, from the log of the group."""
    reading = await group.folded(GroupReading, "group_talk")
    return group_reply(config, reading.talk(turn))


def group_reply(config: AgentConfigured, talk: GroupTalk) -> ModelResponse:
    """Return the reply in the turn of `talk`."""
    found = moves(rule_of(config), talk)
    calls: list[tuple[str, str, dict[str, Any]]] = [
        (call_id, SEND_MESSAGE, {"message": text}) for call_id, text in found.says
    ]
    for one in found.asks:
        asked = {"name": one.to, "message": one.text, "minutes": config.answer_minutes}
        calls.append((one.call_id, ASK, asked))
    message: dict[str, Any] = {"role": "assistant", "content": found.thought}
    if calls:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": msgspec.json.encode(arguments).decode()},
            }
            for call_id, name, arguments in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    body = {"object": "chat.completion", "model": config.model, "choices": [choice], "usage": usage}
    return ModelResponse(msgspec.json.encode(body).decode(), 0)
