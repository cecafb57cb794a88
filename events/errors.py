"""Every error that everlog raises on purpose, as one tree; any other exception is our bug and propagates.

    EverlogError
    ├── UsageError          the caller asked for something that cannot be (fix the request)
    │   ├── UnknownAgent    no such agent; names that are near are in the message
    │   ├── Busy            a queue is full; the same can be asked again later
    │   └── BadInput        a file, argument or value does not have the shape that was promised
    ├── StoreError          the log could not do it (nothing of the request is kept)
    │   ├── WrongSequence   another commit came first: expected_seq is not the head
    │   ├── DuplicateId     an event id came back with other content, or only part of its commit
    │   ├── StaleId         an event id too old to be told from a new one
    │   ├── Fenced          a newer owner has the partition; this writer must stop
    │   ├── PartitionBusy   a live process owns the partition
    │   ├── Poisoned        an earlier write failed; open the log again
    │   ├── CorruptLog      bytes inside the log are damaged; nothing was changed
    │   └── NewerFormat     the store was written by a newer everlog
    ├── ModelError          the model endpoint failed (the message that was sent is kept)
    │   ├── ContextOverflow the endpoint says that the request is too long
    │   ├── OverBudget      a budget of tokens or money is used up; nothing was sent
    │   └── BadReply        the endpoint answered what cannot be read
    ├── ArchiveError        the index of memories cannot be used; the log has everything, and it can be made anew
    │   ├── ArchiveDown     nobody answers where the archive should be
    │   ├── ForeignRows     somebody else wrote into its table
    │   └── EmbedderError   vectors cannot be had, or are not what the table holds
    ├── HostLost            the process that ran the agent is gone; what it acknowledged is in the log
    ├── ClusterError        Ray cannot be started, joined or kept
    └── FunctionError       a function of the agent failed: the model is told, the turn goes on

The exit code of the command line is a table over this tree, in `interfaces`. Messages say whose fault it is, what
was expected, what was found, and what to do. Every public type has a page: `everlog explain CODE`.
"""

import re
from typing import ClassVar

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def code_of(name: str) -> str:
    """Return the code of an error type by its name: `unknown-agent` for `UnknownAgent`."""
    return _WORD_START.sub("-", name).lower()


class EverlogError(Exception):
    """The root: catch this to catch everything that everlog raises on purpose."""

    code: ClassVar[str] = "everlog-error"
    """Address of the page about this type. A private type has the code of the type that it is made from."""

    def __init_subclass__(cls) -> None:
        """Set `code`."""
        super().__init_subclass__()
        if not cls.__name__.startswith("_"):
            cls.code = code_of(cls.__name__)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as what it holds: an error crosses processes whole, whatever its constructor asks for."""
        return _restored, (type(self), self.args, self.__dict__)


class UsageError(EverlogError):
    """The caller's request cannot be; nothing was changed."""


class UnknownAgent(UsageError):
    """No agent of that name has a log in this store."""


class BadInput(UsageError):
    """A value, line or file is not what was promised; nothing of it is kept."""


class Busy(UsageError):
    """A queue is full: nothing of the request was kept. `retry_after_s`: in how many seconds to try again."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class StoreError(EverlogError):
    """The log could not do what was asked; nothing of the request is kept."""


class WrongSequence(StoreError):
    """`expected_seq` is not the head of the stream: somebody else appended first."""

    def __init__(self, agent_id: str, expected: int, actual: int) -> None:
        super().__init__(
            f"{agent_id!r} is at seq {actual}, but the append expected seq {expected}: another commit came first. "
            "Read the new records and decide again."
        )
        self.expected = expected
        self.actual = actual


class DuplicateId(StoreError):
    """An event id was used before with other content, or only a part of its commit came again."""


class StaleId(StoreError):
    """The event id is older than the log still remembers ids for, so a repeat could not be told from a new event."""


class Fenced(StoreError):
    """A newer epoch owns the partition: this writer was never acknowledged for the append and must stop."""


class Moved(StoreError):
    """The agent went to another partition: nothing was kept here. Look up where it is, and send it there."""


class PartitionBusy(StoreError):
    """A live process owns the partition. `pid` is its number if it runs on this machine, else 0; `owner` is its machine
    and its number there, as `node-3/4711`.
    """

    def __init__(self, message: str, pid: int = 0, owner: str = "") -> None:
        super().__init__(message)
        self.pid = pid
        self.owner = owner


class Poisoned(StoreError):
    """An earlier write or sync of this writer failed: what reached the disk is unknown until it is opened again."""


class CorruptLog(StoreError):
    """Damage before the end of the log: the message names file, offset and seq, and no byte was changed."""


class NewerFormat(StoreError):
    """The store has a format version that this everlog does not know."""


class ModelError(EverlogError):
    """The model endpoint failed. `kind` is a short word for the log, `attempts` how often it was tried.

    `retry_after_s`: in how many seconds it is worth another try, as far as anybody knows; 0 where nobody does.
    """

    def __init__(self, message: str, *, kind: str, attempts: int = 1, retry_after_s: float = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts
        self.retry_after_s = retry_after_s


class ContextOverflow(ModelError):
    """The request is longer than the context window. `raw`: the answer, where there was one."""

    def __init__(self, message: str, raw: str = "") -> None:
        super().__init__(message, kind="overflow")
        self.raw = raw


class OverBudget(ModelError):
    """A budget is used up, so nothing was sent. `budget` is whose and of what, `spent` and `limit` are in that unit."""

    def __init__(self, message: str, *, budget: str, limit: float, spent: float, retry_after_s: float = 0) -> None:
        super().__init__(message, kind="budget", retry_after_s=retry_after_s)
        self.budget = budget
        self.limit = limit
        self.spent = spent


class BadReply(ModelError):
    """The endpoint answered, but not with a chat completion that can be read. `raw`: what came of it."""

    def __init__(self, message: str, raw: str = "", *, kind: str = "garbage", retry_after_s: float = 0) -> None:
        super().__init__(message, kind=kind, retry_after_s=retry_after_s)
        self.raw = raw


class ArchiveError(EverlogError):
    """The index of memories cannot be used. Nothing is lost: it is made from the log."""


class ArchiveDown(ArchiveError):
    """Nobody answers where the archive should be."""


class ForeignRows(ArchiveError):
    """Somebody else wrote into the table of the archive."""


class EmbedderError(ArchiveError):
    """Vectors cannot be had, or are not of the shape that the table holds."""


class HostLost(EverlogError):
    """The process that ran the agent is gone. What it acknowledged is in the log; the rest may or may not be."""


class ClusterError(EverlogError):
    """Ray could not be started, joined or kept; agents and their logs are as they were."""


class FunctionError(EverlogError):
    """A function of the agent refused or failed; the text goes back to the model as a failed result."""


def _restored(kind: type[EverlogError], args: tuple[object, ...], fields: dict[str, object]) -> EverlogError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error
