"""Recognize requests that front ends send in the background: for a title, tags, or the user's next question. Pure.

They are answered by the agent's model alone: a title prompt in an agent's log would be a message that no user wrote.
"""

from collections.abc import Mapping, Sequence
from typing import Any

BEGINNINGS = (
    "### Task:",
    "Create a concise, 3-5 word",
    "Based on the chat history, give this conversation a name",
    "Provide a concise, 5-word-or-less title",
    "Write a concise title for this conversation",
    "Please generate a title",
    "Please give a summary of the conversation as a title",
)
"""Beginnings of the prompts of Open WebUI, LibreChat, Chatbox and others."""


def is_background(messages: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any] | None) -> bool:
    """Return True if a request is a front end's own. `metadata`: of the request; Open WebUI names the task there."""
    if metadata and metadata.get("task"):
        return True
    if not messages:
        return False
    alone = all(message.get("role") in ("system", "developer") for message in messages[:-1])
    content = messages[-1].get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return alone and isinstance(content, str) and content.lstrip().startswith(BEGINNINGS)
