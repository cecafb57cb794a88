"""Run `kill -9` for minutes: a process appends, rolls and seals, is killed at any moment, and a checker reads the log.

    python -m tests.soak.kill_soak MINUTES PLACE [SEED]

prints a line of progress every few seconds and one with the verdict; it exits with status 0 if every promise was kept.
PLACE is a folder, or `s3`, `gs` or `az`: a bucket of a service of that protocol, which runs in this process meanwhile.
The checker relies only on the lines that the killed process had written to its pipe: announced and acknowledged
appends. After each kill the checker compares these with the log. After forty kills a partition is checked byte by byte
and the next one is used.
"""

import json
import logging
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from everlog.events import GENESIS, Record, extend
from everlog.store import SCHEMA, FileLog, FileStore, Partition, PartitionReader, check, folder_of, records_of
from everlog.store.base.names import SCHEMES, url_of
from everlog.store.object.object_disk import ObjectDisk
from everlog.store.stores.file_store import CONFIGURATION, disk_of
from tests.soak.killed_appender import Group, payload_of, text_of
from tests.support.store.bucket_server import make_bucket, s3_server, settings
from tests.support.store.cloud_services import cloud_service, cloud_settings

ROOT = Path(__file__).parents[2]
LIVES_MAX = 40
"""Kills for one partition."""
LIFE_S_MAX = 1.2
BUCKET_LIFE_S_MAX = 5.0
"""A process lives longer in a bucket, so that it completes most seals: each takes seconds of requests."""
PROGRESS_S = 5.0
COUNTS = (
    "kills",
    "kills in a seal",
    "partitions",
    "acknowledged",
    "records",
    "unknown",
    "known after all",
    "seals",
    "looks",
    "torn tails",
)
"""`unknown` counts groups that were announced and not acknowledged at the kill, `known after all` those that were in
the log when they were sent again.
"""


class Broken(AssertionError):
    """A broken promise."""


class Books:
    """The checker's memory: the processes' reports about one partition, and the content of its log."""

    def __init__(self) -> None:
        self.unknown: dict[str, Group] = {}
        """Groups that were announced and not acknowledged, by the JSON of the announcement."""
        self.announced: set[str] = set()
        self.acknowledged: dict[str, tuple[str, int, int]] = {}
        """Agent, commit and seq of each acknowledged id."""
        self.unjudged: set[str] = set()
        """Ids that were acknowledged since the last check of the log."""
        self.found = SCHEMA.empty_table()
        """Content of the log at that check."""
        self.places: dict[str, tuple[str, int, int]] = {}
        """Agent, commit and seq of each id that was found."""
        self.chains: dict[str, tuple[int, bytes]] = {}
        self.commits = 0

    def hear(self, line: str) -> None:
        """Record a line that a process wrote."""
        kind, _, rest = line.partition(" ")
        if kind == ">":
            group: Group = json.loads(rest)
            self.unknown[rest] = group
            self.announced.update(i for _, _, ids in group for i in ids)
        elif kind == "<":
            told = json.loads(rest)
            heard = {tuple(ids) for _, _, _, ids, _ in told}
            self.unknown = {
                key: group for key, group in self.unknown.items() if {tuple(ids) for _, _, ids in group} != heard
            }
            for agent_id, commit, seq, ids, _ in told:
                for place, event_id in enumerate(ids):
                    self.acknowledged[event_id] = (agent_id, commit, seq + place)
                    self.unjudged.add(event_id)

    def judge(self, table: pa.Table, told: set[str]) -> None:
        """Check that old records are unchanged, that no record is invented, and that the ids in `told` are at their
        acknowledged places.
        """
        old = self.found.num_rows
        if not table.slice(0, old).equals(self.found):
            raise Broken(f"the first {old} records are not those that were there before")
        for record in records_of(table.slice(old)):
            self.judge_new(record)
        self.found = table
        for event_id in told:
            if self.places.get(event_id) != self.acknowledged[event_id]:
                told = self.acknowledged[event_id]
                raise Broken(f"{event_id} was acknowledged as {told} and is at {self.places.get(event_id)}")
        self.unjudged -= told

    def judge_new(self, record: Record) -> None:
        """Check that a new record follows the last one of its agent, and was sent by a process."""
        seq, chain = self.chains.get(record.agent_id, (0, GENESIS))
        if record.seq != seq + 1:
            raise Broken(f"{record.agent_id} goes on with seq {record.seq} after {seq}")
        if record.commit not in (self.commits, self.commits + 1):
            raise Broken(f"commit {record.commit} after {self.commits}")
        if record.event_id not in self.announced or record.event_id in self.places:
            raise Broken(f"{record.event_id} was never sent, or is in the log twice")
        if (record.text, record.payload) != (text_of(record.event_id), payload_of(record.event_id)):
            raise Broken(f"{record.event_id} says something else than was sent")
        self.commits = record.commit
        self.places[record.event_id] = (record.agent_id, record.commit, record.seq)
        self.chains[record.agent_id] = (record.seq, extend(chain, record))


