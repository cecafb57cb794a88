"""What reaches the agent from outside. An input with step 0 and a turn above 0 opens it and is owed an answer."""

from typing import ClassVar, Literal

from everlog.events.base import Event


class UserMessage(Event, frozen=True, kw_only=True):
    """A user said `text`."""

    kind: ClassVar[str] = "user_message"

    name: str = ""
    """Who said it, where several people talk to one agent."""
    imported: bool = False
    """Part of a past conversation: it opens no turn."""
    ref: str = ""
    """The importer's own id for the message, given back by search."""


class UserLogin(Event, frozen=True, kw_only=True):
    """A user logged in."""

    kind: ClassVar[str] = "user_login"

    last_login: int | None = None
    """The login before this one, microseconds UTC; None for the first."""


class Heartbeat(Event, frozen=True, kw_only=True):
    """An input that is not a user: the agent runs again. `text` may say why, in words."""

    kind: ClassVar[str] = "heartbeat"

    reason: Literal["timer", "requested", "function_failed", "manual"]
    timer: str = ""
    """Name of the timer, for the reason `timer`."""
    late: bool = False
    """The timer was due while nobody ran the agent."""


class SystemAlert(Event, frozen=True, kw_only=True):
    """The system tells the agent `text`: a memory-pressure warning, a user's reaction, a word by hand."""

    kind: ClassVar[str] = "system_alert"

    source: Literal["memory_pressure", "user_event", "manual"] = "manual"


class TimerSet(Event, frozen=True, kw_only=True):
    """A heartbeat is wanted at `due_at`, and then every `every_s` seconds if that is above 0; `text` says what for."""

    kind: ClassVar[str] = "timer_set"

    timer: str
    due_at: int
    """Microseconds UTC."""
    every_s: int = 0


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

    reason: Literal["steps_max", "forked", "context"]
    """`steps_max`: too many model calls; `forked`: it was open at the fork's cut, or was left open by
    a rerun; `context`: nothing makes it fit.
    """


class BudgetExceeded(Event, frozen=True, kw_only=True):
    """A limit on tokens or money was reached, so the model was not called."""

    kind: ClassVar[str] = "budget_exceeded"

    budget: str
    """Whose, and of what: `agent tokens`, `all tokens`, `agent cost` or `all cost`."""
    limit: float
    spent: float
    """Before the request that was not sent. It may be below the limit: that request would have gone beyond it."""
