"""All errors that everlog raises on purpose, as one tree. Any other exception is a bug of everlog and propagates.

    EverlogError
    ├── UsageError          the request is invalid (fix the request)
    │   ├── UnknownAgent    no such agent; similar names are in the message
    │   ├── Busy            a queue is full; the same request can be sent again later
    │   ├── EditConflict    another edit came first: the text has changed since it was read
    │   ├── AlreadyDecided  a call that waited for an approval was decided before, or its time is over
    │   └── BadInput        a file, argument or value does not have the expected shape
    ├── StoreError          the log could not carry out the request (nothing of it is kept)
    │   ├── WrongSequence   another commit came first: expected_seq is not the head
    │   ├── DuplicateId     an event id was repeated with other content, or with only part of its commit
    │   ├── StaleId         an event id is too old to be distinguished from a new one
    │   ├── Fenced          a newer owner has the partition; this writer must stop
    │   ├── Moved           the agent is in another partition now
    │   ├── PartitionBusy   a live process owns the partition
    │   ├── Poisoned        an earlier write failed; open the log again
    │   ├── CorruptLog      bytes inside the log are damaged; nothing was changed
    │   └── NewerFormat     the store was written by a newer everlog
    ├── ModelError          the model endpoint failed (the message that was sent is kept)
    │   ├── ContextOverflow the endpoint says that the request is too long
    │   ├── OverBudget      a budget of tokens or money is used up; nothing was sent
    │   └── BadReply        the endpoint's answer cannot be read
    ├── ArchiveError        the index of memories cannot be used; it can be rebuilt from the log
    │   ├── ArchiveDown     the archive does not answer
    │   ├── ForeignRows     another program wrote into the archive's table
    │   └── EmbedderError   there are no vectors, or they do not fit the table
    ├── HostLost            the process that ran the agent is gone; what it acknowledged is in the log
    ├── ClusterError        Ray cannot be started, joined or kept
    └── FunctionError       a function of the agent failed: the model gets the error, the turn continues

Raised in all rooms. An error that ends a command gives exit code 1. Scripts and pages name an error by its `code`,
which is made of the name of its class. Messages say whose fault it is, what was expected, what was found, and what to
do.
Every public type has a page: `everlog explain CODE`.
"""

import re
from typing import ClassVar

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def code_of(name: str) -> str:
    """Return the code of an error type by its name: `unknown-agent` for `UnknownAgent`."""
    return _WORD_START.sub("-", name).lower()


class EverlogError(Exception):
    """Root of the tree: catch this to catch everything that everlog raises on purpose."""

    code: ClassVar[str] = "everlog-error"
    """Address of the page about this type. A private type has the code of the type that it is made from."""

    def __init_subclass__(cls) -> None:
        """Set `code`."""
        super().__init_subclass__()
        if not cls.__name__.startswith("_"):
            cls.code = code_of(cls.__name__)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the error by its attributes: it crosses processes unchanged, whatever its constructor requires."""
        return _restored, (type(self), self.args, self.__dict__)


class UsageError(EverlogError):
    """The request is invalid; nothing was changed."""


class UnknownAgent(UsageError):
    """No agent of that name has a log in this store."""


class BadInput(UsageError):
    """A value, line or file does not have the expected shape; nothing of it is kept."""


class AlreadyDecided(UsageError):
    """A call that waited for an approval was decided before, or its time is over; the first decision holds."""


class EditConflict(UsageError):
    """An edit was made from a text that has changed since: nothing was changed. `seq` is the record of the text that is
    there now, `current` that text, and `wanted` the text of the edit.
    """

    def __init__(self, message: str, *, seq: int, current: str, wanted: str) -> None:
        super().__init__(message)
        self.seq = seq
        self.current = current
        self.wanted = wanted


class Busy(UsageError):
    """A queue is full: nothing of the request was kept. Try again after `retry_after_s` seconds."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class StoreError(EverlogError):
    """The log could not carry out the request; nothing of the request is kept."""


