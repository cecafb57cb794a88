"""Requests to the offline model, made by hand, and readers of its answers."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.formats import parse_reply
from everlog.actors.models.offline import reply
from everlog.events import MessageSent, ModelReply, Record, UserMessage
from everlog.store import MemoryStore

AT = "2023-05-20 10:00:00 AM UTC+0000"
FUNCTIONS = (
    "send_message", "pause_heartbeats", "core_memory_append", "core_memory_replace", "core_memory_remove",
    "conversation_search", "conversation_search_date", "archival_memory_insert", "archival_memory_search",
    "archival_memory_update", "archival_memory_delete",
)  # fmt: skip
REQUESTED = "[hidden] Function called using request_heartbeat=true, returning control"
WINDOW_TOKENS = 10**9
FAILED = "[hidden] Function call failed, returning control"

Chat = dict[str, Any]


def user(text: str) -> Chat:
    return {"role": "user", "content": json.dumps({"type": "user_message", "message": text, "time": AT})}


def beat(reason: str) -> Chat:
    return {"role": "user", "content": json.dumps({"type": "heartbeat", "reason": reason, "time": AT})}


def alert(text: str) -> Chat:
    return {"role": "user", "content": json.dumps({"type": "system_alert", "message": text, "time": AT})}


def called(name: str, call_id: str = "c1", /, **arguments: Any) -> Chat:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def result(message: str, call_id: str = "c1", *, ok: bool = True) -> Chat:
    content = json.dumps({"status": "OK" if ok else "Failed", "message": message, "time": AT})
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def found(*lines: str) -> str:
    return f"Showing {len(lines)} of {len(lines)} results (page 0/0): {json.dumps(list(lines))}"


SPOKEN = (called("send_message", "c0", message="Hi."), result("None", "c0"))


def request(*chat: Chat, human: str | None = "First name: unknown", fresh: bool = False) -> bytes:
    """Return a request as the agent renders it; the agent has sent a message before, unless `fresh`."""
    block = "" if human is None else f'\n<human characters="{len(human)}/2000">\n{human}\n</human>'
    system = (
        "You are an agent with <human characters blocks.\n\n### Memory [last modified: ...]\n"
        "Core memory shown below (limited in size, additional information stored in archival / recall memory):\n"
        f'<persona characters="3/2000">\nSam\n</persona>{block}'
    )
    before = () if fresh else SPOKEN
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in FUNCTIONS]
    messages = [{"role": "system", "content": system}, *before, *chat]
    body = {"model": "offline", "messages": messages, "tools": tools, "tool_choice": "auto"}
    return json.dumps(body, ensure_ascii=False).encode()


def typed(body: bytes) -> ModelReply:
    """Return the answer as the agent reads it."""
    return parse_reply.reply(reply(body).decode(), WINDOW_TOKENS)


def calls(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, json.loads(call.arguments)) for call in typed(body).calls]


def names(body: bytes) -> list[str]:
    return [name for name, _ in calls(body)]


def said(body: bytes) -> str:
    return " ".join(arguments["message"] for name, arguments in calls(body) if name == "send_message")


BLOCK = "Name: Chad\nTo do: buy milk\nThe user said: I sail\nThe user said: my dog is called Rex"


def talk(lines: Sequence[str], before: Sequence[UserMessage | MessageSent] = ()) -> list[list[tuple[str, Any]]]:
    """Return the calls that each line leads to, in a new agent, after imported messages."""
    records: list[Record] = []

    async def run() -> None:
        async with LocalSystem(MemoryStore()).agent("sam", Settings(), on_commit=records.extend) as agent:
            if before:
                times = [10**15 + number for number in range(len(before))]
                await agent.commit(before, turn=agent.turn, step=0, said_at=times)
            for line in lines:
                await agent.receive(UserMessage(text=line))
                await agent.run()

    asyncio.run(run())
    turns: list[list[tuple[str, Any]]] = []
    for record in records:
        if record.type == "user_message" and "imported" not in record.payload:
            turns.append([])
        elif record.type == "model_reply" and turns:
            made = json.loads(record.payload)
            turns[-1] += [(call["name"], json.loads(call["arguments"])) for call in made.get("calls", [])]
    return turns


def spoken(turn: Sequence[tuple[str, Any]]) -> str:
    return " ".join(arguments["message"] for name, arguments in turn if name == "send_message")