class Child:
    """A running `killed_appender`, whose lines are read without waiting longer than a given time."""

    def __init__(self, folder: Path, partition: str, life: int, seed: int, unknown: list[Group]) -> None:
        command = [sys.executable, "-m", "tests.soak.killed_appender", str(folder), partition, str(life), str(seed)]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(unknown).encode() + b"\n")
        self.process.stdin.flush()
        self._out = self.process.stdout.fileno()
        self._rest = b""
        self._lines: deque[str] = deque()

    def lines(self, until: float) -> Iterator[str]:
        """Yield the lines that arrive until the clock shows `until`. Raises Broken if the process ends by itself."""
        left = 1.0
        while left > 0:
            while self._lines:
                yield self._lines.popleft()
            left = max(0.0, until - time.monotonic())
            ready = select.select([self._out], [], [], left)[0]
            if ready and not self._read():
                raise Broken(f"the process ended by itself, with code {self.process.wait()}")
        yield from self._lines
        self._lines.clear()

    def kill(self) -> Iterator[str]:
        """Kill the process. Return the lines that it had printed before and that are not yet read."""
        self.process.send_signal(signal.SIGKILL)
        while self._read():
            pass
        self.process.communicate()
        yield from self._lines

    def _read(self) -> bool:
        """Read the pipe into lines; False at its end. A line that the kill cut short does not count."""
        data = os.read(self._out, 1 << 16)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(line.decode() for line in whole)
        return bool(data)


