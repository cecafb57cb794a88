"""Ask a store for everything that it holds, in this process: records, states, memory of past moments, search results.

Used by the judge of the damage matrix. What a question raises, and what a reader says of damage, is kept as said.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path

import msgspec

from everlog.actors.models.model_catalogue import catalogue_of
from everlog.events import EverlogError
from everlog.projections import DERIVER, Projections, activate
from everlog.store import (
    ArchiveQuery,
    FileStore,
    SaidMessages,
    check,
    check_forks,
    check_moves,
    check_register,
    stream_of,
    stream_of_block,
)
from everlog.store.archive import Archive, message_vectors_of
from everlog.store.embedding.embedder import DEFAULT_EMBEDDER, Embedder, embedder_of

QUERIES = (("sam", "harbour"), ("sam", "boat"), ("ann", "compass"), ("kid", "message"))
LATE = 2**62
MADE_AGAIN = "made again: "
"""Beginning of a question that needs no answer, because what is lost there is made again."""
PAST = 14
"""Seq of a past moment of sam, which is read by way of a checkpoint."""


@cache
def embedder() -> Embedder:
    """Return the embedder of the index; it is loaded once."""
    return embedder_of(DEFAULT_EMBEDDER)


class Answers:
    """Answers of a store to all questions, and everything that was said of damage meanwhile."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.said: set[str] = set()
        self.given: dict[str, str] = {}

    def ask(self, question: str, answer: Callable[[], object]) -> None:
        """Keep the digest of an answer; if it raises an error of everlog, that is said."""
        try:
            found = answer()
        except EverlogError as error:
            self.said.add(f"{question}: {error}")
            return
        self.given[question] = hashlib.sha256(repr(found).encode()).hexdigest()

    def check_logs(self, partitions: Iterable[str], *, deep: bool) -> None:
        """Check partitions as `log check` does."""

        def checked() -> None:
            store = self._store()
            for name in partitions:
                report = check(store.partition(name), deep=deep, derive=DERIVER if deep else None)
                self.said.update((*report.errors, *report.notes))

        self.ask("log check", checked)

    def check_all_logs(self) -> None:
        """Check every partition, and the partitions against each other, as `log check --all --deep` does."""

        def between() -> None:
            store = self._store()
            registered = check_register(store)
            self.said.update((*registered.errors, *registered.notes, *check_moves(store), *check_forks(store)))

        self.ask("log check --all", lambda: self.check_logs(self._store().partitions(restoring=True), deep=True))
        self.ask("log check between logs", between)

    def read_logs(self) -> None:
        """Read each record, the newest state of each agent, and a past moment."""
        store = self._opened()
        if store is None:
            return
        for name in [*store.agents(), *map(stream_of, store.sources()), *map(stream_of_block, store.blocks())]:
            self.ask(f"{self._kind_of(store, name)}records of {name}", partial(self._records, store, name))
        for name in store.agents():
            self.ask(f"{self._kind_of(store, name)}memory of {name}", partial(self._memory, store, name, None))
        self.ask("a past moment", lambda: self._memory(store, "sam", PAST))

    def read_descriptions(self) -> None:
        """Read the findings of probes; one that is lost is found again, one that is different is wrong."""

        def found() -> None:
            for probe in catalogue_of(self._root).found:
                self.given[f"{MADE_AGAIN}probe of {probe.model} at {probe.url}"] = repr(probe)

        self.ask("models", found)

    def use_index(self) -> None:
        """Bring the index up to date, check it against the logs, and search in it."""
        store = self._opened()
        if store is None:
            return
        index = Archive(store, embedder())
        try:
            self.ask("archive follow", lambda: index.follow() and None)
            self.ask("archive check", lambda: self.said.update(index.check()))
            for agent_id, query in QUERIES:
                wanted = ArchiveQuery(agent_id, query, LATE, LATE, ("book",))
                self.ask(f"search {query} of {agent_id}", partial(_search, index, wanted))
                self.ask(f"meanings of {agent_id}", partial(_meanings, store, agent_id, query))
        finally:
            index.close()

    def _store(self) -> FileStore:
        return FileStore(self._root, lambda: 1)

    def _opened(self) -> FileStore | None:
        found: list[FileStore] = []
        self.ask("store", lambda: found.append(self._store()))
        return found[0] if found else None

    def _kind_of(self, store: FileStore, name: str) -> str:
        """Return the beginning of questions about a stream: a name without a record holds nothing that can be lost."""
        try:
            return "" if store.reader(name).head(name).seq else MADE_AGAIN
        except EverlogError:
            return ""

    def _records(self, store: FileStore, name: str) -> list[object]:
        reader = store.reader(name)
        rows = reader.table(name).to_pylist()
        damage = getattr(reader, "damage", None)
        if damage is not None:
            self.said.add(str(damage))
        return rows

    def _memory(self, store: FileStore, name: str, seq: int | None) -> list[object]:
        with Projections() as engine:
            reader = store.reader(name)
            activate(engine, reader, name, *([] if seq is None else [seq]))
            return [engine.rows(table, name) for table in ("core_memory", "context_window", "standing", "sources")]


def _search(index: Archive, wanted: ArchiveQuery) -> object:
    return msgspec.to_builtins(index.search(wanted))


def _meanings(store: FileStore, agent_id: str, query: str) -> object:
    said = SaidMessages([1, 2], [("user", "", query), ("assistant", "", "something else")].__getitem__)
    vectors = message_vectors_of(store, lambda _: embedder())
    try:
        return vectors.near(agent_id, query, said).tolist()
    finally:
        vectors.close()
