"""Open the index of a store, and the vectors of its messages, with the embedder that its table was made with.

Used by `open_system`, by the archive's Ray actor, and by the commands `archive` and `erase`. LanceDB and embedders are
imported inside the functions, so that commands without a search start fast.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from everlog.actors.archive.archive_service import ArchiveService, LocalArchiveClient
from everlog.actors.archive.message_meanings import MessageMeanings
from everlog.actors.archive.reranker import Reranker
from everlog.events import MessageSent, UserMessage, event_of, is_erased
from everlog.store import FileStore, SaidMessages

if TYPE_CHECKING:
    from everlog.store.archive import Archive, MessageVectors, ServingTable
    from everlog.store.embedding.embedder import Embedder


def index_of(store: FileStore) -> "Archive":
    """Return the index. Imports LanceDB and an embedder, which takes seconds and 100 MB. Raises ArchiveError."""
    from everlog.store.archive import Archive, recorded_embedder

    return Archive(store, _embedder_of(recorded_embedder(store)))


def _embedder_of(serving: "ServingTable | None") -> "Embedder":
    """Return the embedder of a table; the default for a store without a table. Raises EmbedderError."""
    from everlog.actors.archive.embedder_choice import embedder_by_recorded_name, embedder_for

    return embedder_for() if serving is None else embedder_by_recorded_name(serving.embedder, serving.dimension)


def message_meanings(
    open_store: Callable[[], FileStore], *, note: Callable[[str], None], ahead_from: int | None
) -> MessageMeanings:
    """Return the comparison of messages by meaning, in this process. `open_store` is called in a thread, at each use.
    `ahead_from`: see `MessageMeanings`.
    """

    def open_vectors() -> "MessageVectors":
        from everlog.store.archive import message_vectors_of

        return message_vectors_of(open_store(), _embedder_of)

    return MessageMeanings(
        open_vectors, lambda agent_id: _messages_of(open_store(), agent_id), note=note, ahead_from=ahead_from
    )


def _messages_of(store: FileStore, agent_id: str) -> SaidMessages:
    """Return all that an agent has said and heard, in all incarnations. Raises StoreError."""
    seqs: list[int] = []
    said: list[tuple[str, str, str]] = []
    for record in store.reader(agent_id).read(agent_id):
        if record.type in {UserMessage.kind, MessageSent.kind} and not is_erased(record.payload):
            role = "user" if record.type == UserMessage.kind else "assistant"
            seqs.append(record.seq)
            said.append((role, getattr(event_of(record), "name", ""), record.text or ""))
    return SaidMessages(seqs, said.__getitem__)


def catch_up(store: FileStore, agents: Iterable[str]) -> None:
    """Bring the archive, if there is one, up to date with the logs of these agents, erasures included. Raises
    ArchiveError.
    """
    agents = list(agents)
    if (store.root / "archive").exists():
        from everlog.store.archive import drop_messages, recorded_embedder

        drop_messages(store, agents)
        if recorded_embedder(store) is None:
            return
        index = index_of(store)
        try:
            index.wait_for_rebuild()
            index.follow({partition for agent_id in agents for partition in store.route(agent_id)})
        finally:
            index.close()


def local_archive(store: FileStore, *, note: Callable[[str], None], stays: bool = False) -> LocalArchiveClient:
    """Return the archive client of this process. `stays`: the process stays, so work ahead of searches pays."""
    service = ArchiveService(lambda: index_of(store), store, note=note)
    meant = message_meanings(lambda: store, note=note, ahead_from=0 if stays else None)
    return LocalArchiveClient(service, meant, Reranker(store.root, note=note), stays=stays)
