"""Measure a log in a bucket whose every request takes 20 ms: messages a second, puts a message, latency, activation.

Run as `python -m bench.bucket.object_store [--quick]`. A thousand agents of a shard send messages of two commits each.
As in a host, an agent sends the next commit when the last one is acknowledged. The bucket is in memory, and each
request waits; nothing is counted that the service itself would need.
"""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.support.harness import Figure, line, median, noise, options, show, together, workspace
from everlog.events import Draft, UserMessage, draft, uuid7
from everlog.store import Append, FileStore
from everlog.store.object.object_disk import ObjectDisk
from everlog.store.object.obstore_bucket import ObstoreBucket

REQUEST_S = 0.02
NOW = 1_800_000_000_000_000
ROOT = Path("/bucket")
THINK_S = 0.85
"""Seconds for which an agent waits for its model between messages: a thousand agents then send about 1,000 a second."""
COMMITS = 2
"""Commits of a message."""
GOALS = {
    "messages_per_s": ">= 1000", "puts_a_message": "<= 0.02", "commit_ms_p50": "<= 60", "cold_read_ms": "<= 120",
    "cold_requests": "",
}  # fmt: skip


class SlowBucket(ObstoreBucket):
    """A bucket in memory whose requests take some time, and are counted."""

    def __init__(self) -> None:
        from obstore.store import MemoryStore

        super().__init__(MemoryStore(), "memory://bench")
        self.requests: Counter[str] = Counter()
        self.request_s = 0.0

    def _wait(self, kind: str) -> None:
        self.requests[kind] += 1
        if self.request_s:
            time.sleep(self.request_s)

    def put_new(self, key: str, content: bytes | memoryview) -> None:
        self._wait("put")
        super().put_new(key, content)

    def put(self, key: str, content: bytes | memoryview) -> None:
        self._wait("put")
        super().put(key, content)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        self._wait("get")
        return super().get(key, start, length)

    def size(self, key: str) -> int | None:
        self._wait("look")
        return super().size(key)

    def objects(self, folder: str) -> list:  # type: ignore[type-arg]
        self._wait("list")
        return super().objects(folder)

    def children(self, folder: str) -> list[str]:
        self._wait("list")
        return super().children(folder)


def _said(number: int, seq: int) -> Draft:
    event_id = uuid7(NOW, number * 100_000 + seq)
    return draft(UserMessage(text="word " * 30), event_id=event_id, recorded_at=NOW, turn=1, step=0)


class Talk(NamedTuple):
    """Messages that the agents of a shard sent."""

    commit_s: list[float]
    """Seconds of each commit."""
    seconds: float

    @property
    def messages(self) -> float:
        """Number of messages."""
        return len(self.commit_s) / COMMITS


class Shard:
    """A log in a slow bucket, with agents that talk."""

    def __init__(self, agents: int) -> None:
        """Create the store and so many agents. The requests until then are not counted."""
        self.bucket = SlowBucket()
        disk = ObjectDisk(self.bucket, ROOT)
        store = FileStore.create(ROOT, lambda: NOW, "bench", disk=disk, shards=1)
        self.names = [f"agent-{number}" for number in range(agents)]
        store.register_many(self.names, shared=True)
        self.log = store.open_partition(store.partition_of(self.names[0]), "bench")
        # The first commit of an agent removes its mark, which is not measured.
        self.log.append_group([Append(name, 0, [_said(number, 0)]) for number, name in enumerate(self.names)])
        self.bucket.requests.clear()

    def talk(self, seconds: float, think_s: float) -> Talk:
        """Let all agents send messages for so many seconds; each waits `think_s` between two of them."""
        self.bucket.request_s = REQUEST_S
        took: list[float] = []
        end = time.perf_counter() + seconds

        def live(number: int) -> None:
            seq = 1
            time.sleep(number / len(self.names))
            while time.perf_counter() < end:
                for _ in range(COMMITS):
                    begun = time.perf_counter()
                    self.log.append(self.names[number], seq, [_said(number, seq)])
                    took.append(time.perf_counter() - begun)
                    seq += 1
                time.sleep(think_s)

        spent = together(live, len(self.names))
        self.bucket.request_s = 0
        return Talk(took, spent)


def measure(agents: int, seconds: float) -> list[Figure]:
    """Return the figures of so many agents in one shard."""
    shard = Shard(agents)
    talk = shard.talk(seconds, THINK_S)
    puts = shard.bucket.requests["put"]
    shard.log.seal()
    shard.log.close()
    shard.bucket.request_s = REQUEST_S
    reopened = FileStore(ROOT, lambda: NOW, disk=ObjectDisk(shard.bucket, ROOT))
    shard.bucket.requests.clear()
    begun = time.perf_counter()
    reader = reopened.reader(shard.names[0])
    reader.head(shard.names[0])
    cold = time.perf_counter() - begun
    request_ms = 1000 * REQUEST_S
    per_s = talk.messages / talk.seconds
    return [
        Figure("messages_per_s", per_s, "messages/s", agents / (THINK_S + COMMITS * REQUEST_S)),
        Figure("puts_a_message", puts / talk.messages, "puts", 1.0),
        Figure("commit_ms_p50", 1000 * median(talk.commit_s), "ms", request_ms),
        Figure("cold_read_ms", 1000 * cold, "ms", request_ms),
        Figure("cold_requests", sum(shard.bucket.requests.values()), "requests", 1.0),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("bucket.object_store", "A log in a bucket whose every request takes 20 ms.", argv)
    with workspace() as folder:
        machine = noise(folder)
    figures = measure(1000, 4 if args.quick else 20)
    show("bucket.object_store", machine, figures, [line(one, GOALS[one.key]) for one in figures])
    return 0


if __name__ == "__main__":
    sys.exit(main())
