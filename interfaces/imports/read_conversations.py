"""Read the conversations of a file, and choose those to import and the names of their agents.

Used by `everlog import`; formats are in the other files of this folder and in `actors/agent/conversation_import.py`.
Everything is checked here, before the first write.
"""

import io
from collections.abc import Mapping, Sequence

from everlog.actors.agent.conversation_import import conversation
from everlog.events import BadInput
from everlog.interfaces.imports.chatgpt_export import chatgpt_conversations
from everlog.interfaces.imports.letta_agent_file import letta_conversations
from everlog.interfaces.imports.past_conversation import FormatName, PastConversation, parsed, recognized
from everlog.store import name_of

TITLES_SHOWN = 10
"""Titles that an error names, of a file with many conversations."""

NUMBER = "{n}"
"""Stands in an agent's name for the number of a conversation in its file, from 1."""


def read_conversations(data: bytes, source: str, wanted: FormatName) -> Sequence[PastConversation]:
    """Return the conversations of a file. `wanted`: its format; `auto`: recognized by content. Raises BadInput."""
    found = recognized(data) if wanted == "auto" else wanted
    if found == "jsonl":
        return [PastConversation(id="", title="", messages=conversation(io.BytesIO(data), source))]
    return (chatgpt_conversations if found == "chatgpt" else letta_conversations)(parsed(data, source), source)


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
