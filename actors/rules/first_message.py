"""Verify the first message of an agent: it sets the pattern for all later ones. Pure.

Used by `actors/agent/model_step.py`, and by `replay/reexecute.py`, which computes each refusal again.
"""

from everlog.actors.functions.memgpt_functions import ALIASES
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.prompt.context import Context, summary_of
from everlog.events import ModelReply

FORBIDDEN_MARKS = frozenset('(){}[]"')
NO_MONOLOGUE = "the first reply must have an inner monologue"
FORBIDDEN_WORDS = ("functions", SEND_MESSAGE, "inner thought")
FIRST_FUNCTIONS = (SEND_MESSAGE, "archival_memory_search")
"""Functions that a first message may call."""


def first_message_fault(reply: ModelReply, *, aloud: bool) -> str | None:
    """Return why `reply` cannot be the agent's first message; None if it can. `aloud`: it needs an inner monologue."""
    if not reply.calls:
        return "the first reply must call a function"
    name = ALIASES.get(reply.calls[0].name, reply.calls[0].name)
    if name not in FIRST_FUNCTIONS:
        return f"the first reply must call {SEND_MESSAGE}, not {name}"
    if not reply.text and aloud:
        return NO_MONOLOGUE
    marks = sorted(set(reply.text or "") & FORBIDDEN_MARKS)
    words = [word for word in FORBIDDEN_WORDS if word in (reply.text or "").lower()]
    if marks or words:
        return f"the inner monologue must not hold {', '.join([*marks, *words])}"
    return None


def is_first(context: Context) -> bool:
    """Return True if the agent has never replied, as far as the context or its summary shows.

    If all turns are excluded, the next reply counts as a first one again: a first reply sets the pattern for later
    ones, so it is checked again.
    """
    replied = any(message.turn and isinstance(message.event, ModelReply) for message in context.messages)
    return summary_of(context) is None and not replied
