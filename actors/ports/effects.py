"""Protocols of all effects that an agent may have: time, ids, the model, search. An agent has no other effects.

The real ones are in `real_clock.py` (clock, ids) and in `actors/models/` (models). Tests supply their own. Used by
agents, and by all code that supplies or calls an effect.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from everlog.events import InheritedBudget, Usage
from everlog.events.times import moment

if TYPE_CHECKING:
    import numpy as np

    from everlog.projections.search.memory_cache import KnownMemories
    from everlog.store import ArchiveQuery, MeaningQuery, SaidMessages


class Clock(Protocol):
    """Source of the time."""

    def now(self) -> int:
        """Return microseconds since 1970-01-01 UTC."""
        ...


class Ids(Protocol):
    """Source of ids."""

    def new(self, at: int) -> str:
        """Return a fresh UUIDv7 for time `at` (microseconds UTC)."""
        ...


class ThreadRunner(Protocol):
    """Runner of slow work outside of the event loop: `asyncio.to_thread`, or in place where a test needs that."""

    def __call__(self, work: Callable[..., Any], /, *arguments: Any) -> Awaitable[Any]: ...


async def in_place(work: Callable[..., Any], /, *arguments: Any) -> Any:
    """Run work here and now: a `ThreadRunner` without a thread, for hosts, whose engine belongs to their loop."""
    return work(*arguments)


class FunctionOutcome(msgspec.Struct, frozen=True):
    """Outcome of one run of a user's function."""

    ending: Literal["returned", "raised", "limit", "not_started"]
    """`limit`: it had not ended within its time limit. `not_started`: no thread was free, so it was not run."""
    value: Any = None
    """Return value of a function that returned."""
    error: BaseException | None = None
    """Exception of a function that raised one."""


class FunctionRunner(Protocol):
    """Runner of users' plain functions, outside of the event loop: `FunctionThreads`, or in place where a test needs
    that.
    """

    async def run(
        self, work: Callable[[], Any], limit_s: float | None, on_late: Callable[[FunctionOutcome], None]
    ) -> FunctionOutcome:
        """Run `work`, and wait at most `limit_s` seconds for its end (None: no limit), counted from its start.

        If the caller does not wait for the end, because the limit is reached or the caller is cancelled, then
        `on_late` gets the outcome later.
        """
        ...


class ModelResponse(msgspec.Struct, frozen=True):
    """Answer of a model."""

    raw: str
    """Body of the answer, verbatim."""
    latency_us: int
    attempts: int = 1


class ReplyDelta(msgspec.Struct, frozen=True, gc=False):
    """One delta of a streamed reply: some text, or a part of a call."""

    text: str = ""
    """Text that belongs to the reply's content."""
    call: int = -1
    """Index of the call, from 0, that `name` and `arguments` belong to; -1: none."""
    name: str = ""
    arguments: str = ""
    restart: bool = False
    """True if the request is tried again: drop all deltas received so far."""


DeltaCallback = Callable[[ReplyDelta], None]
"""Called with the deltas of a reply in order. Deltas are not durable and may be void: only the answer counts."""


class Spent(msgspec.Struct, frozen=True, gc=False):
    """Usage of one agent on one day, and its limits."""

    day: int = 0
    """Days since 1970-01-01 UTC."""
    models: Mapping[str, Usage] = {}
    """Usage by the model name of the requests."""
    tokens_max: int = 0
    """Maximum tokens that the agent may use in a day; 0: no limit."""
    cost_max: float = 0.0
    """Maximum cost of the agent's tokens in a day; 0: no limit."""
    charged: Mapping[str, Usage] = {}
    """Usage of other agents for this one, as their answers reported it."""
    inherited: Sequence[InheritedBudget] = ()
    """Budgets of other agents that the request has to keep, with what was used of them, as far as this agent knows."""


NOTHING = Spent()


