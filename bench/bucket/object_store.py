"""Measure a log in a bucket whose every request takes 20 ms: messages a second, puts a message, latency, activation.

Run as `python -m bench.bucket.object_store [--quick]`. A thousand agents of a shard send messages of two commits each.
As in a host, an agent sends the next commit when the last one is acknowledged. The bucket is in memory, and each
request waits; nothing is counted that the service itself would need.
"""

import argparse
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

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


def measure(agents: int, seconds: float) -> dict[str, float]:
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

    threads = [threading.Thread(target=live, args=(number,)) for number in range(agents)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.perf_counter() - begun
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
    return {
        "messages_s": messages / spent, "puts_a_message": puts / messages,
        "commit_p50_ms": 1000 * statistics.median(took), "cold_read_ms": 1000 * cold,
        "cold_requests": sum(bucket.requests.values()),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(arguments).quick
    for name, value in measure(1000, 4 if quick else 20).items():
        print(f"{name:16} {value:10.3f}")


if __name__ == "__main__":
    main()
