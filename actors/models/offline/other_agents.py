"""Find what a user wants another agent to be told or asked, and say what other agents wrote. Pure, no state.

"Tell @bob that dinner is at 8" and "Ask @bob when dinner is" become calls of the functions that write to agents: the
`@` says that bob is an agent. Used by `answers.py`.
"""

from collections.abc import Sequence
from typing import Any

from everlog.actors.models.offline.english import any_case
from everlog.actors.models.offline.request import AGENT_MESSAGE, PendingInput

_ORDER = any_case(r"(?:please |can you |could you )?(tell|ask) @([^\s,:]+)[,:]?\s+(?:that |to )?(\S.*)")
_END = "This is what became of your message"
"""Beginning of the note beside an answer, as `actors/mail/letters.py` writes it: keep both in step."""


def orders_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls by which other agents are told or asked what the sentence says; empty if it orders nothing."""
    match = _ORDER.match(text.strip())
    if match is None:
        return []
    verb, name, words = match.groups()
    return [("message_agent" if verb.lower() == "tell" else "ask_agent", {"name": name, "message": words})]


def said_of(calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Return what to say to the user of calls that `orders_in` returned."""
    name, arguments = calls[0]
    who = arguments["name"]
    return f"I asked {who}, and tell you the answer." if name == "ask_agent" else f"I told {who}."


def told_by(event: PendingInput) -> str:
    """Return what to say to the user of a message of another agent that waits for no answer; empty for a question."""
    if event.type != AGENT_MESSAGE or "waits for your answer" in event.instructions:
        return ""
    return f"{event.name} {'answers' if event.instructions.startswith(_END) else 'says'}: {event.message}"
