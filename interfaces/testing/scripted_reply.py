"""Write the replies of a scripted model: messages, function calls and thoughts, as the body of a chat completion.

Part of `everlog.testing`; used by `ScriptedModel`. The bodies have the shape that an OpenAI-compatible endpoint
returns, so that agents parse them as they parse a real model's.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.functions.tools import HEARTBEAT
from everlog.actors.models.daily_usage import BYTES_PER_TOKEN
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.interfaces.testing.seen_request import SeenRequest


class ScriptedCall(msgspec.Struct, frozen=True):
    """A function call of a scripted reply. `call` makes one."""

    name: str
    arguments: Mapping[str, Any]


class ScriptedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole scripted reply. `reply` makes one."""

    thought: str = ""
    """Inner monologue, which the user does not see."""
    calls: Sequence[ScriptedCall] = ()
    """Functions that the model calls, in order; messages to the user are calls of `send_message`."""


class RawReply(msgspec.Struct, frozen=True):
    """Body of an answer, verbatim: for tests of damaged replies and of other calling formats."""

    body: str


Line = (
    str
    | ScriptedCall
    | ScriptedReply
    | RawReply
    | BaseException
    | Sequence[str | ScriptedCall]
    | Callable[[SeenRequest], Any]
)
"""Line of a script: a message to the user, a call, several of both, a reply, an exception to raise, or a function that
returns one of these for the request that the model got.
"""


def call(name: str, /, **arguments: Any) -> ScriptedCall:
    """Return a call of the function `name`.

    The call asks for a heartbeat, so that the agent continues with the next line of the script, unless `arguments` say
    `request_heartbeat=False` or the function has no such parameter.
    """
    return ScriptedCall(name, arguments)


def reply(message: str = "", *, thought: str = "", calls: Sequence[ScriptedCall] = ()) -> ScriptedReply:
    """Return a reply with an inner monologue, calls, and at its end a message to the user unless that is empty."""
    last = [ScriptedCall(SEND_MESSAGE, {"message": message})] if message else []
    return ScriptedReply(thought=thought, calls=[*calls, *last])


def reply_of(line: str | ScriptedCall | ScriptedReply | Sequence[str | ScriptedCall]) -> ScriptedReply:
    """Return the reply that a line stands for."""
    if isinstance(line, ScriptedReply):
        return line
    parts = [line] if isinstance(line, str | ScriptedCall) else line
    return ScriptedReply(
        calls=[ScriptedCall(SEND_MESSAGE, {"message": part}) if isinstance(part, str) else part for part in parts]
    )


def completion_body(
    thought: str,
    calls: Sequence[tuple[str, str]],
    *,
    prompt_tokens: int,
    total_tokens: int,
    finish: str = "",
    model: str = "scripted",
) -> str:
    """Return the body of a chat completion. `calls`: names, and arguments as JSON text. `finish`: empty: as fits."""
    message: dict[str, Any] = {"role": "assistant", "content": thought}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls)
        ]
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": total_tokens - prompt_tokens,
        "total_tokens": total_tokens,
    }
    finish = finish or ("tool_calls" if calls else "stop")
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], "usage": usage, "model": model})


def body_for(scripted: ScriptedReply, request: bytes, functions: Mapping[str, Any]) -> str:
    """Return the body of a reply to a request, with usage counted as a token for each four bytes.

    `functions`: parameters of the functions in the request, by name; heartbeats are requested where they can be.
    """
    calls = [(one.name, json.dumps(_with_heartbeat(one, functions))) for one in scripted.calls]
    prompt = len(request) // BYTES_PER_TOKEN
    written = (len(scripted.thought) + sum(map(len, (text for _, text in calls)))) // BYTES_PER_TOKEN
    return completion_body(scripted.thought, calls, prompt_tokens=prompt, total_tokens=prompt + written + 1)


def _with_heartbeat(one: ScriptedCall, functions: Mapping[str, Any]) -> Mapping[str, Any]:
    accepted = functions.get(one.name, {}).get("properties", {})
    return {HEARTBEAT: True, **one.arguments} if HEARTBEAT in accepted else one.arguments