class WrongSequence(StoreError):
    """`expected_seq` is not the head of the stream: another commit came first."""

    def __init__(self, agent_id: str, expected: int, actual: int) -> None:
        super().__init__(
            f"{agent_id!r} is at seq {actual}, but the append expected seq {expected}: another commit came first. "
            "Read the new records and decide again."
        )
        self.expected = expected
        self.actual = actual


class DuplicateId(StoreError):
    """An event id was used before with other content, or only a part of its commit was sent again."""


class StaleId(StoreError):
    """The event id is older than the ids that the log remembers,
    so a repeat could not be distinguished from a new event.
    """


class Fenced(StoreError):
    """A newer epoch owns the partition: the append was not acknowledged, and this writer must stop."""


class Moved(StoreError):
    """The agent is in another partition now: nothing was kept here.
    Look up the agent's partition, and send the request there.
    """


class PartitionBusy(StoreError):
    """A live process owns the partition. `pid` is its process id if it runs on this machine, else 0; `owner` is its
    machine and process id, as `node-3/4711`. `cluster` and `start` tell the host of a cluster from others: the cluster,
    and the number of the host's start there; empty and 0 for any other process.
    """

    def __init__(self, message: str, pid: int = 0, owner: str = "", cluster: str = "", start: int = 0) -> None:
        super().__init__(message)
        self.pid = pid
        self.owner = owner
        self.cluster = cluster
        self.start = start


class Poisoned(StoreError):
    """An earlier write or sync of this writer failed:
    until the log is opened again, it is unknown what reached the disk.
    """


class CorruptLog(StoreError):
    """Bytes before the end of the log are damaged. The message names file, offset and seq; no byte was changed."""


class NewerFormat(StoreError):
    """The store has a format version that this everlog does not know."""


class ModelError(EverlogError):
    """The model endpoint failed. `kind` is the class of the failure, for the log; `attempts` is the number of tries.

    `retry_after_s`: seconds after which another try may succeed; 0 if unknown.
    """

    def __init__(self, message: str, *, kind: str, attempts: int = 1, retry_after_s: float = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts
        self.retry_after_s = retry_after_s


class ContextOverflow(ModelError):
    """The request is longer than the context window. `raw`: the answer, if there was one."""

    def __init__(self, message: str, raw: str = "") -> None:
        super().__init__(message, kind="overflow")
        self.raw = raw


class OverBudget(ModelError):
    """A budget is used up, so nothing was sent. `budget` names its owner and unit;
    `spent` and `limit` are in that unit.
    """

    def __init__(self, message: str, *, budget: str, limit: float, spent: float, retry_after_s: float = 0) -> None:
        super().__init__(message, kind="budget", retry_after_s=retry_after_s)
        self.budget = budget
        self.limit = limit
        self.spent = spent


class BadReply(ModelError):
    """The endpoint's answer is not a chat completion that can be read. `raw`: the answer as far as it arrived."""

    def __init__(self, message: str, raw: str = "", *, kind: str = "garbage", retry_after_s: float = 0) -> None:
        super().__init__(message, kind=kind, retry_after_s=retry_after_s)
        self.raw = raw


class McpError(EverlogError):
    """An MCP server could not be started or reached, or what it offers cannot be read; nothing was called."""


class A2aError(EverlogError):
    """An agent of another program could not be reached, or its card cannot be used; nothing was sent to it."""


class ArchiveError(EverlogError):
    """The index of memories cannot be used. Nothing is lost: the index can be rebuilt from the log."""


class ArchiveDown(ArchiveError):
    """The archive does not answer."""


class ForeignRows(ArchiveError):
    """Another program wrote into the archive's table."""


class EmbedderError(ArchiveError):
    """There are no vectors, or they do not have the shape of the table's."""


class HostLost(EverlogError):
    """The process that ran the agent is gone. What it acknowledged is in the log; other work may or may not be."""


class ClusterError(EverlogError):
    """Ray could not be started, joined or kept; agents and their logs are unchanged."""


class FunctionError(EverlogError):
    """A function of the agent refused or failed; the model gets the text as a failed result."""


def _restored(kind: type[EverlogError], args: tuple[object, ...], fields: dict[str, object]) -> EverlogError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error
