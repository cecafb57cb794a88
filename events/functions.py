"""Events of what the agent did: functions that waited, started and ended, messages that reached the user, and messages
between agents. Such a message is an event of the sender before it is an input of the receiver; what stands behind the
`user_message` there says from whom it is.

Written by `actors/agent`; read by replay, the calling formats and the SQL of projections. Released shapes never change:
see `upcast`.
"""

from typing import ClassVar, Literal

import msgspec

from everlog.events.base import Event
from everlog.events.model import Usage


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Question of a function to a person. Its call continues with the answers."""

    text: str
    forms: dict[str, str]
    """JSON schema of each part of the answer, by the name that the function gave it."""
    state: str = ""
    """Text that the function gets back with the answers; nothing else reads it."""


class ApprovalRequested(Event, frozen=True, kw_only=True):
    """A call waits for a person: for an approval, or for the answer to a question. The call's result says so to the
    model, and the turn continues.
    """

    kind: ClassVar[str] = "approval_requested"

    call_id: str
    name: str
    arguments: str
    """JSON text of the arguments as the model wrote it, not repaired."""
    expires_at: int = 0
    """Time at which the call counts as refused, microseconds UTC; 0: never."""
    question: Question | None = None
    """Question of the function, which has run so far; None: it has not run, and waits for an approval."""


class FunctionStarted(Event, frozen=True, kw_only=True):
    """A call with an effect outside the log is about to start: this record is durable before the effect happens."""

    kind: ClassVar[str] = "function_started"

    call_id: str
    name: str
    arguments: str = ""
    effect: Literal["read_only", "idempotent", "at_most_once"]
    key: str = ""
    """Idempotency key for the receiver, for the effect class `idempotent`."""
    approval: int = 0
    """Seq of the `approval_requested` that the call had waited for; 0: it needed no approval."""


class FunctionResult(Event, frozen=True, kw_only=True):
    """A call ended; `text` is the result that the model gets."""

    kind: ClassVar[str] = "function_result"

    call_id: str
    name: str
    ok: bool = True
    unknown: bool = False
    """The call was interrupted: its effect may or may not have happened."""
    approval: int = 0
    """Seq of the `approval_requested` that the call had waited for; 0: it needed no approval."""


class RulesApplied(Event, frozen=True, kw_only=True):
    """The rules about functions say what the next step of the turn may call. Recorded if the agent has such rules."""

    kind: ClassVar[str] = "rules_applied"

    allowed: list[str] = []
    """Names of the functions that may be called next."""
    counts: dict[str, int] = {}
    """Number of calls in this turn, by function."""
    last: str = ""
    """Function that was called last; empty: none."""


class MessageSent(Event, frozen=True, kw_only=True):
    """The agent sent `text` to the user, who sees nothing else."""

    kind: ClassVar[str] = "message_sent"

    call_id: str = ""
    name: str = ""
    """Name of the sender, in an imported conversation."""
    imported: bool = False
    ref: str = ""


MessageOutcome = Literal["delivered", "answered", "silent", "expired", "undeliverable"]
"""End of a message, or of the wait for its answer. `silent`: the other agent ended its turns without a word."""


class InheritedBudget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Daily budget of an agent, as far as it was used when a message left that is to be worked on within it."""

    agent: str
    """Stream of the agent whose budget it is."""
    tokens_max: int = 0
    cost_max: float = 0.0
    """Same as `day_tokens_max` and `day_cost_max` in its configuration; 0: no limit."""
    used: dict[str, Usage] = {}
    """Tokens that it and others for it had used, by the model that was called."""


class AgentMessageSent(Event, frozen=True, kw_only=True):
    """The agent said `text` to another agent, or its background agent is told what was said. It is delivered after this
    record is durable.
    """

    kind: ClassVar[str] = "agent_message_sent"

    to: str
    call_id: str
    """Call that sends it; empty for a message to the background agent."""
    expires_at: int = 0
    """Time until which the agent waits for an answer, microseconds UTC; 0: it does not wait."""
    hops: list[str]
    """Names of the agents through which the message came about, oldest first, this one last."""
    waiting: list[str] = []
    """`hops` that wait for an answer, each for that of the next one; the last waits for that of the receiver."""
    task: int = 0
    """Seq of the `agent_message_received` that the agent works on; 0: none."""
    from_seq: int = 0
    to_seq: int = 0
    """Records whose words the message repeats, both inclusive, for the background agent, whose cursor `to_seq` is; 0:
    none.
    """
    budgets: list[InheritedBudget] = []
    """Budgets that the receiver works within: the agent's own, and those that it works within itself."""


class AgentMessageReceived(Event, frozen=True, kw_only=True):
    """The user message before this record is from another agent."""

    kind: ClassVar[str] = "agent_message_received"

    sender: str
    sent: str
    """Event id of the sender's `agent_message_sent`: the same message is kept once."""
    waits: bool = False
    """True: what the agent says in the turns of this message is sent back as the answer."""
    message: int = 0
    """Seq of the sender's `agent_message_sent`, which the answer names."""
    hops: list[str]
    waiting: list[str] = []
    from_seq: int = 0
    to_seq: int = 0
    budgets: list[InheritedBudget] = []
    """`hops` to `budgets`: same as in `AgentMessageSent`; the records are those of the sender."""


class AgentReplyReceived(Event, frozen=True, kw_only=True):
    """The user message before this record ends the agent's wait for an answer, or says why a message did not arrive."""

    kind: ClassVar[str] = "agent_reply_received"

    sender: str
    message: int
    """Seq of the agent's own `agent_message_sent`."""
    outcome: MessageOutcome
    task: int = 0
    """Same as in that record."""
    used: dict[str, Usage] = {}
    """Tokens that the answer took, by the model that was called, if the message carried budgets: they count as used by
    this agent.
    """


class AgentMessageSettled(Event, frozen=True, kw_only=True):
    """A message was delivered to the other agent, or the answer to a received one was; `text` says why not."""

    kind: ClassVar[str] = "agent_message_settled"

    message: int
    """Seq of the agent's own `agent_message_sent` or `agent_message_received`."""
    outcome: MessageOutcome
