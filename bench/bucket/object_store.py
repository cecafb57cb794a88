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


def measure(agents: int, seconds: float) -> list[Figure]:
    """Return the figures of so many agents in one shard."""
    bucket = SlowBucket()
    store = FileStore.create(ROOT, lambda: NOW, "bench", disk=ObjectDisk(bucket, ROOT), shards=1)
    names = [f"agent-{number}" for number in range(agents)]
    store.register_many(names, shared=True)
    log = store.open_partition(store.partition_of(names[0]), "bench")
    # The first commit of an agent removes its mark, which is not measured.
    log.append_group([Append(name, 0, [_said(number, 0)]) for number, name in enumerate(names)])
    bucket.requests.clear()
    bucket.request_s = REQUEST_S
    took: list[float] = []
    end = time.perf_counter() + seconds

    def live(number: int) -> None:
        seq = 1
        time.sleep(number / agents)
        while time.perf_counter() < end:
            for _ in range(COMMITS):
                begun = time.perf_counter()
                log.append(names[number], seq, [_said(number, seq)])
                took.append(time.perf_counter() - begun)
                seq += 1
            time.sleep(THINK_S)

    spent = together(live, agents)
    messages = len(took) / COMMITS
    puts = bucket.requests["put"]
    bucket.request_s = 0
    log.seal()
    log.close()
    bucket.request_s = REQUEST_S
    reopened = FileStore(ROOT, lambda: NOW, disk=ObjectDisk(bucket, ROOT))
    bucket.requests.clear()
    begun = time.perf_counter()
    reader = reopened.reader(names[0])
    reader.head(names[0])
    cold = time.perf_counter() - begun
    request_ms = 1000 * REQUEST_S
    return [
        Figure("messages_per_s", messages / spent, "messages/s", agents / (THINK_S + COMMITS * REQUEST_S)),
        Figure("puts_a_message", puts / messages, "puts", 1.0),
        Figure("commit_ms_p50", 1000 * median(took), "ms", request_ms),
        Figure("cold_read_ms", 1000 * cold, "ms", request_ms),
        Figure("cold_requests", sum(bucket.requests.values()), "requests", 1.0),
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
