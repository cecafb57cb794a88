"""Groups of event kinds that all rooms treat alike.

Used by turns, replay and rerun in `actors`. The SQL files get `INPUTS`, `STOPS` and `DERIVED` as `{inputs}`,
`{stops}` and `{derived}`.
"""

from everlog.events.derived import (
    EntityNamed,
    FactEnded,
    FactNoted,
    ImportanceRated,
    InsightNoted,
    PlanChanged,
    PlanMade,
)
from everlog.events.inputs import (
    ApprovalDecided,
    BudgetExceeded,
    Heartbeat,
    SystemAlert,
    TurnAbandoned,
    TurnCancelled,
    UserLogin,
    UserMessage,
)
from everlog.events.memory import Summary
from everlog.events.model import ModelFailed, ModelReply, ReplyRejected

INPUTS = (UserMessage.kind, UserLogin.kind, Heartbeat.kind, SystemAlert.kind, ApprovalDecided.kind)
"""Kinds of records that an agent must answer: one of them, with step 0, opens a turn."""
STOPS = (ModelFailed.kind, TurnCancelled.kind, TurnAbandoned.kind, BudgetExceeded.kind)
"""Kinds of records that end a turn, even if an answer is pending."""
MODEL_CALLS = (ModelReply, ReplyRejected, ModelFailed, Summary)
"""Events that a request to a model leaves in the log, each with its `context_sha256`."""
DERIVED = (
    InsightNoted.kind, FactNoted.kind, FactEnded.kind, EntityNamed.kind, PlanMade.kind, PlanChanged.kind,
    ImportanceRated.kind,
)  # fmt: skip
"""Kinds of records that are results of a derivation, each with its sources; they can be withdrawn."""