class Model(Protocol):
    """One chat-completions endpoint."""

    name: str
    """Value of `model` in requests."""

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Send exactly these bytes and return the answer. Raise ModelError; any other exception is a bug in everlog.

        `on_delta` gets the deltas of a reply as they arrive, if the request asks for a stream and the model streams.
        The answer is the whole reply either way. `spent` is the caller's usage so far with its limits: it is checked
        where there are budgets.
        """
        ...

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        ...


@runtime_checkable
class CheckedModel(Model, Protocol):
    """A model that can tell whether it can be asked, without being asked."""

    async def check(self) -> None:
        """Raise ModelError if the model cannot be asked: no key or a wrong one, no server, no file. Costs no tokens."""
        ...


Place = Literal["messages", "archive", "documents", "derived"]
"""Places that a search covers: the conversation, the memories that the agent stored, the documents of its sources, and
what was derived from all of them.
"""


class Hit(msgspec.Struct, frozen=True):
    """One result of a search."""

    seq: int
    at: int = msgspec.field(name="time")
    """Time at which it was said or stored, microseconds UTC."""
    role: str
    name: str
    text: str
    """The whole message; of a memory or document the part that was found."""
    ref: str
    """For a message, the reference under which it was imported; for a memory, its id; for a derived one its seq, and
    for an item of a plan also its number, such as 17.2.
    """
    score: float
    tags: Sequence[str] = ()
    source: str = ""
    """Source into which the document was loaded; empty for a memory that the agent inserted."""
    document: str = ""
    part: int = 1
    """Number of this part of a long text, from 1."""
    parts: int = 1
    near: float | None = None
    """Similarity in meaning to the query, as a cosine from -1 to 1; None if it was not compared."""
    passage: str = ""
    """Passage of a long text that shows best why it was found; empty if the text is short enough to be shown whole."""
    agent: str = ""
    """Name of the agent that was searched."""
    kind: str = ""
    """Of a derived memory: `insight`, `fact` or `plan`."""
    sources: Sequence[int] = ()
    """Seqs of the records on which a derived memory rests."""
    outdated: bool = False
    """True if it rests on a fact that has ended, or is one."""
    until: int | None = None
    """Time at which a fact ended or ends, microseconds UTC, exclusive; None: it is not known."""

    @property
    def place(self) -> Place:
        """Place where it was found."""
        if self.role == "derived":
            return "derived"
        return "documents" if self.source else "archive" if self.role == "archival" else "messages"

    @property
    def shown(self) -> str:
        """Text that pages show: the passage, or the whole text if it is short."""
        return self.passage or self.text

    @property
    def time(self) -> datetime:
        """Time at which it was said or stored, UTC."""
        return moment(self.at)


class Page(msgspec.Struct, frozen=True):
    """One page of results; page 0 is the first."""

    total: int
    page: int
    pages: int
    results: Sequence[Hit]
    by_meaning: bool = False
    """True if vectors influenced the order; False: words alone did."""
    archive_down: bool = False
    """True if the archive should have taken part and did not answer:
    the results were found by words alone, in the log.
    """
    reranked: bool = False
    """True if a reranker put the best results in order."""
    reranker_down: bool = False
    """True if a reranker should have done so and gave no usable answer: the results are in the order without it."""
    unread: Sequence[str] = ()
    """Errors of agents that a search in many could not read."""


class Filters(msgspec.Struct, frozen=True):
    """Conditions on results besides the query. An empty field is no condition."""

    roles: Sequence[str] = ()
    """Roles of messages: `user`, `assistant`."""
    start: str = ""
    """First day, YYYY-MM-DD in the agent's zone, inclusive."""
    end: str = ""
    """Last day, inclusive."""
    tags: Sequence[str] = ()
    """Tags of memories: a result has all of these."""
    source: str = ""
    """Source into which documents were loaded."""
    places: Sequence[Place] = ()
    """Places to search together; searches of one place do not look at it."""
    kinds: Sequence[str] = ()
    """Kinds of derived memories: `insight`, `fact`, `plan`."""
    ended: bool = False
    """True: facts that have ended are results, too."""


ANYTHING = Filters()


