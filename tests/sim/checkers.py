"""The independent judge: it knows the requests and the answers, but not how the store works.

Each check gets an observation and raises `Violation` if the observation is impossible. The judge shares with the code
under test only the shapes (`Draft`, `Record`, `Commit`) and `events.extend`, and no line of `store/`.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from everlog.events import GENESIS, Draft, Record, digest, extend, is_erased
from everlog.store import Commit, Head


class Violation(AssertionError):
    """A promise of the store was broken."""


class Due(NamedTuple):
    """Expected content of a read that begins now."""

    commits: list[tuple[Record, ...]]
    """Commits that were acknowledged before."""
    erased: frozenset[tuple[str, int]]
    """Agent and seq of the records whose content is gone."""


class Attempt:
    """An intended append: the same drafts, sent once or several times."""

    def __init__(self, agent_id: str, drafts: Sequence[Draft]) -> None:
        self.agent_id = agent_id
        self.drafts = drafts
        self.places: list[int] = []
        """The `expected_seq` of every time that the append was sent and not refused: its possible places in the log."""
        self.acknowledged: tuple[Record, ...] = ()
        self.erases: range | None = None
        """Seqs of the stream whose content the append asks to erase."""

    def placed(self, expected_seq: int, number: int) -> tuple[Record, ...]:
        """Return the records of this attempt as commit `number` after `expected_seq`."""
        return tuple(
            Record(
                agent_id=self.agent_id, seq=seq, commit=number, event_id=draft.event_id, recorded_at=draft.recorded_at,
                said_at=draft.said_at, type=draft.type, turn=draft.turn, step=draft.step, cause=draft.cause,
                version=draft.version, text=draft.text, payload=draft.payload,
            )
            for seq, draft in enumerate(self.drafts, expected_seq + 1)
        )  # fmt: skip


class History:
    """All requests and all acknowledgements, over all processes and crashes."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.acknowledged: list[tuple[Record, ...]] = []
        """The records of each acknowledged commit, in the order of the acknowledgements."""
        self._by_id: dict[str, Attempt] = {}
        self._numbers: dict[int, tuple[Record, ...]] = {}
        self._places: dict[tuple[str, int], Record] = {}
        self._heads: list[tuple[str, Head]] = []
        self._cuts: dict[str, bytes] = {}
        self._erased: set[tuple[str, int]] = set()
        """Agent and seq of the records whose content must be gone."""

    def due(self) -> Due:
        """Return the records that a read beginning now must show."""
        return Due(list(self.acknowledged), frozenset(self._erased))

    def attempt(self, agent_id: str, drafts: Sequence[Draft]) -> Attempt:
        """Register an append that is about to be sent for the first time."""
        attempt = Attempt(agent_id, drafts)
        self.attempts.append(attempt)
        self._by_id.update((draft.event_id, attempt) for draft in drafts)
        return attempt

    def acknowledge(self, attempt: Attempt, expected_seq: int, commit: Commit, *, epoch: int, published: int) -> None:
        """Check that the acknowledgement of `attempt` is right; `published` is the newest epoch when the append was
        sent.

        There is one writer; no number and no seq is used twice; a repeat equals the first answer; the content is as
        sent.
        """
        records = tuple(commit.records)
        if published > epoch:
            raise Violation(f"epoch {epoch} acknowledged an append that was sent when epoch {published} was published")
        place = records[0].seq - 1 if records else 0
        if not self._are(records, attempt.placed(place, commit.number)):
            raise Violation(f"the commit that was acknowledged is not what was sent: {records}")
        if place not in attempt.places or (not commit.repeated and place != expected_seq):
            raise Violation(f"acknowledged after seq {place}, but it was sent for {attempt.places}")
        if attempt.acknowledged:
            if not self._are(records, attempt.acknowledged):
                raise Violation(f"a repeat was acknowledged as {records}, at first as {attempt.acknowledged}")
            return
        self.must_stay(attempt, place, commit.number)

    def must_stay(self, attempt: Attempt, place: int, number: int) -> None:
        """Register that `attempt` is commit `number` after seq `place` for good: it was acknowledged, or its owner read
        it after the answer was lost.
        """
        sent = attempt.placed(place, number)
        if number in self._numbers:
            raise Violation(f"commit {number} was acknowledged twice: {sent}, {self._numbers[number]}")
        for record in sent:
            other = self._places.setdefault((record.agent_id, record.seq), record)
            if other is not record:
                raise Violation(f"seq {record.seq} of {record.agent_id!r} was acknowledged twice: {record}, {other}")
        attempt.acknowledged = self._numbers[number] = sent
        self.acknowledged.append(sent)

    def to_erase(self) -> list[tuple[str, int]]:
        """Return agent and seq of the records whose erasure was acknowledged: an argument for `erased`."""
        asked = (attempt for attempt in self.attempts if attempt.erases is not None and attempt.acknowledged)
        return [
            (attempt.agent_id, seq)
            for attempt in asked
            for seq in attempt.erases or ()
            if 0 < seq < attempt.acknowledged[0].seq
        ]

    def erased(self, places: Iterable[tuple[str, int]]) -> None:
        """Record that an owner has carried out these erasures: from now on no read and no file may have the content."""
        self._erased.update(places)

    def erased_words(self) -> list[str]:
        """Return words that no file may contain any more: the first word of each erased text, which no other text
        has.
        """
        return [
            record.text.split()[0] for place, record in self._places.items() if place in self._erased and record.text
        ]

    def saw_table(self, records: Sequence[Record], due: Due) -> None:
        """Check a read of a whole partition: it has whole commits 1, 2, 3 ... that were sent, and all records that are
        `due`.
        """
        commits = {number: tuple(group) for number, group in groupby(records, lambda record: record.commit)}
        if list(commits) != list(range(1, len(commits) + 1)):
            raise Violation(f"the commits of a partition were read as {list(commits)}")
        for number, commit in commits.items():
            attempt = self._by_id.get(commit[0].event_id)
            if attempt is None or not self._are(commit, attempt.placed(commit[0].seq - 1, number)):
                raise Violation(f"nobody sent this as one commit: {commit}")
            if commit[0].seq - 1 not in attempt.places:
                raise Violation(f"a refused append is in the log: {commit}")
        self._in_order(records)
        self._without_content(records, due)
        for commit in due.commits:
            if not self._are(commits.get(commit[0].commit, ()), commit):
                raise Violation(f"lost: {commit} was acknowledged; there is {commits.get(commit[0].commit)}")

    def saw_stream(self, agent_id: str, records: Sequence[Record], from_seq: int, to_seq: int | None,
                   due: Due) -> None:  # fmt: skip
        """Check a read of a stream from `from_seq` to `to_seq` (None: to the end): records are in order, as sent, and
        complete.
        """
        if any(record.agent_id != agent_id for record in records):
            raise Violation(f"a read of {agent_id!r} gave records of others: {records}")
        if [record.seq for record in records] != list(range(from_seq, from_seq + len(records))):
            raise Violation(f"a read of {agent_id!r} from {from_seq} gave {[record.seq for record in records]}")
        for record in records:
            attempt = self._by_id.get(record.event_id)
            sent = [] if attempt is None else [r for p in attempt.places for r in attempt.placed(p, record.commit)]
            if not any(self._is(record, other) for other in sent):
                raise Violation(f"nobody sent this record, or it was refused: {record}")
        self._without_content(records, due)
        seen = {record.seq: record for record in records}
        for commit in due.commits:
            for record in commit:
                within = from_seq <= record.seq and (to_seq is None or record.seq <= to_seq)
                if record.agent_id != agent_id or not within:
                    continue
                if record.seq not in seen or not self._is(seen[record.seq], record):
                    raise Violation(f"lost: {record} was acknowledged and a read of the stream is without it")

    def saw_head(self, agent_id: str, head: Head, due: Due) -> None:
        """Check a head. Its chain is compared in `settled`, when the content of the log is known."""
        seqs = [record.seq for commit in due.commits for record in commit if record.agent_id == agent_id]
        if head.seq < max(seqs, default=0):
            raise Violation(f"the head of {agent_id!r} is said to be {head.seq}; {max(seqs)} was acknowledged before")
        if head.seq == max(seqs, default=0):
            self._heads.append((agent_id, head))

    def saw_state(self, agent_id: str, seq: int, rows: Sequence[object]) -> None:
        """Check a state of `counting_deriver`: it counts each record up to its seq once."""
        if rows != [{"agent_id": agent_id, "seq": seq, "count": seq}]:
            raise Violation(f"the state of {agent_id!r} at seq {seq} is {rows}")

    def cut(self, start: str, count: int, kept: dict[str, bytes]) -> None:
        """Register a tail of `count` bytes that an owner has cut: a file whose name begins with `start` must keep the
        tail for ever.
        """
        tails = {name: tail for name, tail in kept.items() if name.startswith(start) and len(tail) == count}
        if not tails and not self._erasing():
            raise Violation(f"{count} bytes were cut and are not kept in any {start}cut")
        self._cuts.update(tails)

    def all_kept(self, kept: dict[str, bytes]) -> None:
        """Check that every cut tail is still kept, unless an erasure was requested."""
        for name, tail in self._cuts.items():
            if kept.get(name) != tail and not self._erasing():
                raise Violation(f"{name} was kept and is not there, or has changed")

    def _erasing(self) -> bool:
        return any(attempt.erases is not None for attempt in self.attempts)

    def settled(self, records: Sequence[Record], heads: dict[str, Head]) -> None:
        """Check the end: `records` are the whole log, `heads` its own heads. All chains that were seen before must
        agree.
        """
        self.saw_table(records, self.due())
        chains = {}
        last: dict[str, Head] = {}
        for record in records:
            head = last.get(record.agent_id) or Head(0, GENESIS)
            last[record.agent_id] = Head(record.seq, extend(head.chain, record))
            chains[record.agent_id, record.seq] = last[record.agent_id].chain
        if heads != last:
            raise Violation(f"the log says that its streams end at {heads}, but its records end at {last}")
        for agent_id, head in self._heads:
            if head.chain != chains.get((agent_id, head.seq), GENESIS):
                raise Violation(f"the head {head} of {agent_id!r} was seen, and its chain is another now")

    def _without_content(self, records: Sequence[Record], due: Due) -> None:
        for record in records:
            if (record.agent_id, record.seq) in due.erased and not is_erased(record.payload):
                raise Violation(f"this was erased and can be read: {record}")

    def _are(self, records: Sequence[Record], sent: Sequence[Record]) -> bool:
        return len(records) == len(sent) and all(self._is(*pair) for pair in zip(records, sent, strict=True))

    def _is(self, record: Record, sent: Record) -> bool:
        """Return True if `record` is as sent, or is the tombstone of a record whose erasure was requested."""
        if record == sent:
            return True
        whole = replace(record, text=sent.text, payload=sent.payload)
        erased = record.text is None and is_erased(record.payload) and digest(record) == digest(sent)
        return whole == sent and erased and self._may_be_erased(sent)

    def _may_be_erased(self, record: Record) -> bool:
        return any(
            attempt.erases is not None and attempt.agent_id == record.agent_id and record.seq in attempt.erases
            for attempt in self.attempts
        )

    def _in_order(self, records: Sequence[Record]) -> None:
        seqs: dict[str, int] = {}
        for record in records:
            if record.seq != seqs.get(record.agent_id, 0) + 1:
                raise Violation(f"{record.agent_id!r} goes on with {record.seq} after {seqs.get(record.agent_id, 0)}")
            seqs[record.agent_id] = record.seq
        ids = [record.event_id for record in records]
        if len(set(ids)) != len(ids):
            raise Violation(f"an event is in the log twice: {sorted({name for name in ids if ids.count(name) > 1})}")
