"""Find what an agent stored, as of any moment: by words, by id, or by the whole text.

Used by `actors/memory/agent_search.py`, for searches of agents and of people.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from everlog.projections.engine import Projections
from everlog.projections.hot.rows import Row
from everlog.projections.projection_constants import HEAD
from everlog.projections.recall_search import RecallPage
from everlog.projections.search.memory_cache import KnownMemories
from everlog.store.base.bm25 import rarity, score, weight
from everlog.store.base.stemming import phrases_in, query_stems, stems
from everlog.store.embedding.best_passage import passage_around

PHRASE_SCORE = 100.0
"""Score added to a text that contains the query word for word, so that it comes before all others."""

FOUND_CHARS = 1000
"""Maximum characters that a search returns of a longer text, as much as a part of a memory in the archive has."""

WHITE = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""Characters that `str.strip` removes. DuckDB's `trim` gets them, so that both agree."""

NO_END = 2**62
"""Time that is never reached, microseconds UTC."""


class AttachedSources(NamedTuple):
    """Sources attached to an agent, and the time up to which their documents count (microseconds UTC, inclusive)."""

    sources: Sequence[str]
    time: int


class ArchivalSearch:
    """Archival memory of one agent as of one seq."""

    def __init__(self, projections: Projections, agent_id: str, as_of: int) -> None:
        self._projections = projections
        self._agent_id = agent_id
        self._as_of = as_of

    def attached(self) -> AttachedSources:
        """Return the sources that were attached. Documents that were loaded up to the agent's last record count."""
        if self._as_of == HEAD:  # a state is enough
            rows = self._projections.rows("sources", self._agent_id)
            return AttachedSources(sorted(row["source"] for row in rows if row["source"]), NO_END)
        said = self._search_by_values("kept_attached")[0]
        changes = sorted(said["changes"] or (), key=itemgetter("seq"))
        attached = {one["source"]: one["attached"] for one in changes}
        return AttachedSources(
            sorted(source for source, there in attached.items() if source and there), said["time"] or 0
        )

    def known(self) -> KnownMemories | None:
        """Return the memories themselves, if they are in memory, are few, and the agent has no sources; else None."""
        return self._projections.caches.memories.known(self._agent_id, self._as_of)

    def places(self) -> set[str]:
        """Return those of `archive`, `documents` and `derived` in which a search can find something: what is left out
        spares asking an index, or a query that costs more.
        """
        found = self._projections.query(
            "SELECT DISTINCT CASE type WHEN 'archival_inserted' THEN 'archive' ELSE 'derived' END AS place "
            "FROM records WHERE agent_id = ? AND seq <= ? "
            "AND type IN ('archival_inserted', 'insight_noted', 'fact_noted', 'plan_made')",
            [self._agent_id, self._as_of], [self._agent_id],
        )  # fmt: skip
        return {str(row["place"]) for row in found} | ({"documents"} if self.attached().sources else set())

    def sources(self) -> set[str]:
        """Return the sources that the agent's own memories name."""
        return {row["source"] for row in self._passing() if row["source"]}

    def holding(self, text: str) -> str:
        """Return the id of the first memory with exactly this text, apart from white space around it;
        empty if there is none.
        """
        if not self._ever_held(text):  # a quick test first: the exact query is slow
            return ""
        return next((str(row["memory_id"]) for row in self._rows_of("kept_holding", text.strip(), WHITE)), "")

    def ids_of_texts(self, texts: Sequence[str]) -> dict[str, str]:
        """Return the ids of the memories with one of these texts, by text.
        The texts have no white space around them.
        """
        if (known := self.known()) is not None and not _holds(known, texts):
            return {}
        rows = self._projections.search("kept_among", self._agent_id, self._as_of, list(texts), WHITE)
        return {row["text"]: row["memory_id"] for row in reversed(rows)}

    def _ever_held(self, text: str) -> bool:
        """Return True if a memory ever had exactly this text, apart from white space around it."""
        known = self.known()
        if known is not None:
            return _holds(known, [text])
        return bool(self._search_by_values("kept_once", text.strip(), WHITE))

    def memory(self, memory_id: str) -> Row | None:
        """Return the memory of that id; None if there is none, or it was deleted."""
        return next((_hit(row) for row in self._rows_of("kept_memory", memory_id)), None)

    def listed(
        self,
        first: int,
        count: int,
        *,
        tags: Sequence[str] = (),
        source: str = "",
        after: int | None = None,
        before: int | None = None,
    ) -> RecallPage:
        """Return memories in order: rows `first` (from 0) to `first + count` (exclusive).
        Filters are as in `search`.
        """
        rows = self._passing(tags, source, after, before)
        return RecallPage([_hit(row) for row in rows[first : first + count]], len(rows))

    def search(
        self,
        query: str,
        first: int,
        count: int,
        *,
        tags: Sequence[str] = (),
        source: str = "",
        after: int | None = None,
        before: int | None = None,
    ) -> RecallPage:
        """Return memories, best match of words first, as `memories_found` does."""
        return memories_found(self._passing(tags, source, after, before), query, first, count)

    def _passing(
        self, tags: Sequence[str] = (), source: str = "", after: int | None = None, before: int | None = None
    ) -> list[Row]:
        rows = self._projections.rows("archival_memory", self._agent_id, self._as_of)
        return memories_passing(rows, tags, source, after, before)

    def _search_by_values(self, name: str, *parameters: object) -> Sequence[Row]:
        """Return the rows of a SQL file that reads the agent's records by plain values."""
        return self._projections.search(name, self._agent_id, self._as_of, self._agent_id, self._as_of, *parameters)

    def _rows_of(self, name: str, *parameters: str) -> Sequence[Row]:
        return self._projections.search(name, self._agent_id, self._as_of, *parameters)


