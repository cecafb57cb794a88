"""A store with agents that write, change and delete memories and messages, and an archive with a small embedder."""

import hashlib
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from everlog.events import Draft, uuid7
from everlog.store import ArchiveQuery, FileLog, FileStore
from everlog.store.archive import Archive, Matches
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata
from everlog.store.archive.archive_table import Tables

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


class Hashed:
    """An embedder whose vectors are hashes of words: texts that share words are near."""

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
    """A store in a folder, with a clock that advances by a second with each event."""

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
        return Archive(self.store, embedder or self.embedder, **more)  # type: ignore[arg-type]

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
        """Append one commit. Return the id of its first event."""
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


def search(archive: Archive, query: str, agent_id: str = "sam", as_of: int = END, **more: Any) -> Matches:
    """Return the results of a search; without `as_of_time`, sources are searched as of their end."""
    return archive.search(
        ArchiveQuery(**{"query": query, "agent_id": agent_id, "as_of": as_of, "as_of_time": END, **more})
    )


def found(archive: Archive, query: str, agent_id: str, as_of: int = END, **more: object) -> list[str]:
    """Return the texts that a search finds, best first."""
    return [match.text for match in search(archive, query, agent_id, as_of, **more).results]


def rows_of(archive: Archive) -> list[dict[str, object]]:
    """Return every row of the table in use, with its vector, sorted."""
    serving = ArchiveMetadata(archive._folder / NOTES).serving()
    assert serving is not None
    table = Tables(archive._folder).open(serving.generation).read()
    return sorted(table.to_pylist(), key=lambda row: row["memory_id"])


class Chance:
    """Random actions of agents, one after another."""

    def __init__(self, world: World, seed: int, agents: Sequence[str] = ("sam", "ann", "alone")) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.agents = agents
        self.alive: dict[str, list[str]] = {}
        self.loaded: set[str] = set()

    def text(self) -> str:
        """Return some words; sometimes many."""
        count = self.random.choice([1, 3, 8, 20, 400])
        return " ".join(self.random.choices(WORDS, k=count)) + self.random.choice([".", "!", " id-77/a"])

    def act(self, *, rarely: bool = True) -> None:
        """Do one random action. With `rarely`, rare ones are possible too (moves, erasures, deletions of agents)."""
        agent_id = self.random.choice(self.agents)
        mine = self.alive.setdefault(agent_id, [])
        what = self.random.choices(
            ["insert", "update", "delete", "say", "load", "remove", "other", *RARE],
            weights=[8, 4, 2, 4, 2, 1, 1, *([1] * len(RARE) if rarely else [0] * len(RARE))],
        )[0]
        if what in {"update", "delete"} and not mine:
            what = "insert"
        getattr(self, f"_{what}")(agent_id, mine)

    def _insert(self, agent_id: str, mine: list[str]) -> None:
        tags = self.random.sample(["a", "b", "c"], self.random.randrange(3))
        mine.append(self.world.insert(agent_id, self.text(), tags=tags))

    def _update(self, agent_id: str, mine: list[str]) -> None:
        self.world.update(agent_id, self.random.choice(mine), self.text(), tags=["new"])

    def _delete(self, agent_id: str, mine: list[str]) -> None:
        self.world.delete(agent_id, mine.pop(self.random.randrange(len(mine))))

    def _say(self, agent_id: str, mine: list[str]) -> None:
        self.world.say(agent_id, self.text(), sent=self.random.random() < 0.5)

    def _other(self, agent_id: str, mine: list[str]) -> None:
        self.world.append(agent_id, self.world.draft("system_alert", "nothing to keep"))

    def _load(self, agent_id: str, mine: list[str]) -> None:
        document = self.random.choice(["one.txt", "two.txt"])
        self.world.load("books", document, self.text())

    def _remove(self, agent_id: str, mine: list[str]) -> None:
        self.world.remove("books", self.random.choice(["one.txt", "two.txt"]))

    def _move(self, agent_id: str, mine: list[str]) -> None:
        places = [f"shard-{number:03d}" for number in range(self.world.store.shards)]
        here = self.world.log(agent_id).partition
        self.world.move(agent_id, self.random.choice([place for place in places if place != here]))

    def _erase(self, agent_id: str, mine: list[str]) -> None:
        end = self.world.seq(agent_id)
        if end:
            first = self.random.randint(1, end)
            self.world.erase(agent_id, first, min(end, first + self.random.randrange(3)))

    def _end(self, agent_id: str, mine: list[str]) -> None:
        if self.world.seq(agent_id):
            self.world.append(agent_id, self.world.draft("agent_deleted"))
            self.world.append(agent_id, self.world.draft("agent_created"))
            mine.clear()

    def _seal(self, agent_id: str, mine: list[str]) -> None:
        self.world.seal()


RARE = ("move", "erase", "end", "seal")
_WORDS = "cat dog whale moon river stone garden music letter window winter summer bread coffee train island"
WORDS = _WORDS.split(" ")
