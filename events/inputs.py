"""Events that reach the agent from outside. An input with step 0 and a turn above 0 opens that turn, and needs an
answer.

Written by agents, hosts and imports; read by the SQL of projections. Released shapes never change: see `upcast`.
"""

from typing import ClassVar, Literal

from everlog.events.base import Event


class UserMessage(Event, frozen=True, kw_only=True):
    """A user said `text`, or another agent did."""

    kind: ClassVar[str] = "user_message"

    name: str = ""
    """Name of the user, if several people talk to one agent."""
    imported: bool = False
    """True if it belongs to an imported conversation: it opens no turn."""
    ref: str = ""
    """The importer's own id for the message; search returns it."""
    conversation: str = ""
    """Id of the conversation that a client keeps, if the client has several with one agent."""
    note: str = ""
    """Instructions that the client's program sent with the message: the model sees them beside it."""
    agent: str = ""
    """Agent that says it, by its name in the store; empty: a person."""


class UserLogin(Event, frozen=True, kw_only=True):
    """A user logged in."""

    kind: ClassVar[str] = "user_login"

    last_login: int | None = None
    """The login before this one, microseconds UTC; None for the first."""


class Heartbeat(Event, frozen=True, kw_only=True):
    """An input that does not come from a user: the agent runs again. `text` may say why, in words."""

    kind: ClassVar[str] = "heartbeat"

    reason: Literal["timer", "requested", "function_failed", "manual", "rules"]
    timer: str = ""
    """Name of the timer, for the reason `timer`."""
    late: bool = False
    """True if the timer was due while no process ran the agent."""


class SystemAlert(Event, frozen=True, kw_only=True):
    """The system shows the agent `text`: a memory-pressure warning, a user's reaction, or a person's note."""

    kind: ClassVar[str] = "system_alert"

    source: Literal["memory_pressure", "user_event", "manual"] = "manual"


class ApprovalDecided(Event, frozen=True, kw_only=True):
    """The approval of a call was given, refused, or not decided in time; `text` is the reason, if a person gave one.

    It opens a turn: the call runs first, if it was approved; then the model answers.
    """

    kind: ClassVar[str] = "approval_decided"

    request: int
    """Seq of the `approval_requested`."""
    call_id: str
    name: str
    decision: Literal["approved", "refused", "expired"]
    arguments: str = ""
    """JSON text of the arguments that run; empty if nothing runs."""
    edited: bool = False
    """True if a person changed the arguments before approving them."""
    state: str | None = None
    """State of the question that was decided; None: the call waited for an approval."""
    always: bool = False
    """True: calls of this function need no approval from now on."""


class TimerSet(Event, frozen=True, kw_only=True):
    """A heartbeat is due at `due_at`, and then every `every_s` seconds if that is above 0; `text` says what for.

    A timer with a `cron` is written again with each heartbeat, in the same commit, with the next time of the schedule.
    """

    kind: ClassVar[str] = "timer_set"
    version: ClassVar[int] = 2

    timer: str
    due_at: int
    """Microseconds UTC."""
    every_s: int = 0
    cron: str = ""
    """Schedule in the five fields of a crontab; empty: none. Then `every_s` is 0."""
    zone: str = ""
    """IANA name of the time zone of the schedule; empty without a schedule."""


class TimerCancelled(Event, frozen=True, kw_only=True):
    """The timer of that name sends no more heartbeats."""

    kind: ClassVar[str] = "timer_cancelled"

    timer: str


class TurnCancelled(Event, frozen=True, kw_only=True):
    """A person stopped the turn; it is not run again. A call that had started outside has its result before this."""

    kind: ClassVar[str] = "turn_cancelled"


class TurnAbandoned(Event, frozen=True, kw_only=True):
    """The system ended the turn before the agent was idle; `text` says why. It is not run again."""

    kind: ClassVar[str] = "turn_abandoned"

    reason: Literal["steps_max", "forked", "context", "rules"]
    """`steps_max`: too many model calls; `forked`: the turn was open at the fork point, or a rerun left it open;
    `context`: nothing makes the context fit the window; `rules`: the agent's rules leave no function to call.
    """


class BudgetExceeded(Event, frozen=True, kw_only=True):
    """A limit on tokens or money was reached, so the model was not called."""

    kind: ClassVar[str] = "budget_exceeded"

    budget: str
    """Owner and unit: `agent tokens`, `all tokens`, `agent cost` or `all cost`."""
    limit: float
    spent: float
    """Usage before the request that was not sent. It may be below the limit, if that request would have exceeded it."""
