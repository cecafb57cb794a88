"""Keep a few empty engines for questions about one agent after another: opening and closing one takes 30 ms of CPU.

Used by views of agents. A server keeps engines, because each of its pages is a view. An engine in the pool holds
nothing of any agent, so that no answer can be of an earlier question.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from everlog.projections.engine import Projections


class EnginePool:
    """Empty engines. Thread-safe; each engine serves one question at a time."""

    def __init__(self, idle_max: int = 0) -> None:
        """`idle_max`: number of engines that are kept; 0: each is closed after its question."""
        self._idle_max = idle_max
        self._idle: deque[Projections] = deque()

    def take(self) -> Projections:
        """Return an empty engine. The caller gives it back."""
        try:
            return self._idle.pop()
        except IndexError:
            return Projections()

    def give_back(self, engine: Projections, agent_id: str) -> None:
        """Keep an engine that holds at most one agent, without that agent; close it if there are enough."""
        if len(self._idle) >= self._idle_max:
            engine.close()
            return
        try:
            engine.forget(agent_id)
        except duckdb.Error:  # a database that failed stays broken
            engine.close()
        else:
            self._idle.append(engine)

    @contextmanager
    def engine(self, agent_id: str) -> Iterator[Projections]:
        """Lend an empty engine while the block runs, for one agent."""
        engine = self.take()
        try:
            yield engine
        finally:
            self.give_back(engine, agent_id)

    def close(self) -> None:
        """Close the engines that are kept."""
        while self._idle:
            self._idle.pop().close()
