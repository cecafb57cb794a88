"""All memories of one agent behind one reading API: what was said, stored and derived.

Part of the public API: `agent.memories`, and `memories` of an `AgentState`; `sync_api` wraps both. Reading writes
nothing: a search leaves no trace, and the same question at the same moment has the same answer.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, get_args

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import Filters, Hit, Place, ThreadRunner
from everlog.actors.recollection.memory_accesses import last_accesses
from everlog.actors.recollection.memory_format import MemoryFormatter, formatted
from everlog.actors.recollection.memory_items import (
    MemoryItem,
    MemoryKind,
    about,
    items_of,
    line_of,
    of_kinds,
    tokens,
)
from everlog.actors.recollection.memory_levels import (
    DEFAULT_LIMITS,
    LeveledText,
    Summarizer,
    SummaryLimits,
    extracted,
    summarized,
    summary_line,
)
from everlog.actors.recollection.memory_ranking import (
    Candidate,
    MemoryMode,
    RankedMemories,
    by_default,
    by_meaning,
    by_paper,
    closures,
    parts_after,
)
from everlog.actors.recollection.memory_tree import MemoryTree, edges_of, reached, tree_of
from everlog.actors.short_tracebacks import short_tracebacks
from everlog.events import BadInput
from everlog.events.times import microseconds_of
from everlog.projections import DerivedRows
from everlog.store import SaidMessages

Kinds = Collection[MemoryKind]
"""Kinds of memories."""


class MemoryMoment:
    """One agent at one moment, as far as its memories need it. `aside` runs one work at a time."""

    def __init__(self, view: AgentView, aside: ThreadRunner) -> None:
        self._view = view
        self._aside = aside

    async def rows(self, projection: str) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a projection."""
        rows: Sequence[Mapping[str, Any]] = await self._aside(self._view.rows, projection)
        return rows

    async def items(self) -> Sequence[MemoryItem]:
        """Return all memories in the order of their times."""
        return items_of(await self.rows("memories"))

    async def searcher(self) -> AgentSearcher:
        """Return the searcher of the moment."""
        searcher: AgentSearcher = await self._aside(self._view.searcher, None, self._aside)
        return searcher

    async def now(self) -> int:
        """Return the time of the last record, microseconds UTC."""
        rows = await self._records("SELECT epoch_us(arg_max(recorded_at, seq)) AS time")
        return int(rows[0]["time"] or 0)

    async def records(self, seqs: Collection[int]) -> Sequence[Mapping[str, Any]]:
        """Return seq, type, time, text and payload of these records."""
        what = "SELECT seq, type, epoch_us(coalesce(said_at, recorded_at)) AS time, text, payload"
        return await self._records(what, "AND list_contains($3::BIGINT[], seq)", sorted(seqs))

    async def archival_versions(self) -> Mapping[int, int]:
        """Return, by the seq that inserted a text into archival memory, the seq that gave it its current text."""
        rows = DerivedRows(self._view.projections, self._view.agent_id, self._view.seq)
        versions: Mapping[int, int] = await self._aside(rows.archival_versions)
        return versions

    async def _records(self, what: str, condition: str = "", *parameters: object) -> Sequence[Mapping[str, Any]]:
        agent_id = self._view.agent_id
        query = f"{what} FROM records WHERE agent_id = $1 AND seq <= $2 {condition}"
        given = [agent_id, self._view.seq, *parameters]
        rows: Sequence[Mapping[str, Any]] = await self._aside(self._view.projections.query, query, given, [agent_id])
        return rows


MomentOpener = Callable[[int | datetime | None], AbstractAsyncContextManager[MemoryMoment]]
"""Opens an agent at a moment: a seq (inclusive), a time with a zone, or None for the newest."""


def moments_of(system: LocalSystem, agent_id: str, aside: ThreadRunner) -> MomentOpener:
    """Return a function that opens an agent at a moment, from its log: no host is started."""

    @asynccontextmanager
    async def opened(as_of: int | datetime | None) -> AsyncIterator[MemoryMoment]:
        view: AgentView = await aside(partial(system.view, agent_id, as_of=as_of))
        try:
            yield MemoryMoment(view, aside)
        finally:
            await aside(view.close)

    return opened


