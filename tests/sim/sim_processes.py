"""Simulated processes: writers that append, repeat, retry and make mistakes; readers that read.

The checkers get every answer of a log. An error must have a valid reason, otherwise it is a violation.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from everlog.events import (
    Draft,
    DuplicateId,
    Fenced,
    PartitionBusy,
    Poisoned,
    Record,
    StaleId,
    StoreError,
    WrongSequence,
    uuid7,
)
from everlog.store import Append, Commit, FileLog, FileStore, PartitionReader, records_of
from tests.sim.checkers import Attempt, Due, Violation
from tests.sim.counting_deriver import Counting
from tests.sim.sim_store_world import Interrupted, Process, World

ROOT = Path("/sim")
AGENTS = ("sam", "ann", "bob")
FOLDER_OF = "sam"
"""The agent whose partition all processes use."""
KINDS = ("send", "group", "again", "wrong", "forge", "look", "seal", "erase")
"""Actions of a writer."""
COUNTING = Counting()
NOTHING = Due([], frozenset())


class Life:
    """The common part of writers and readers: one process's access to the store."""

    def __init__(self, world: World, process: Process) -> None:
        self.world = world
        self.process = process
        self.chance = world.chance
        self.history = world.history
        self.due = self.history.due()
        """Records that the reads of a writer must contain."""
        self.mine: list[Attempt] = []
        """Appends that this process was the first to send."""
        self.unanswered: list[Attempt] = []
        """Appends whose answer Ctrl-C took away: they may have been acknowledged."""
        self.taking = 10**6
        """The epoch that this process will take when it opens the log."""

    def store(self) -> FileStore:
        """Return the store; create it if this process may be the first."""
        size = self.world.habits.segment_bytes_max
        now, disk = self.process.now, self.process.disk
        if self.history.acknowledged and self.chance.random() < 0.7:
            return FileStore(ROOT, now, disk=disk, segment_bytes_max=size)
        store = FileStore.create(ROOT, now, "the store", disk=disk, segment_bytes_max=size)
        store.register(FOLDER_OF)
        return store

    def __call__(self) -> None:
        """Run the process. Only an error with a valid reason may end it."""
        try:
            self.live()
        except Interrupted:
            return
        except StoreError as error:
            self.explain(error)

    def live(self) -> None:
        raise NotImplementedError

    def explain(self, error: StoreError, log: FileLog | None = None) -> None:
        """Check that `error` has a valid reason: a call failed, or another process owns the log. Damage is never valid.

        Raises Violation otherwise.
        """
        where = self.folder()
        self.world.note(self.process.name, "is told", repr(error)[:100])
        if type(error) is PartitionBusy and self.world.met_others(self.process):
            return
        fenced = self.world.published(where) > (self.taking if log is None else log.epoch)
        if type(error) is Fenced and (self.process.troubles or fenced):
            return
        if type(error) is StoreError and fenced:  # the process's files may be gone
            return
        if type(error) in (StoreError, Poisoned) and self.process.troubles:
            return
        if type(error) is StaleId and self.world.jumped:
            return
        raise Violation(f"{self.process.name} was told {error!r} for no reason") from error

    def folder(self) -> Path:
        """Return the folder of the partition."""
        return next((path for path in self.world.platter.folders if path.parent == ROOT / "log"), ROOT)

    def open(self, store: FileStore, *, take_over: bool) -> FileLog:
        """Open the partition as its owner. A living owner must not lose it unless a takeover was requested."""
        newest = self.world.published(self.folder())
        self.taking = newest + 1
        holding = [other for other in self.world.processes if other.holds == newest > 0]
        log = store.open(FOLDER_OF, self.process.name, take_over=take_over)
        fenced = [other.name for other in holding if other.holds == newest and not other.done]
        if fenced and log.epoch == newest + 1 and not take_over and self.world.habits.locks:
            raise Violation(f"{self.process.name} got the log without asking for it, from {fenced}")
        self.process.holds = log.epoch
        if log.cut is not None:
            start = f"{log.cut.path.name}.{log.cut.offset}."
            self.history.cut(start, log.cut.bytes, self.kept())
        return log

    def kept(self) -> dict[str, bytes]:
        """Return the tails that were cut and kept, by the names of their files."""
        paths = [path for path in self.world.platter.paths(self.folder()) if path.suffix == ".cut"]
        return {path.name: bytes(self.world.platter.inode(path).cache) for path in paths}

    def look(self, log: PartitionReader | FileLog, due: Due) -> list[Record]:
        """Read a part of the log, and check that all `due` records are there. Return the records."""
        kind = self.chance.choice(["table", "read", "read", "head", "state"])
        if self.process.troubles:  # after a failed call, look at everything
            kind = "table"
        agent_id = self.chance.choice(AGENTS)
        if kind == "table":
            records = list(records_of(log.table()))
            self.history.saw_table(records, due)
            return records
        if kind == "head":
            self.history.saw_head(agent_id, log.head(agent_id), due)
            return []
        if kind == "state":
            state = log.state(agent_id, COUNTING.maker)
            if state is not None:
                self.history.saw_state(agent_id, state.seq, state.rows.to_pylist())
            return []
        from_seq = self.chance.choice([1, 1, 2, 5])
        to_seq = self.chance.choice([None, None, 3, 9])
        stream: list[Record] = []
        whole = False
        try:
            stream.extend(log.read(agent_id, from_seq, to_seq))
            whole = True
        finally:
            self.history.saw_stream(agent_id, stream, from_seq, to_seq, due if whole else NOTHING)
        return stream

    def drafts(self) -> list[Draft]:
        """Return new events."""
        at = self.process.now()
        return [self.draft(uuid7(at, self.chance.getrandbits(74))) for _ in range(self.chance.choice([1, 1, 2, 3]))]

    def draft(self, event_id: str) -> Draft:
        """Return an event with a text of some length."""
        word = f"{self.chance.getrandbits(32):08x} "
        return Draft(
            event_id=event_id,
            recorded_at=self.process.now(),
            type="user_message",
            turn=1,
            step=0,
            version=1,
            text=word * self.chance.choice([1, 1, 10, 200]),
            payload="{}",
        )

    def erasure(self, agent_id: str, head: int) -> Attempt:
        """Return a request to erase some records of a stream, sometimes more than the stream has."""
        first = self.chance.randint(1, max(1, head))
        last = first + self.chance.choice([0, 0, 1, 3])
        event = self.draft(uuid7(self.process.now(), self.chance.getrandbits(74)))
        event = replace(event, type="records_erased", text=None, payload=f'{{"from_seq":{first},"to_seq":{last}}}')
        attempt = self.history.attempt(agent_id, [event])
        attempt.erases = range(first, last + 1)
        return attempt

    def seal(self, log: FileLog) -> None:
        """Seal the log, and check that no file and no read has content whose erasure was requested before."""
        asked, before = self.history.to_erase(), self.world.excused()
        log.seal(self.chance.choice([None, COUNTING]))
        self.process.pause("sealed", Path())
        if self.world.published(self.folder()) > log.epoch:
            return
        self.history.erased(asked)
        self.due = self.due._replace(erased=self.due.erased.union(asked))
        if not self.world.met_others(self.process):
            self.world.note(self.process.name, "searches the disk", f"for {len(asked)} erased records")
            self.find_nothing(self.world.excused() - before)

    def find_nothing(self, excused: AbstractSet[Path] = frozenset()) -> None:
        """Check that no file of the partition contains erased words; leave out those that came while it was sealed."""
        words = self.history.erased_words()
        for path in self.world.platter.paths(self.folder()) if words else []:
            if path in excused:
                continue
            content = bytes(self.world.platter.inode(path).cache)
            held = [content.decode("latin-1")]
            if path.suffix == ".parquet":
                held = [text for text in pq.read_table(pa.BufferReader(content)).column("text").to_pylist() if text]
            for word in words:
                if any(word in text for text in held):
                    raise Violation(f"{path.name} holds what was erased: {word}")


