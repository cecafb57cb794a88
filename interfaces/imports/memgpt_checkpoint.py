"""Read the state of an agent that MemGPT 0.1 or 0.2 saved: one JSON object, with persona, human, prompt and messages.

Used by `read_conversations`. MemGPT wrote the object at `/save` and at its end, to `saved_state/TIME.json` or
`agents/NAME/agent_state/TIME.json`. It holds the messages that were in the context then. The others, and the archival
memory, are in a pickle beside it, which is a program of others and is not read. A bare list of its messages is read,
too. From 0.2.12 on MemGPT kept its agents in a database, and Letta writes those into agent files.
"""

from collections.abc import Sequence
from typing import Any

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.interfaces.imports.letta_agent_file import OWN_FUNCTIONS
from everlog.interfaces.imports.letta_messages import add_messages
from everlog.interfaces.imports.past_conversation import (
    JsonMap,
    MessageCollector,
    PastConversation,
    bad,
    field,
    objects,
)


def memgpt_conversations(value: Any, source: str) -> Sequence[PastConversation]:
    """Return the one conversation of a saved state, or of a list of messages. Raises BadInput."""
    state = {"messages": value} if isinstance(value, list) else value
    if not isinstance(state, dict) or not isinstance(state.get("messages"), list):
        raise bad(source, "it has no list `messages`, as a saved agent of MemGPT has")
    collector = MessageCollector()
    messages = objects(state, "messages", source)
    functions = [one for one in objects(state, "functions", source) if one.get("name") not in OWN_FUNCTIONS]
    earlier = field(state, "messages_total", int, source, default=0) - sum(
        one.get("role") != "system" for one in messages
    )
    for words, count in (("tools", len(functions)), ("earlier messages", earlier)):
        if count > 0:
            collector.left_out[words] = count
    add_messages(collector, messages, None, source)
    return [
        PastConversation(
            id="",
            title="",
            messages=collector.messages,
            blocks=_blocks(field(state, "memory", dict, source, default={}), source),
            settings=Settings(
                model=field(state, "model", str, source) or None, system=field(state, "system", str, source) or None
            ),
            left_out=dict(collector.left_out),
        )
    ]


def _blocks(memory: JsonMap, source: str) -> list[InitialBlock]:
    """Return the memory blocks: persona and human, each a text or an object with value and limit."""
    made = []
    for label in memory:
        found = memory[label] if isinstance(memory[label], dict) else {"value": memory[label]}
        place = f"{source}, memory {label[:40]!r}"
        value = field(found, "value", str, place, default="")
        limit = field(found, "limit", int, place, default=max(BLOCK_CHARS, len(value)))
        made.append(InitialBlock(label=label, value=value, limit=limit))
    return made