class Soak:
    """Run and kill one process after another until the time is up."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        """Folder of the store, or the one that stands for its bucket."""
        self.seed = seed
        self.chance = random.Random(seed)
        self.books = Books()
        self.generation = 0
        self.sealing = False
        """True if the running or last child is inside a seal."""
        self.counts = dict.fromkeys(COUNTS, 0)

    @property
    def partition(self) -> str:
        return f"shard-{self.generation}"

    @property
    def where(self) -> Partition:
        """The current partition, opened as by a foreign process."""
        return FileStore(self.folder, lambda: 0).partition(self.partition)

    def live(self, life: int) -> None:
        """Start a process, kill it after a random time, and check the log."""
        unknown = list(self.books.unknown.values())
        child = Child(self.folder, self.partition, life, self.seed, unknown)
        try:
            self.watch(child)
            for line in child.kill():
                self.hear(line)
        finally:
            child.process.kill()
            child.process.communicate()
        self.counts["kills"] += 1
        self.counts["kills in a seal"] += self.sealing
        self.sealing = False
        self.counts["unknown"] += len(self.books.unknown)
        if disk_of(self.folder).exists(self.folder / CONFIGURATION):
            self.books.judge(PartitionReader(self.where).table(), set(self.books.unjudged))

    def watch(self, child: Child) -> None:
        """Read the child's lines for a random time, during its recovery or its work; sometimes check the log
        meanwhile.
        """
        early = self.chance.random() < 0.25
        self.hear_until(child, "start")
        if not early:
            self.hear_until(child, "open")
        longest = BUCKET_LIFE_S_MAX if url_of(self.folder) else LIFE_S_MAX
        stay = self.chance.uniform(0, 0.06 if early else longest)
        if not early and self.chance.random() < 0.3:
            self.hear_for(child, stay / 2)
            self.look(child)
            self.counts["looks"] += 1
            stay /= 2
        self.hear_for(child, stay)

    def look(self, child: Child) -> None:
        """Check the log while the child works: acknowledged records are there, and all records were announced."""
        told = set(self.books.unjudged)
        table = PartitionReader(self.where).table()
        self.hear_for(child, 0)
        self.books.judge(table, told)

    def hear_until(self, child: Child, kind: str) -> None:
        for line in child.lines(time.monotonic() + 120):
            self.hear(line)
            if line.startswith(kind):
                return
        raise Broken(f"no line {kind!r} within two minutes")

    def hear_for(self, child: Child, seconds: float) -> None:
        for line in child.lines(time.monotonic() + seconds):
            self.hear(line)

    def hear(self, line: str) -> None:
        kind, *words = line.split(" ", 2)
        if kind == "error":
            raise Broken(line)
        before = len(self.books.acknowledged)
        self.books.hear(line)
        self.counts["acknowledged"] += len(self.books.acknowledged) - before
        self.counts["known after all"] += line.count(", true]") if kind == "<" else 0
        self.counts["seals"] += kind == "sealed" and words[0] != "0"
        self.sealing = kind == "sealing" or (self.sealing and kind != "sealed")
        self.counts["torn tails"] += kind == "open" and words[1] != "0"

    def finish_partition(self) -> None:
        """Check every byte and every chain of the partition, and begin the next one."""
        report = check(self.where, deep=True)
        if not report.ok:
            raise Broken("; ".join(report.errors))
        reader = PartitionReader(self.where)
        for agent_id, (seq, chain) in self.books.chains.items():
            head = reader.head(agent_id)
            if (head.seq, head.chain) != (seq, chain):
                raise Broken(f"the head of {agent_id} is {head.seq}, not {seq}, or its chain is another")
        self.counts["records"] += self.books.found.num_rows
        self.counts["partitions"] += 1
        if self.generation:
            delete(FileStore(self.folder, lambda: 0).partition(f"shard-{self.generation - 1}"))
        self.generation += 1
        self.books = Books()

    def told(self) -> str:
        """Return the counts in a line."""
        return ", ".join(f"{name} {count:,}" for name, count in self.counts.items())


def delete(partition: Partition) -> None:
    """Delete all files of a partition."""
    if not isinstance(partition.disk, ObjectDisk):
        shutil.rmtree(partition.path)
        return
    bucket = partition.disk.bucket
    for above in ("", "parts/"):
        bucket.delete([found.key for found in bucket.objects(f"{above}log/{partition.name}")])


def soak(folder: Path, seconds: float, seed: int, lives_max: int = LIVES_MAX) -> Soak:
    """Kill for `seconds`, at least twice. Raises Broken if a promise was broken."""
    running = Soak(folder, seed)
    begin = shown = time.monotonic()
    life = 0
    while time.monotonic() < begin + seconds or life < 2:
        running.live(life)
        life += 1
        if life % lives_max == 0:
            running.finish_partition()
        if time.monotonic() > shown + PROGRESS_S:
            shown = time.monotonic()
            print(f"{(shown - begin) / 60:6.1f} min  {running.told()}", flush=True)
    if running.books.found.num_rows:
        running.finish_partition()
    return running


@contextmanager
def place(words: str) -> Iterator[Path]:
    """Yield the folder `words` for a store, or the folder that stands for a bucket, whose service runs meanwhile."""
    if words not in SCHEMES:
        yield Path(words)
        return
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="soak")))
        if words == "s3":
            logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it prints a line for each request
            address = stack.enter_context(s3_server())
            make_bucket(address, "bucket")
            stack.enter_context(settings(address, home))
        else:
            service = stack.enter_context(cloud_service(words))
            service.make_bucket("bucket")
            stack.enter_context(cloud_settings(service, home))
        yield folder_of(f"{words}://bucket/soak")


def main(minutes: float, words: str, seed: int) -> int:
    """Run the soak and print the verdict. Return the exit status."""
    with place(words) as folder:
        print(f"seed {seed}, {minutes:g} minutes in {words}; sealing: {hasattr(FileLog, 'seal')}", flush=True)
        try:
            running = soak(folder, minutes * 60, seed)
        except Broken as error:
            print(f"BROKEN: {error}. The store is left in {folder}, unless it is in a bucket.")
            return 1
        print(f"HELD: {minutes:g} minutes, {running.told()}: none lost, none invented, none double, in order, no gap.")
        return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2026))
