"""Keep the best results of a search in many agents, in bounded memory, whatever the order in which agents are searched.

Used by `fleet_search`. Pure.
"""

from collections.abc import Sequence
from heapq import heappush, heappushpop

from everlog.actors.ports.effects import Hit, Page

_Rank = tuple[float, int, int]
"""Score, minus the number of the agent, and minus the place among its results: higher is better."""


class BestHits:
    """The best results so far. Equally relevant ones are in the order of their agents' numbers, then in the order of
    the agent's own search.
    """

    def __init__(self, count: int) -> None:
        """Keep `count` results, at least 1."""
        self._count = count
        self._heap: list[tuple[_Rank, Hit]] = []

    def add(self, number: int, hits: Sequence[Hit]) -> None:
        """Add the results of an agent, each agent's once."""
        for place, hit in enumerate(hits):
            one = ((hit.score, -number, -place), hit)
            if len(self._heap) < self._count:
                heappush(self._heap, one)
            elif one[0] > self._heap[0][0]:
                heappushpop(self._heap, one)
            else:
                break  # the results of an agent fall

    def needs(self, number: int, score: float) -> bool:
        """Return True if a result of this agent with this score would be kept."""
        return len(self._heap) < self._count or (score, -number, 0) > self._heap[0][0]

    def __len__(self) -> int:
        return len(self._heap)

    def ranked(self) -> list[Hit]:
        """Return the results, best first."""
        return [hit for _, hit in sorted(self._heap, key=lambda one: one[0], reverse=True)]


class FoundHits:
    """Everything that a search in many agents has found so far: the best results, and what its page says of all."""

    def __init__(self, count: int) -> None:
        """Keep the best `count` results."""
        self.best = BestHits(count)
        self._total = 0
        self._by_meaning, self._archive_down = True, False

    def add(self, number: int, found: Page) -> None:
        """Add the results of an agent, all on one page."""
        self._total += found.total
        self._by_meaning = self._by_meaning and (found.by_meaning or not found.results)
        self._archive_down = self._archive_down or found.archive_down
        self.best.add(number, found.results)

    def count(self, total: int) -> None:
        """Count results of an agent that were found by meaning, and that cannot be among the best."""
        self._total += total

    def page(self) -> Page:
        """Return the best results on one page."""
        hits = self.best.ranked()
        by_meaning = self._by_meaning and bool(hits)
        return Page(self._total, 0, 1, hits, by_meaning=by_meaning, archive_down=self._archive_down)
