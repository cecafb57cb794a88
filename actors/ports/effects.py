"""Every effect that an agent may have, as a Protocol: time, chance, the model, search. Nothing else leaves the agent.

Real ones are in `real_clock.py` (clock, ids) and in `actors/models/` (models); tests bring their own.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from everlog.events import Usage

if TYPE_CHECKING:
    from everlog.store import ArchiveQuery


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


class Ids(Protocol):
    """Where ids come from."""

    def new(self, at: int) -> str:
        """A fresh UUIDv7 for time `at` (microseconds UTC)."""
        ...


class ThreadRunner(Protocol):
    """Runs what takes long beside the event loop: `asyncio.to_thread`, or in place where a test says so."""

    def __call__(self, work: Callable[..., Any], /, *arguments: Any) -> Awaitable[Any]: ...


class ModelResponse(msgspec.Struct, frozen=True):
    """What came back from a model."""

    raw: str
    """The body, verbatim."""
    latency_us: int
    attempts: int = 1


class ReplyDelta(msgspec.Struct, frozen=True, gc=False):
    """What came of a reply that is streamed, as it came: some words, or a part of a call."""

    text: str = ""
    """Of the reply's content."""
    call: int = -1
    """Which of its calls the rest is of, from 0; -1: none."""
    name: str = ""
    arguments: str = ""
    restart: bool = False
    """What was told before counts for nothing: the request is tried again."""


DeltaCallback = Callable[[ReplyDelta], None]
"""Is told the pieces of a reply in order. What it is told may come to nothing: only the answer counts."""


class Spent(msgspec.Struct, frozen=True, gc=False):
    """What an agent has used up on one day, and what it may."""

    day: int = 0
    """Days since 1970-01-01 UTC."""
    models: Mapping[str, Usage] = {}
    """By the name of the model that was asked."""
    tokens_max: int = 0
    """Tokens that the agent itself may use up on a day; 0: no limit."""
    cost_max: float = 0.0
    """What they may cost; 0: no limit."""

    @property
    def tokens(self) -> int:
        """Of all models."""
        return sum(usage.total for usage in self.models.values())


NOTHING = Spent()


class Model(Protocol):
    """One chat-completions endpoint."""

    name: str
    """What requests put into `model`."""

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Send exactly these bytes. Raises ModelError; any other exception is our bug.

        `on_delta` is told the pieces of a reply as they come, where the request asks for a stream and the model gives
        one; the answer is the reply put together, as if it had not. `spent`: what whoever asks has used up until now,
        and what they may: held against it where there are budgets.
        """
        ...

    async def close(self) -> None:
        """Let go of connections. Idempotent."""
        ...


class Hit(msgspec.Struct, frozen=True):
    """One result of a search."""

    seq: int
    time: int
    """When it was said or kept, microseconds UTC."""
    role: str
    name: str
    text: str
    ref: str
    """What a message was imported under; the id of a memory."""
    score: float
    tags: Sequence[str] = ()
    source: str = ""
    """Where a document was loaded into; empty for what the agent kept itself."""
    document: str = ""
    part: int = 1
    """Which part of a long text this is, from 1."""
    parts: int = 1


class Page(msgspec.Struct, frozen=True):
    """One page of results; page 0 is the first."""

    total: int
    page: int
    pages: int
    results: Sequence[Hit]
    by_meaning: bool = False
    """Whether vectors had a part in the order; False: words alone."""
    archive_down: bool = False
    """Whether the archive should have had a part in it and did not answer: words alone found it, in the log."""


class Filters(msgspec.Struct, frozen=True):
    """What results must be beside what is asked for. An empty field asks for nothing."""

    roles: Sequence[str] = ()
    """Of messages: `user`, `assistant`."""
    start: str = ""
    """First day, YYYY-MM-DD in the agent's zone, inclusive."""
    end: str = ""
    """Last day, inclusive."""
    tags: Sequence[str] = ()
    """Of memories: each has all of them."""
    source: str = ""
    """Of documents: where they were loaded into."""


ANYTHING = Filters()


class ArchiveClient(Protocol):
    """The index of what agents keep and say, which lags behind the log and catches up when it is asked.

    Where nobody answers, every method raises ArchiveDown: whoever asked goes on with words alone.
    """

    async def search(self, wanted: "ArchiveQuery") -> Page:
        """What was kept, best match first."""
        ...

    async def meanings(self, agent_id: str, query: str, said_by: int) -> Mapping[int, float]:
        """How near in meaning each message comes to the query: by seq, up to `said_by`, cosine of -1 to 1."""
        ...


class Searcher(Protocol):
    """Search in one agent's memory, as of the moment at which it was asked."""

    async def recall(self, query: str, page: int, count: int, filters: Filters = ANYTHING) -> Page:
        """What was said, best match first. Raises FunctionError for a filter that cannot be."""
        ...

    async def recall_between(self, start: str, end: str, page: int, count: int) -> Page:
        """What was said from day `start` to day `end` (YYYY-MM-DD in the agent's zone, both inclusive), in order."""
        ...

    async def archival(self, query: str, page: int, count: int, filters: Filters = ANYTHING) -> Page:
        """What the agent kept, best match first."""
        ...

    async def kept(self, text: str) -> str:
        """The id of a memory that holds exactly this text, white space around it aside; empty if there is none."""
        ...

    async def kept_of(self, texts: Sequence[str]) -> Mapping[str, str]:
        """By text, the ids of the memories that hold one of these texts, which have no white space around them."""
        ...

    async def memory(self, memory_id: str) -> Hit | None:
        """The memory of that id as it is; None if there is none, or it was deleted."""
        ...
