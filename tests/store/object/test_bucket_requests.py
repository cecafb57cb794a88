"""A look at an agent in a bucket takes few requests, one after the other, and finds what a folder would show."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from everlog.events import CorruptLog, UnknownAgent
from everlog.store import FileStore, partition_of
from everlog.store.base.names import hash_of
from everlog.store.object.object_disk import ObjectDisk
from everlog.store.object.obstore_bucket import ObstoreBucket
from tests.contract.log_contract import NOW, Drafts
from tests.contract.test_bucket_logs import ROOT, memory_bucket

REQUESTS = ("get", "size", "objects", "children", "put", "put_new", "delete")
ROUNDS = 5
"""Requests one after the other of a first look: the register, the folder, the manifest, the list of parts, a part."""


class Rounds:
    """Counts the requests to a bucket that begin after another one has ended. Those that wait together are released
    together.
    """

    def __init__(self, bucket: ObstoreBucket) -> None:
        self.count = self.requests = 0
        self._under_way = 0
        self._lock = threading.Lock()
        for name in REQUESTS:
            setattr(bucket, name, self._counted(getattr(bucket, name)))

    def _counted(self, request: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            with self._lock:
                self.requests += 1
                self.count += not self._under_way
                self._under_way += 1
            # Others that are sent at the same time have a moment to begin, as on the way to a service.
            threading.Event().wait(0.1)
            try:
                return request(*args, **options)
            finally:
                with self._lock:
                    self._under_way -= 1

        return counted


def stored() -> tuple[ObstoreBucket, FileStore]:
    bucket, drafts = memory_bucket(), Drafts()
    store = FileStore.create(ROOT, lambda: NOW, "tests", disk=ObjectDisk(bucket, ROOT))
    store.register("sam")
    log = store.open("sam", "writer")
    log.append("sam", 0, drafts.some(3))
    log.seal()
    log.append("sam", 3, drafts.some(2))
    log.close()
    return bucket, store


def test_a_first_look_takes_five_rounds() -> None:
    """A process that has not seen an agent yet finds its end by five requests one after the other."""
    bucket, store = stored()
    fresh = FileStore(ROOT, lambda: NOW, disk=ObjectDisk(bucket, ROOT))
    end = store.reader("sam").head("sam")
    rounds = Rounds(bucket)
    assert fresh.reader("sam").head("sam") == end
    assert rounds.count <= ROUNDS
    assert rounds.requests <= 9


def test_a_range_is_one_request_and_may_begin_at_the_end() -> None:
    """A part of an object is read by one request; what begins at the end or after it is empty, what is missing is an
    error.
    """
    bucket = memory_bucket()
    bucket.put_new("object", b"0123456789")
    bucket.put_new("empty", b"")
    asked: list[str] = []
    head = bucket._store.head

    class Store:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(bucket_store, name) if name != "head" else head

    bucket_store, bucket._store = bucket._store, Store()
    assert bucket.get("object", 2, 3) == b"234"
    assert bucket.get("object", 7, 100) == b"789"
    assert bucket.get("object", 4) == b"456789"
    assert asked == ["get"] * 3
    assert [bucket.get("object", 10, 5), bucket.get("object", 12), bucket.get("empty", 0, 5)] == [b"", b"", b""]
    with pytest.raises(FileNotFoundError):
        bucket.get("missing", 0, 5)


def test_a_lost_log_in_a_bucket_is_no_new_agent() -> None:
    """If all objects of an agent's log are gone, every read and every open says so."""
    bucket, _ = stored()
    bucket.delete([found.key for found in bucket.objects("") if found.key.startswith(("log/", "parts/"))])
    store = FileStore(ROOT, lambda: NOW, disk=ObjectDisk(bucket, ROOT))
    for ask in (
        lambda: store.reader("sam").head("sam"), lambda: list(store.reader("sam").read("sam")),
        lambda: store.open("sam", "test"),
    ):  # fmt: skip
        with pytest.raises(CorruptLog, match="is missing"):
            ask()


def test_many_agents_are_looked_up_together() -> None:
    """Many agents are found with a request for each folder of the register and each file that is new, several at the
    same time, and again with a request for each folder; the answer is that of a look at each, also after moves.
    """
    bucket = memory_bucket()
    names = [f"agent {number}" for number in range(60)]
    first = FileStore.create(ROOT, lambda: NOW, "tests", shards=2, disk=ObjectDisk(bucket, ROOT))
    first.register_many(names[:40], shared=True)
    first.register_many(names[40:])
    folders = len({hash_of(name)[:2] for name in names})
    one_by_one = {name: first.partition_of(name) for name in names}
    fresh = FileStore(ROOT, lambda: NOW, disk=ObjectDisk(bucket, ROOT))
    rounds = Rounds(bucket)
    found = fresh.partitions_of(names)
    assert rounds.requests == folders + len(names)
    assert rounds.count < rounds.requests / 4
    assert fresh.partitions_of(names) == found
    assert rounds.requests == 2 * folders + len(names)
    assert found == one_by_one
    log = first.open("agent 50", "writer")
    log.append("agent 50", 0, Drafts().some(1))
    first.begin_move(log, "agent 50", "shard-001")
    log.close()
    assert fresh.partitions_of(names) == {**found, "agent 50": "shard-001"}
    with pytest.raises(UnknownAgent, match="nobody"):
        fresh.partitions_of([*names, "nobody"])


def test_a_name_that_two_processes_registered_is_where_its_own_file_says() -> None:
    """If another process was faster with one of many names, that name is found in the other's partition, although the
    file of the others names it, too.
    """
    bucket = memory_bucket()
    store = FileStore.create(ROOT, lambda: NOW, "tests", shards=2, disk=ObjectDisk(bucket, ROOT))
    together = [name for name in (f"agent {number}" for number in range(3000)) if hash_of(name)[:2] == "00"][:3]
    link, slow = bucket.put_new, together[1]

    def overtaken(key: str, content: Any) -> None:
        if key.endswith(hash_of(slow)) and not done:
            done.append(key)
            FileStore(ROOT, lambda: NOW, disk=ObjectDisk(bucket, ROOT)).register(slow)
        link(key, content)

    done: list[str] = []
    bucket.put_new = overtaken  # type: ignore[method-assign]
    assert store.register_many(together, shared=True) == [name for name in together if name != slow]
    found = FileStore(ROOT, lambda: NOW, disk=ObjectDisk(bucket, ROOT)).partitions_of(together)
    assert found == {name: store.partition_of(name) for name in together}
    assert found[slow] == partition_of(slow)
