"""Make functions of agents from the remote agents that the operator named: `ask_NAME` sends one a message.

Nothing is imported or asked before the first call. A function takes the entry of its agent along, so that it works in
any process; secrets stay in the environment of the process. The id of a message is made of the key of its call: a call
that is repeated, where the entry allows that, is the same message to the other side.
"""

import asyncio
import json
import os
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from everlog.actors.a2a.remote_agents import RemoteAgent, remote_agent
from everlog.actors.functions.function_text import failure
from everlog.actors.functions.schema_tool import SchemaTool
from everlog.actors.functions.tools import HEARTBEAT, HEARTBEAT_SCHEMA, Tool
from everlog.actors.mcp.call_outcome import LostReply, RefusedRequest, UnreadableReply
from everlog.events import FunctionError, FunctionResult, UsageError

NEEDED = "Remote agents need the package a2a-sdk: pip install 'everlog[a2a]'."
MAYBE_DONE = "It may have got the message. Find out before you send it again."
STARTING_S = 60.0
"""Seconds beyond `call_s` in which the client is loaded, and the card is read."""
_TEXT = {"type": "string"}


class RemoteFunction(SchemaTool, frozen=True, kw_only=True):
    """A function that asks an agent of another program."""

    remote: str = ""
    """Name of the agent in the operator's file."""


def a2a_tools(store: str | Path, *names: str) -> list[Tool]:
    """Return functions that ask remote agents, which the operator of a store added, by their names.

    No names: no functions. Raises BadInput for an agent that there is not; UsageError without the package.
    """
    root = Path(store).expanduser()
    return [_function(name, remote_agent(root, name)) for name in dict.fromkeys(names)]


def _function(name: str, agent: RemoteAgent) -> RemoteFunction:
    if find_spec("a2a") is None:
        raise UsageError(NEEDED)
    public = f"ask_{name}"
    return RemoteFunction(
        name=public,
        function=partial(ask_remote, name, agent),
        effect="idempotent" if agent.repeats else "at_most_once",
        schema=_schema(public, name, agent),
        takes_key=True,
        timeout_s=agent.call_s + STARTING_S,
        approval=agent.approval,
        remote=name,
    )


def _schema(public: str, name: str, agent: RemoteAgent) -> str:
    about = f" About it: {agent.description}" if agent.description else ""
    properties = {
        "message": {**_TEXT, "description": "What to say to it. It knows nothing of your conversation."},
        "context": {**_TEXT, "description": "The context of an earlier answer, to continue that conversation."},
        "task": {**_TEXT, "description": "The task of an earlier answer that is not done, to give it what it needs."},
        HEARTBEAT: HEARTBEAT_SCHEMA,
    }
    parameters = {"type": "object", "properties": properties, "required": ["message"]}
    return json.dumps(
        {
            "name": public,
            "description": f"Ask {name}, an agent of another program, and get its answer.{about}",
            "parameters": parameters,
        }
    )


def ask_remote(
    name: str, agent: RemoteAgent, /, message: str, context: str = "", task: str = "", *, idempotency_key: str
) -> Any:
    """Send a message to a remote agent, and return its answer as text; for a call that failed, a FunctionResult without
    the call's id. Runs in a thread of its own.
    """
    public = f"ask_{name}"
    if not (isinstance(message, str) and (message.strip() or task)):
        return _failed(public, "the message says nothing. Nothing was sent.")
    if variable := agent.missing_variable(os.environ):
        return _failed(public, f"the environment variable {variable} is not set where you run. Nothing was sent.")
    begun: list[str] = []
    try:
        reply = asyncio.run(_asked(agent, idempotency_key, message, str(context), str(task), begun))
    except TimeoutError:
        how = f"Its task {begun[-1]!r} is at work: ask for it later, with an empty message." if begun else MAYBE_DONE
        return _failed(public, f"there was no answer within {agent.call_s:g} seconds. {how}", unknown=True)
    except RefusedRequest as error:
        return _failed(public, f"{error}.")
    except (LostReply, UnreadableReply) as error:
        kind = "was lost" if isinstance(error, LostReply) else "cannot be read"
        return _failed(public, f"the answer {kind}: {error}. {MAYBE_DONE}", unknown=True)
    return reply.for_model() if reply.ok else _failed(public, reply.for_model())


async def _asked(agent: RemoteAgent, key: str, message: str, context: str, task: str, begun: list[str]) -> Any:
    from everlog.actors.a2a.sdk_calls import ask  # in the thread of the call: it takes a while

    message_id = sha256(key.encode()).hexdigest()  # the key names the agent, which concerns no one else
    async with asyncio.timeout(agent.call_s):
        return await ask(agent, os.environ, message_id, message, context, task, begun)


def _failed(public: str, words: str, *, unknown: bool = False) -> FunctionResult:
    text = failure(public, FunctionError(words))
    return FunctionResult(text=text, call_id="", name=public, ok=False, unknown=unknown)