class ArchiveClient(Protocol):
    """Index of the memories of agents, which catches up with the log before it answers, and meanings of messages.

    `search`, `meanings` and `rerank` raise ArchiveDown if there is no answer; the caller then searches by words alone,
    or leaves the results in their order.
    """

    def begin(self, agent_id: str, records: int) -> None:
        """Prepare for searches of an agent that was loaded and has so many records, in the background."""
        ...

    def rest(self) -> None:
        """Give back memory that only searches need, in the background."""
        ...

    @property
    def reranks(self) -> bool:
        """True if the best results of searches are to be put in order by `rerank`."""
        ...

    async def search(self, wanted: "ArchiveQuery", known: "KnownMemories | None" = None) -> Page:
        """Return stored texts, best match first. `known`: all memories of an agent without sources, if the caller has
        them; they are then searched in this process.
        """
        ...

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        """Return the numbers of these texts (from 0), best first, each once."""
        ...

    async def meanings(self, agent_id: str, query: str, said: "SaidMessages") -> "np.ndarray":
        """Return the similarity of these messages to the query, in their order: cosines from -1 to 1, float32.

        The array is empty for a query without words.
        """
        ...

    async def meanings_of_many(self, asked: "Sequence[MeaningQuery]") -> "list[np.ndarray]":
        """Return what `meanings` returns, for each of many agents."""
        ...


class OtherAgents(Protocol):
    """The other agents of a store, as one agent looks for them. The names that it says are those of its tenant."""

    async def named(self, name: str, *, living: bool = False) -> str:
        """Return the name in the store of the agent that this one calls `name`. Raise BadInput for an impossible name,
        UnknownAgent; if `living`, also for a deleted agent, after a look into its log.
        """
        ...

    async def labelled(self, label: str) -> Sequence[str]:
        """Return the names in the store of the other agents of the tenant with a label, sorted. Raise BadInput for a
        blank one.
        """
        ...

    async def background(self, name: str) -> str:
        """Return the name, as the tenant says it, of the agent that is to be this one's background agent. Raise
        UnknownAgent; BadInput for this agent itself, and for a circle of agents that would tell each other.
        """
        ...


class Searcher(Protocol):
    """Search in one agent's memory, as of the moment of the call."""

    async def recall(self, query: str, page: int, count: int, filters: Filters = ANYTHING) -> Page:
        """Return messages, best match first. Raise FunctionError for an invalid filter."""
        ...

    async def recall_between(self, start: str, end: str, page: int, count: int) -> Page:
        """Return messages from day `start` to day `end` (YYYY-MM-DD in the agent's zone, both inclusive), in order."""
        ...

    async def archival(self, query: str, page: int, count: int, filters: Filters = ANYTHING) -> Page:
        """Return memories that the agent stored, best match first."""
        ...

    async def derived(self, query: str, page: int, count: int, filters: Filters = ANYTHING) -> Page:
        """Return insights, facts and items of plans, best match first."""
        ...

    async def kept(self, text: str) -> str:
        """Return the id of a memory with exactly this text, apart from surrounding white space;
        empty if there is none.
        """
        ...

    async def memories_holding(self, texts: Sequence[str]) -> Mapping[str, str]:
        """Return the ids of memories by their text, for those of `texts` that are stored.
        Texts have no surrounding white space.
        """
        ...

    async def memory(self, memory_id: str) -> Hit | None:
        """Return the current memory with that id; None if there is none, or it was deleted."""
        ...

    async def rows(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a projection of the agent, such as `facts`."""
        ...

    @property
    def agent_id(self) -> str:
        """Name of the agent in the store."""
        ...

    @property
    def others(self) -> OtherAgents:
        """The other agents of the store. Raise FunctionError if the agent is looked at outside of a store."""
        ...

    async def message(self, seq: int) -> Hit | None:
        """Return the message of that seq; None if it cannot be found by a search."""
        ...

    async def document(self, document_id: str, first: int, count: int) -> Page:
        """Return parts `first` (from 0) to `first + count` (exclusive) of a document, in order. An id that belongs to
        no document of the agent's sources gives an empty page. Raise FunctionError if the archive does not answer.
        """
        ...
