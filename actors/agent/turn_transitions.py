"""State table of a turn: the kinds of record that may follow in each state. Pure.

All code that decides on the order of a turn's records must agree with the table: `verify` checks every turn of a log
against the table, and `docs/ARCHITECTURE.md` draws it (a test compares the picture with the table). Records
of step 0, except the input that opens the turn, belong to the agent and not to the turn: configurations, imports,
manual summaries, excluded turns and replaced thoughts. A call that had started outside gets a result before its turn is
cancelled. A fork may begin in the middle of a commit: the turn is then abandoned there, as if it had been idle. `Agent`
uses `check_is_input` to refuse other events, and `replay/reexecute.py` uses `fault`.
"""

from collections.abc import Mapping, Sequence

from everlog.events import INPUTS, STOPS, BadInput, Event, UserMessage

IDLE, PENDING, CALLING, OUTSIDE, ENDED = "idle", "owed", "calling", "outside", "ended"
DECIDED, APPROVED = "decided", "approved"
"""States of a turn that a decision about an approval opened: before its call, and while the call is outside."""

INPUT = "input"
"""Any kind in INPUTS."""
COMMITTED = "commit"
"""The commit ended, and no input in the commit requests another step."""

_EFFECTS = (
    "memory_edited", "block_removed", "message_sent", "archival_inserted", "archival_updated", "archival_deleted",
    "heartbeats_paused", "timer_set", "timer_cancelled", "insight_noted", "fact_noted", "fact_ended", "entity_named",
    "plan_made", "plan_changed", "memories_withdrawn", "agent_message_sent",
)  # fmt: skip
"""Kinds of records that a function leaves in the log before its result."""

_BEFORE_REPLY = ("reply_rejected", "model_switched", "summary", "context_trimmed", INPUT)
"""Kinds of records after which the model still owes its reply."""

TRANSITIONS: Mapping[str, Mapping[str, str]] = {
    IDLE: {"approval_decided": DECIDED, INPUT: PENDING, "turn_abandoned": ENDED},
    DECIDED: {
        **dict.fromkeys(_EFFECTS, DECIDED),
        "function_started": APPROVED,
        "approval_requested": DECIDED,
        "function_result": PENDING,
        "model_reply": CALLING,
        **dict.fromkeys(_BEFORE_REPLY, PENDING),
        **dict.fromkeys(STOPS, ENDED),
        COMMITTED: DECIDED,
    },
    APPROVED: {
        "memory_edited": APPROVED,
        "approval_requested": APPROVED,
        "function_result": PENDING,
        COMMITTED: APPROVED,
    },
    PENDING: {
        "model_reply": CALLING,
        **dict.fromkeys(_BEFORE_REPLY, PENDING),
        "memory_edited": PENDING,
        "rules_applied": PENDING,
        COMMITTED: PENDING,
        **dict.fromkeys(STOPS, ENDED),
    },
    CALLING: {
        **dict.fromkeys(_EFFECTS, CALLING),
        "approval_requested": CALLING,
        "function_result": CALLING,
        "function_started": OUTSIDE,
        "rules_applied": CALLING,
        "turn_cancelled": ENDED,
        "turn_abandoned": ENDED,
        INPUT: PENDING,
        COMMITTED: IDLE,
    },
    OUTSIDE: {"memory_edited": OUTSIDE, "approval_requested": OUTSIDE, "function_result": CALLING, COMMITTED: OUTSIDE},
    ENDED: {COMMITTED: ENDED},
}
"""State of a turn -> kind of record -> next state."""


def fault(records: Sequence[tuple[str, int, int]]) -> str | None:
    """Return why the records (kind, step, commit) of one turn, in order, break the table; None if they follow it.

    Kinds from a newer everlog are ignored.
    """
    state, before, opened = IDLE, 0, False
    for kind, step, commit in records:
        if step == 0 and (opened or kind not in INPUTS):
            continue
        opened = True
        if before and commit != before:
            state = TRANSITIONS[state][COMMITTED]
        name = INPUT if kind in INPUTS and kind not in TRANSITIONS[state] else kind
        if name in _KNOWN:
            if name not in TRANSITIONS[state]:
                return f"{kind} (step {step}) cannot follow in the state {state!r}"
            state = TRANSITIONS[state][name]
        before = commit
    return None


_KNOWN = frozenset(kind for after in TRANSITIONS.values() for kind in after)


def check_is_input(event: Event) -> None:
    """Raise BadInput for an event that is not an input, and for an imported message."""
    if not isinstance(event, Event) or event.kind not in INPUTS:
        given_kind = event.kind if isinstance(event, Event) else type(event).__name__
        raise BadInput(f"An input is text or an event of one of the kinds {', '.join(INPUTS)}, not {given_kind}.")
    if isinstance(event, UserMessage) and event.imported:
        raise BadInput("A message marked as imported cannot be sent; use `import_messages` for a past conversation.")


def diagram() -> str:
    """Render the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {IDLE}"]
    for state, after in TRANSITIONS.items():
        for following in dict.fromkeys(after.values()):
            kinds = [kind for kind, to in after.items() if to == following and kind != COMMITTED]
            if following != state or kinds:
                lines.append(f"    {state} --> {following}: {', '.join(kinds) or 'the commit ends'}")
    return "\n".join(lines)
