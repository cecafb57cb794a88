"""A store with agents that keep, say, change and forget things, and an archive with a small embedder."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from events import Draft, uuid7
from store import FileLog, FileStore
from store.archive import Archive

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


class Hashed:
    """Vectors from hashes of words: texts that share words are near."""

    def __init__(self, name: str = "hashed", dimension: int = 16) -> None:
        self.name = name
        self.dimension = dimension
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                seed = int.from_bytes(hashlib.sha256(f"{self.name} {word}".encode()).digest()[:4], "big")
                row += np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)


class World:
    """A store in a folder, whose clock goes on by a second with each event."""

    def __init__(self, root: Path, shards: int = 2) -> None:
        self.time = NOW
        self.root = root
        self.store = FileStore.create(root, self.now, "tests", shards=shards)
        self._ids = int(hashlib.sha256(str(root).encode()).hexdigest()[:6], 16)
        self._logs: dict[str, FileLog] = {}
        self.embedder = Hashed()

    def now(self) -> int:
        return self.time

    def archive(self, embedder: Hashed | None = None, **more: object) -> Archive:
        return Archive(self.store, embedder or self.embedder, self.now, **more)  # type: ignore[arg-type]

    def log(self, agent_id: str) -> FileLog:
        self.store.register(agent_id, shared=not agent_id.startswith("alone"))
        partition = self.store.partition_of(agent_id)
        if partition not in self._logs:
            self._logs[partition] = self.store.open_partition(partition, "tests")
        return self._logs[partition]

    def draft(self, kind: str, text: str | None = None, **fields: object) -> Draft:
        self.time += SECOND
        self._ids += 1
        payload = msgspec.json.encode(fields).decode()
        return Draft(event_id=uuid7(self.time, self._ids), recorded_at=self.time, type=kind, turn=1, step=0, version=1,
                     text=text, payload=payload)  # fmt: skip

    def append(self, agent_id: str, *drafts: Draft) -> str:
        """Append one commit; gives the id of its first event."""
        log = self.log(agent_id)
        log.append(agent_id, log.head(agent_id).seq, list(drafts))
        return drafts[0].event_id

    def insert(self, agent_id: str, text: str, **fields: object) -> str:
        return self.append(agent_id, self.draft("archival_inserted", text, **fields))

    def update(self, agent_id: str, memory_id: str, text: str, **fields: object) -> str:
        return self.append(agent_id, self.draft("archival_updated", text, memory_id=memory_id, **fields))

    def delete(self, agent_id: str, memory_id: str) -> str:
        return self.append(agent_id, self.draft("archival_deleted", memory_id=memory_id))

    def say(self, agent_id: str, text: str, *, sent: bool = False) -> str:
        return self.append(agent_id, self.draft("message_sent" if sent else "user_message", text))

    def load(self, source: str, document: str, text: str) -> str:
        return self.append(f"source:{source}", self.draft("document_loaded", text, source=source, document=document))

    def remove(self, source: str, document: str) -> str:
        return self.append(f"source:{source}", self.draft("document_removed", source=source, document=document))

    def erase(self, agent_id: str, first: int, last: int) -> None:
        self.append(agent_id, self.draft("records_erased", from_seq=first, to_seq=last))

    def move(self, agent_id: str, to: str) -> None:
        log = self.log(agent_id)
        if to not in self._logs:
            self._logs[to] = self.store.open_partition(to, "tests")
        self.store.begin_move(log, agent_id, to)
        self.store.finish_move(self._logs[to], agent_id)

    def seq(self, agent_id: str) -> int:
        return self.log(agent_id).head(agent_id).seq

    def seal(self) -> None:
        for log in self._logs.values():
            log.seal()

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
        self._logs.clear()


END = 2**62


def found(archive: Archive, query: str, agent_id: str, as_of: int = END, **more: object) -> list[str]:
    """The texts that a search finds, best first."""
    matches = archive.search(query, agent_id=agent_id, as_of=as_of, as_of_time=END, **more)  # type: ignore[arg-type]
    return [match.text for match in matches.results]