class ReaderLife(Life):
    """A process that reads without owning the log."""

    def live(self) -> None:
        store = self.store()
        reader = store.reader(FOLDER_OF)
        for _ in range(self.chance.randint(1, 8)):
            try:
                self.look(reader, self.history.due())
            except StoreError as error:
                self.explain(error)


class WriterLife(Life):
    """A process that becomes the owner if it can, and appends a number of times."""

    def live(self) -> None:
        store = self.store()
        due, asked = self.history.due(), self.history.to_erase()
        log = self.open(store, take_over=self.chance.random() < self.world.habits.take_over)
        self.history.erased(asked)  # an opening carries out the pending erasures of earlier owners
        self.due = due._replace(erased=due.erased.union(asked))
        for _ in range(self.chance.choice([1, 5, 10, 40])):
            if not self.act(log):
                break
        if self.chance.random() < 0.9:
            log.close()
            self.process.holds = 0

    def act(self, log: FileLog) -> bool:
        """Do one thing with the log. Return True to continue."""
        seal, erase = (2, 1) if self.world.habits.seals else (0, 0)
        weights = [6, 3, 3, 1, 1, 9 if self.process.troubles else 3, seal, erase]
        kind = self.chance.choices(KINDS, weights)[0]
        try:
            if kind == "look":
                self.look_at_own(log)
            elif kind == "seal":
                self.seal(log)
            else:
                self.send(log, kind)
        except Interrupted:
            return self.chance.random() < 0.7
        except StoreError as error:
            self.explain(error, log)
            return self.chance.random() < 0.4
        return True

    def look_at_own(self, log: FileLog) -> None:
        """Read, and check that this writer, while it is the owner, sees no append of its own that was not
        acknowledged. One whose answer was lost can be seen, and is then as good as acknowledged: it must stay.
        """
        seen = {record.event_id: record for record in self.look(log, self.due)}
        if self.world.published(self.folder()) > log.epoch:
            return
        for attempt in self.mine:
            first = seen.get(attempt.drafts[0].event_id)
            if attempt.acknowledged or first is None:
                continue
            if attempt not in self.unanswered:
                raise Violation(f"{self.process.name} reads {attempt.drafts}, which it was not acknowledged")
            self.history.must_stay(attempt, first.seq - 1, first.commit)
            self.due.commits.append(attempt.acknowledged)

    def send(self, log: FileLog, kind: str) -> None:
        """Send one append or a group, and check the answers."""
        published = self.world.published(self.folder())
        heads = {agent_id: log.head(agent_id).seq for agent_id in AGENTS}
        if kind == "forge":
            self.forge(log, heads)
            return
        count = self.chance.randint(2, 4) if kind == "group" else 1
        sent = list(self.chosen(kind, heads, count))
        for attempt, expected in sent:
            attempt.places.append(expected)
        try:
            answers = self.ask(log, kind, sent)
        except Interrupted:
            self.unanswered += [attempt for attempt, _ in sent]
            raise
        self.process.pause("answer", Path())
        for (attempt, expected), answer in zip(sent, answers, strict=True):
            self.hear(log, attempt, expected, answer, published)

    def ask(self, log: FileLog, kind: str, sent: Sequence[tuple[Attempt, int]]) -> list[Commit | StoreError]:
        """Append what is sent, and return the answers."""
        if kind == "group":
            return log.append_group([Append(a.agent_id, expected, a.drafts) for a, expected in sent])
        ((attempt, expected),) = sent
        try:
            return [log.append(attempt.agent_id, expected, attempt.drafts)]
        except (WrongSequence, DuplicateId, StaleId) as error:
            return [error]

    def hear(self, log: FileLog, attempt: Attempt, expected: int, answer: Commit | StoreError, published: int) -> None:
        """Check one answer: an acknowledgement or a refusal."""
        if isinstance(answer, Commit):
            self.history.acknowledge(attempt, expected, answer, epoch=log.epoch, published=published)
            self.due.commits.append(attempt.acknowledged)
            return
        attempt.places.remove(expected)
        if isinstance(answer, WrongSequence) and answer.actual != answer.expected:
            return
        self.explain(answer, log)

    def chosen(self, kind: str, heads: dict[str, int], count: int) -> Iterator[tuple[Attempt, int]]:
        """Yield each append to send, and the seq after which it comes."""
        known = self.history.attempts
        for _ in range(count):
            again = kind == "again" or (kind == "group" and self.chance.random() < 0.2)
            if again and known:
                attempt = self.chance.choice(known[-6:])
                place = attempt.places[-1] if attempt.places else 0
                yield attempt, self.chance.choice([place, heads[attempt.agent_id]])
                continue
            agent_id = self.chance.choice(AGENTS)
            wrong = kind == "wrong" or (kind == "group" and self.chance.random() < 0.1)
            expected = heads[agent_id] + (self.chance.choice([-1, 1, 7]) if wrong else 0)
            if kind == "erase":
                attempt = self.erasure(agent_id, heads[agent_id])
            else:
                attempt = self.history.attempt(agent_id, self.drafts())
            self.mine.append(attempt)
            if expected == heads[agent_id]:
                heads[agent_id] += len(attempt.drafts)
            yield attempt, max(0, expected)

    def forge(self, log: FileLog, heads: dict[str, int]) -> None:
        """Send known ids with other content, and check that the append is refused."""
        known = [attempt for attempt in self.history.attempts if attempt.acknowledged]
        if not known or self.world.habits.seals:  # of an erased record the log remembers only the id
            return
        attempt = self.chance.choice(known[-6:])
        drafts = [self.draft(draft.event_id) for draft in attempt.drafts]
        try:
            log.append(attempt.agent_id, heads[attempt.agent_id], drafts)
        except (DuplicateId, StaleId):
            return
        raise Violation(f"other words were taken under known ids: {drafts}")
