"""The index of what agents keep and say: a projection of the log, in LanceDB, that can always be made anew."""

from collections.abc import Callable, Iterable, Sequence

from store.filestore import FileStore

from .contract import Embedder, Lag, Matches, Progress, Rebuilt, Status


class Archive:
    """Follows the log of a store, and answers from what it has taken in. Thread-safe."""

    def __init__(self, store: FileStore, embedder: Embedder, now: Callable[[], int]) -> None:
        """Nothing is opened before it is needed."""

    def follow(self, partitions: Iterable[str] | None = None) -> Lag:
        """Take in what is new in the log: of these partitions, or of all. Cheap when there is nothing."""
        raise NotImplementedError

    def search(
        self,
        query: str,
        *,
        agent_id: str,
        as_of: int,
        sources: Sequence[str] = (),
        as_of_time: int,
        tags: Sequence[str] = (),
        source: str = "",
        after: int | None = None,
        before: int | None = None,
        first: int = 0,
        count: int = 10,
    ) -> Matches:
        """What an agent kept, and what its sources hold, best match first: `first` (from 0) to `first + count`."""
        raise NotImplementedError

    def meanings(self, agent_id: str, query: str, said_by: int) -> dict[int, float]:
        """How near in meaning each message comes to the query: cosine by seq, up to `said_by` (inclusive)."""
        raise NotImplementedError

    def kept(self, agent_id: str, text: str) -> str:
        """Id of a memory of the agent that holds exactly this text now; empty if there is none."""
        raise NotImplementedError

    def rebuild(self, embedder: Embedder | None = None, progress: Progress | None = None) -> Rebuilt:
        """Make the index anew from the log alone, beside the old one, which answers until it is replaced."""
        raise NotImplementedError

    def check(self) -> list[str]:
        """What differs between the index and the log, row for row: empty if all is as it must be."""
        raise NotImplementedError

    def status(self) -> Status:
        """How the archive stands."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of files. Idempotent."""
        raise NotImplementedError
