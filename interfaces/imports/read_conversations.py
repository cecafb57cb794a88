"""Read the conversations of a file, and choose those to import and the names of their agents.

Used by `everlog import`; formats are in the other files of this folder and in `actors/agent/conversation_import.py`.
Everything is checked here, before the first write.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everlog.actors.agent.conversation_import import conversation
from everlog.events import BadInput
from everlog.interfaces.imports.chatgpt_export import chatgpt_conversations
from everlog.interfaces.imports.letta_agent_file import letta_conversations
from everlog.interfaces.imports.memgpt_checkpoint import memgpt_conversations
from everlog.interfaces.imports.past_conversation import FormatName, PastConversation, parsed, recognized
from everlog.store import name_of

TITLES_SHOWN = 10
"""Titles that an error names, of a file with many conversations."""

NUMBER = "{n}"
"""Stands in an agent's name for the number of a conversation in its file, from 1."""

_READERS: Mapping[str, Callable[[Any, str], Sequence[PastConversation]]] = {
    "chatgpt": chatgpt_conversations, "letta": letta_conversations, "memgpt": memgpt_conversations,
}  # fmt: skip
AGENT_FORMATS = ("letta", "memgpt")
"""Formats that have whole agents: blocks, prompt and model besides the messages."""


def read_conversations(data: bytes, source: str, wanted: FormatName) -> Sequence[PastConversation]:
    """Return the conversations of a file. `wanted`: its format; `auto`: recognized by content. Raises BadInput."""
    found = recognized(data) if wanted == "auto" else wanted
    if found == "jsonl":
        return [PastConversation(id="", title="", messages=conversation(io.BytesIO(data), source))]
    return _READERS[found](parsed(data, source), source)


def read_agents(data: bytes, source: str) -> Sequence[PastConversation]:
    """Return the agents of a file that has whole ones. Raises BadInput, also for a file of another format."""
    found = recognized(data)
    if found not in AGENT_FORMATS:
        raise BadInput(
            f"{source} is neither a file of `everlog export` nor an agent file of Letta or MemGPT. "
            f"Conversations without an agent are read by `everlog import NAME {source}`. Nothing was restored."
        )
    return read_conversations(data, source, found)


def named(found: Sequence[PastConversation], name: str | None, source: str) -> Mapping[str, PastConversation]:
    """Return the agents to restore by the name that each gets: `name`, with `{n}` in it for several; None: the name in
    the file.

    Raises BadInput if the name of one is missing, or if two have the same.
    """
    if name is not None and NUMBER not in name and len(found) > 1:
        raise BadInput(
            f"{source} has {len(found)} agents: {_titles(found)}. Give {NUMBER} in the name, as in "
            f"--new-name 'copy-{NUMBER}'. Nothing was restored."
        )
    wanted: dict[str, PastConversation] = {}
    for number, one in enumerate(found, start=1):
        given = one.title if name is None else name.replace(NUMBER, str(number))
        if not given:
            raise BadInput(f"{source}: agent {number} has no name. --new-name gives one. Nothing was restored.")
        if wanted.setdefault(name_of(given), one) is not one:
            raise BadInput(
                f"{source} has two agents named {given!r}. --new-name 'copy-{NUMBER}' tells them apart. Nothing was "
                "restored."
            )
    if not wanted:
        raise BadInput(f"{source} has no agent. Nothing was restored.")
    return wanted


def chosen(
    found: Sequence[PastConversation], name: str, only: str | None, source: str
) -> Mapping[str, PastConversation]:
    """Return the conversations to import, by the name of their agent. Raises BadInput.

    `name`: name of the agent; with `{n}` in it, one agent for each conversation. `only`: title or id of one. A
    conversation without a message is left out when there are several.
    """
    if only is not None:
        matching = [one for one in found if only in (one.id, one.title)]
        if len(matching) != 1:
            raise BadInput(
                f"{source} has {len(matching)} conversations with the title or id {only!r}, and one is needed: "
                f"{_titles(matching or found)}. Nothing was imported."
            )
        found = matching
    if NUMBER in name:
        named = {name_of(name.replace(NUMBER, str(number))): one for number, one in enumerate(found, start=1)}
        filled = {agent: one for agent, one in named.items() if one.messages}
    else:
        if len(found) > 1:
            raise BadInput(
                f"{source} has {len(found)} conversations: {_titles(found)}. Choose one with --conversation TITLE, or "
                f"give each an agent of its own with {NUMBER} in the name: `everlog import 'chat-{NUMBER}' FILE`. "
                "Nothing was imported."
            )
        filled = {name_of(name): one for one in found if one.messages}
    if not filled:
        raise BadInput(f"{source} has no message of a user or an assistant. Nothing was imported.")
    return filled


def _titles(found: Sequence[PastConversation]) -> str:
    shown = ", ".join(repr(one.title or one.id) for one in found[:TITLES_SHOWN])
    return shown + (f" and {len(found) - TITLES_SHOWN} more" if len(found) > TITLES_SHOWN else "")
