"""Vectors of messages that know one answer, for tests of the services that ask for them."""

from collections.abc import Callable, Sequence

import numpy as np

from everlog.actors.archive.message_meanings import MessageMeanings
from everlog.events import Record
from everlog.store import ArchiveQuery, MeaningQuery, SaidMessages
from everlog.store.archive import Matches


class Vectors:
    """Vectors of messages that know one answer, and record the agents whose messages were prepared."""

    def __init__(self) -> None:
        self.prepared: list[tuple[str, int]] = []
        self.fails: Exception | None = None
        self.opened = self.rested = 0

    def near_many(self, asked: Sequence[MeaningQuery], is_closing: Callable[[], bool]) -> list[np.ndarray]:
        if self.fails is not None:
            raise self.fails
        return [np.array([0.5], np.float32) for _ in asked]

    def prepare(self, agent_id: str, said: SaidMessages, is_closing: Callable[[], bool]) -> None:
        if self.fails is not None:
            raise self.fails
        self.prepared.append((agent_id, len(said.seqs)))

    def memory_rows(self, records: Sequence[Record], made: object) -> object:
        return records

    def search_memories(self, rows: Sequence[Record], wanted: ArchiveQuery) -> Matches:
        if self.fails is not None:
            raise self.fails
        return Matches(total=len(rows))

    def rest(self) -> None:
        self.rested += 1

    def close(self) -> None:
        pass


def meant(vectors: Vectors, notes: list[str] | None = None, *, ahead_from: int | None = None) -> MessageMeanings:
    """Return the service of these vectors, for agents that have said one thing."""

    def open_vectors() -> Vectors:
        vectors.opened += 1
        return vectors

    one = SaidMessages([1], [("user", "", "hello")].__getitem__)
    return MessageMeanings(
        open_vectors, lambda _: one, note=[].append if notes is None else notes.append, ahead_from=ahead_from
    )