@short_tracebacks
class MemoryViews:
    """All memories of one agent: messages, archival memory, insights, facts and plans. Reads, and writes nothing.

    `as_of` of each method is a seq (inclusive) or a time with a zone; None: now. `kinds`: only memories of these kinds;
    None: all. `about`: only memories of an entity, by one of its names, or by a word. Each method raises BadInput for
    unusable arguments.
    """

    def __init__(self, agent_id: str, opened: MomentOpener) -> None:
        """Read the memories of an agent. `AgentRef` and `AgentState` do this."""
        self._agent_id = agent_id
        self._opened = opened

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._agent_id!r}>"

    async def list(
        self, *, kinds: Kinds | None = None, about: str = "", as_of: int | datetime | None = None
    ) -> Sequence[MemoryItem]:
        """Return the memories in the order of their times. Facts that have ended are `outdated`."""
        async with self._opened(as_of) as moment:
            return await _chosen(moment, await moment.items(), kinds, about)

    async def count(self, *, kinds: Kinds | None = None, about: str = "", as_of: int | datetime | None = None) -> int:
        """Return the number of memories."""
        return len(await self.list(kinds=kinds, about=about, as_of=as_of))

    async def total_tokens(
        self, *, kinds: Kinds | None = None, about: str = "", as_of: int | datetime | None = None
    ) -> int:
        """Return the estimated tokens of the texts of the memories, without anything between them."""
        return sum(tokens(item.text) for item in await self.list(kinds=kinds, about=about, as_of=as_of))

    async def search(
        self,
        query: str,
        count: int = PAGE_RESULTS,
        *,
        mode: MemoryMode = "default",
        kinds: Kinds | None = None,
        about: str = "",
        as_of: int | datetime | None = None,
        now: datetime | None = None,
        accesses: bool = False,
        ended: bool = False,
        leave_out_parts: bool = False,
    ) -> RankedMemories:
        """Return the `count` memories that answer the query best, best first.

        - `mode`: `default`: by relevance, which recency and importance change by at most 10 %, among the best 50 of
          messages, of archival memory and of what was derived; `combined`: the same, and insights stand before what
          they rest on; `paper`: relevance + recency + importance of all memories, each scaled to [0, 1]; `embedding`:
          all memories by their similarity in meaning. For a query without words all memories are equally relevant.
        - `now`: time up to which recency counts; None: that of the agent's last record at the moment.
        - `accesses`: recency counts from the last search whose result is in the log and has the memory.
        - `ended`: facts that have ended are results, too.
        - `leave_out_parts`: the mode `combined` leaves out what stands after an insight that rests on it.
        """
        if mode not in get_args(MemoryMode):
            raise BadInput(f"There is no mode {mode!r}. Modes are: {', '.join(get_args(MemoryMode))}.")
        until = None if now is None else microseconds_of(now, "now")
        async with self._opened(as_of) as moment:
            whole = await moment.items()
            items = await _chosen(moment, whole, kinds, about)
            items = [item for item in items if ended or item.kind != "fact" or not item.outdated]
            until = await moment.now() if until is None else until
            ranking = _Ranking(moment, whole, items, until, ended=ended)
            found = await ranking.ranked(query, mode, accesses=accesses, leave_out_parts=leave_out_parts)
        results = found.results[: max(count, 0)]
        return RankedMemories(mode, until, results, found.constant, found.by_meaning)

    async def format(
        self,
        query: str | None = None,
        *,
        separator: str = "\n\n",
        formatter: MemoryFormatter | None = None,
        item_limit: int | None = None,
        token_limit: int | None = None,
        mode: MemoryMode = "default",
        kinds: Kinds | None = None,
        about: str = "",
        as_of: int | datetime | None = None,
    ) -> str:
        """Return the memories as one text in the order of their times, within the limits.

        The limits take those first that answer the query best, then the newest. `formatter`: writes one memory; None:
        its time in the agent's zone, who said it or its kind, and its text. `token_limit`: estimated tokens of the
        whole text, a token for four bytes, separators included. `mode`: as of `search`.
        """
        async with self._opened(as_of) as moment:
            whole = await moment.items()
            items = await _chosen(moment, whole, kinds, about)
            zone = (await moment.searcher()).zone
            first: Sequence[tuple[int, int]] = ()
            if query is not None and query.strip():
                ranking = _Ranking(moment, whole, items, await moment.now(), ended=True)
                first = [one.item.key for one in (await ranking.ranked(query, mode)).results]
        places = {item.key: place for place, item in enumerate(items)}
        priority = dict.fromkeys([*(places[key] for key in first), *reversed(range(len(items)))])
        write = formatter or partial(line_of, zone=zone)
        return formatted(
            items, list(priority), write, separator=separator, item_limit=item_limit, token_limit=token_limit
        )

    async def summarized(
        self,
        summarize: Summarizer = extracted,
        limits: SummaryLimits = DEFAULT_LIMITS,
        *,
        kinds: Kinds | None = ("message", "archival"),
        about: str = "",
        as_of: int | datetime | None = None,
    ) -> Sequence[LeveledText]:
        """Return the memories within a budget of tokens: the newest as they are, older ones as summaries of summaries.

        `summarize`: writes a summary; a `KnownSummaries` asks a model once for the same texts. The default extracts
        sentences and asks no model. Nothing is noted. Raises also what `summarize` raises.
        """
        async with self._opened(as_of) as moment:
            items = await _chosen(moment, await moment.items(), kinds, about)
            zone = (await moment.searcher()).zone
        texts = ((summary_line(item, zone), item.at, item.seq) for item in items)
        return await summarized(texts, summarize, limits)

    async def tree(self, seq: int, *, as_of: int | datetime | None = None) -> MemoryTree:
        """Return what the memory of that seq rests on, down to messages, and what rests on it.

        Raises BadInput if there is no memory of that seq.
        """
        async with self._opened(as_of) as moment:
            items, derived = await moment.items(), await moment.rows("derived_records")
            sources, resting = edges_of(derived)
            known = {item.seq for item in items} | {row["seq"] for row in derived}
            others = await moment.records((reached(seq, sources) | reached(seq, resting)) - known)
        found = tree_of(seq, items, derived, others)
        if seq not in found.nodes or seq not in known:
            raise BadInput(f"{self._agent_id!r} has no memory with seq {seq}. Give the seq of a result of a search.")
        return found


