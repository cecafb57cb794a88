"""Events of messages between agents: sent, received, and ended.

A message is an event of the sender's log before it is an input of the receiver's: the sender's host delivers it from
the log, as often as it takes, and the receiver keeps it once. Words that an agent gets from another are a
`user_message` with `agent`; the event here stands behind it in the same commit. Written by `actors/mail` and
`actors/hosting`; read by the SQL of projections. Released shapes never change: see `upcast`.
"""

from typing import ClassVar, Literal

from everlog.events.base import Event

MessageOutcome = Literal["delivered", "answered", "silent", "expired", "undeliverable"]
"""End of a message, or of the wait for its answer. `silent`: the other agent ended its turns without a word."""


class AgentMessageSent(Event, frozen=True, kw_only=True):
    """The agent said `text` to another agent. It is delivered after this record is durable."""

    kind: ClassVar[str] = "agent_message_sent"

    to: str
    call_id: str
    expires_at: int = 0
    """Time until which the agent waits for an answer, microseconds UTC; 0: it does not wait."""
    hops: list[str]
    """Names of the agents through which the message came about, oldest first, this one last."""
    waiting: list[str] = []
    """Those of them that wait for an answer, each for that of the next one; the last waits for that of the receiver."""
    task: int = 0
    """Seq of the `agent_message_received` that the agent works on; 0: none."""


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
    """`hops` and `waiting`: same as in `AgentMessageSent`."""


class AgentReplyReceived(Event, frozen=True, kw_only=True):
    """The user message before this record ends the agent's wait for an answer, or says why a message did not arrive."""

    kind: ClassVar[str] = "agent_reply_received"

    sender: str
    message: int
    """Seq of the agent's own `agent_message_sent`."""
    outcome: MessageOutcome
    task: int = 0
    """Same as in that record."""


class AgentMessageSettled(Event, frozen=True, kw_only=True):
    """A message was delivered to the other agent, or the answer to a received one was; `text` says why not."""

    kind: ClassVar[str] = "agent_message_settled"

    message: int
    """Seq of the agent's own `agent_message_sent` or `agent_message_received`."""
    outcome: MessageOutcome
