"""Keep the talk indexes of the agents that were searched last, in bounded memory.

Used by `engine`, which has one cache and drops an agent's talk with its rows, and by `recall_search`. An index that is
kept holds words of messages: whatever drops an agent's rows must drop its talk, too.
"""

from collections import OrderedDict
from collections.abc import Collection

import numpy as np

from everlog.projections.search.talk_index import TalkIndex


class TalkCache:
    """Talk indexes by agent and incarnation. For one thread at a time."""

    def __init__(self, bytes_max: int) -> None:
        """Keep up to `bytes_max` bytes. The agent that was searched last is kept, whatever its talk takes."""
        self._bytes_max = bytes_max
        self._indexes: OrderedDict[tuple[str, int], tuple[TalkIndex, int]] = OrderedDict()
        self._used = 0

    @property
    def used(self) -> int:
        """Approximate bytes of all indexes."""
        return self._used

    @property
    def agents(self) -> set[str]:
        """Agents whose talk is kept."""
        return {agent_id for agent_id, _ in self._indexes}

    def take(self, agent_id: str, seqs: np.ndarray) -> TalkIndex:
        """Remove and return the index that has the first of these messages, or all of them and later ones; a new one if
        there is none. `seqs`: what an agent has said by a moment in one incarnation, ascending.
        """
        index = self._remove((agent_id, int(seqs[0]))) if len(seqs) else None
        return index if index is not None and index.agrees(seqs) else TalkIndex()

    def keep(self, agent_id: str, index: TalkIndex) -> None:
        """Keep an index, and drop those that were kept longest ago until the others fit."""
        if not len(index):
            return
        key, size = (agent_id, index.first_seq), index.size
        self._remove(key)
        self._indexes[key] = index, size
        self._used += size
        while self._used > self._bytes_max and len(self._indexes) > 1:
            self._remove(next(iter(self._indexes)))

    def forget(self, agents: Collection[str]) -> None:
        """Drop the talk of these agents."""
        for key in [key for key in self._indexes if key[0] in agents]:
            self._remove(key)

    def clear(self) -> None:
        """Drop everything."""
        self._indexes.clear()
        self._used = 0

    def _remove(self, key: tuple[str, int]) -> TalkIndex | None:
        index, size = self._indexes.pop(key, (None, 0))
        self._used -= size
        return index