def memories_found(rows: Sequence[Row], query: str, first: int, count: int) -> RecallPage:
    """Return those of the rows of `archival_memory` that match a query, best match of words first: `first` (from 0) to
    `first + count` (exclusive).

    Each result contains the phrases in quotation marks as they are written. Of a long text only the best passage is
    returned.
    """
    documents = [(row, Counter(stems(row["text"]))) for row in rows]
    average = sum(found.total() for _, found in documents) / max(len(documents), 1) or 1.0
    rarities = {
        one: rarity(len(rows), n) for one in query_stems(query) if (n := sum(one in found for _, found in documents))
    }
    quoted, rest = phrases_in(query)
    phrase = quoted[0] if quoted and not rest else query.strip().lower()
    scored: list[tuple[float, Row]] = []
    for row, found in documents:
        if not all(each in row["text"].lower() for each in quoted):
            continue
        damping = weight(found.total(), average)
        total = sum(score(rare, found[one], damping) for one, rare in rarities.items())
        if phrase and phrase in row["text"].lower():
            total += PHRASE_SCORE
        if total > 0:
            scored.append((total, row))
    scored.sort(key=lambda each: (-each[0], each[1]["seq"]))
    page = [_hit(row, total, rarities, phrase) for total, row in scored[first : first + count]]
    return RecallPage(page, len(scored))


def _holds(known: KnownMemories, texts: Sequence[str]) -> bool:
    """Return True if a record has exactly one of these texts, apart from white space around it."""
    sought = {text.strip() for text in texts}
    return any((record.text or "").strip() in sought for record in known.records)


def memories_passing(
    rows: Sequence[Row], tags: Sequence[str], source: str, after: int | None, before: int | None
) -> list[Row]:
    """Return the rows of `archival_memory` that have all tags, the source, and are of a time from `after` (inclusive)
    to `before` (exclusive), microseconds UTC. What is empty or None is no condition.
    """
    return [row for row in rows if _passes(row, tags, source, after, before)]


def _passes(row: Row, tags: Sequence[str], source: str, after: int | None, before: int | None) -> bool:
    early = after is not None and row["time"] < after
    late = before is not None and row["time"] >= before
    return not early and not late and (not source or row["source"] == source) and set(tags) <= set(row["tags"])


def _hit(row: Row, score: float = 0.0, rarities: Mapping[str, float] | None = None, phrase: str = "") -> Row:
    text = row["text"]
    if rarities is not None:
        text = passage_around(text, rarities, FOUND_CHARS, [phrase] if phrase else ()).text
    return {
        "seq": row["seq"], "time": row["time"], "role": "archival", "name": "", "text": text,
        "ref": row["memory_id"], "score": round(score, 4), "tags": row["tags"], "source": row["source"],
    }  # fmt: skip
