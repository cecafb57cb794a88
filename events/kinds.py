"""Groups of kinds that every room treats alike."""

from everlog.events.inputs import (
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

INPUTS = (UserMessage.kind, UserLogin.kind, Heartbeat.kind, SystemAlert.kind)
"""Kinds of records that an agent is to answer: with one of them, of step 0, a turn begins."""
STOPS = (ModelFailed.kind, TurnCancelled.kind, TurnAbandoned.kind, BudgetExceeded.kind)
"""Kinds of records that end a turn, whatever it owes."""
MODEL_CALLS = (ModelReply, ReplyRejected, ModelFailed, Summary)
"""Events that a request to a model leaves in the log, each with its `context_sha256`."""