async def _chosen(
    moment: MemoryMoment, items: Sequence[MemoryItem], kinds: Kinds | None, name: str
) -> Sequence[MemoryItem]:
    """Return the items of these kinds that are about the entity of a name; empty: about anything."""
    chosen = of_kinds(items, kinds)
    if not name:
        return chosen
    wanted = name.casefold()
    entities = {
        row["entity"]: {row["entity"], *row["names"]}
        for row in await moment.rows("entities")
        if wanted in {one.casefold() for one in (row["entity"], *row["names"])}
    }
    seqs = {row["seq"] for row in await moment.rows("mentions") if row["entity"] in entities} if entities else set()
    return about(chosen, {name}.union(*entities.values()), seqs)


class _Ranking:
    """One search among the memories of one moment."""

    def __init__(
        self, moment: MemoryMoment, whole: Sequence[MemoryItem], items: Sequence[MemoryItem], now: int, *, ended: bool
    ) -> None:
        """`whole`: all memories; `items`: those that may be results; `ended`: facts that have ended are among them."""
        self._moment = moment
        self._whole = whole
        self._items = items
        self._now = now
        self._ended = ended

    async def ranked(
        self, query: str, mode: MemoryMode, *, accesses: bool = False, leave_out_parts: bool = False
    ) -> RankedMemories:
        """Return all results, best first."""
        searcher = await self._moment.searcher()
        relevances: Mapping[tuple[int, int], float]
        if not query.strip():
            relevances, meant = dict.fromkeys((item.key for item in self._items), 1.0), False
        elif mode in ("default", "combined"):
            relevances, meant = await self._joint(searcher, query)
        else:
            relevances, meant = await self._cosines(searcher, query)
        accessed: Mapping[tuple[int, int], int] = {}
        if accesses:
            calls = await self._moment.rows("function_calls")
            accessed = last_accesses(calls, self._whole, searcher.zone, self._now)
        candidates = [
            Candidate(item, relevances[item.key], accessed.get(item.key, item.at))
            for item in self._items
            if item.key in relevances
        ]
        if mode == "paper":
            results, constant = by_paper(candidates, self._now)
            return RankedMemories(mode, self._now, results, constant, meant)
        results = by_meaning(candidates, self._now) if mode == "embedding" else by_default(candidates, self._now)
        if mode == "combined":
            results = parts_after(results, closures(self._whole), leave_out=leave_out_parts)
        return RankedMemories(mode, self._now, results, (), meant)

    async def _joint(self, searcher: AgentSearcher, query: str) -> tuple[Mapping[tuple[int, int], float], bool]:
        """Return the relevance of the results of the search of all places, by key."""
        places: Sequence[Place] = ("messages", "archive", "derived")
        found = await searcher.ranked(query, Filters(places=places, ended=self._ended))
        relevances: dict[tuple[int, int], float] = {}
        for hit in found.results:
            relevances.setdefault(_key_of(hit), hit.score)
        return relevances, found.by_meaning

    async def _cosines(self, searcher: AgentSearcher, query: str) -> tuple[Mapping[tuple[int, int], float], bool]:
        """Return the similarity of each memory to the query, by key; without an archive that of its words."""
        versions = await self._moment.archival_versions()
        owners = [versions.get(item.seq, item.seq) if item.kind == "archival" else item.seq for item in self._whole]
        texts: dict[int, tuple[str, str, str]] = {}
        for owner, item in sorted(zip(owners, self._whole, strict=True), key=lambda one: one[1].key):
            kept = texts.get(owner)  # the items of a plan are one text
            role = item.role if item.kind == "message" else item.kind
            name = item.name if item.kind == "message" else ""
            texts[owner] = role, name, f"{kept[2]}; {item.text}" if kept else item.text
        seqs = sorted(texts)
        near, _ = await searcher.near(query, SaidMessages(seqs, lambda place: texts[seqs[place]]))
        if near is not None:
            return {item.key: near[owner] for owner, item in zip(owners, self._whole, strict=True)}, True
        shares = await searcher.word_shares(query, [(item.name, item.text) for item in self._items])
        return {item.key: share for item, share in zip(self._items, shares, strict=True)}, False


def _key_of(hit: Hit) -> tuple[int, int]:
    """Return the key of the memory of a result."""
    part = hit.ref.partition(".")[2] if hit.kind == "plan" else ""
    return hit.seq, int(part or 0)
