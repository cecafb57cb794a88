"""Check appends: the rules of P5, P6, P8 and P9, stated once for every implementation. Pure.

`StreamHeads` is the writer's knowledge: the end of every stream, and the remembered event ids. `AppendGroup` tries
appends against it, one after the other, without changing it. When the group is durable, `settle` updates the
`StreamHeads`.

Used by `FileLog`, `MemoryStore` and recovery. Readers and checks use `follow`, the rule for records that are in the log
already.
"""

import re
from collections.abc import Callable, Sequence

from everlog.events import (
    GENESIS,
    BadInput,
    CorruptLog,
    Draft,
    DuplicateId,
    Moved,
    Record,
    StaleId,
    StoreError,
    WrongSequence,
    digest_at,
    extend,
    is_erased,
    link,
    place,
    time_of,
)
from everlog.store.base.arrow_schema import id_bytes
from everlog.store.base.contract import Append, Commit, Head
from everlog.store.base.move_records import chain_before, is_departure
from everlog.store.base.names import name_of
from everlog.store.base.store_constants import APPEND_BYTES_MAX, FRAME_BYTES_MAX, ID_MEMORY_S
from everlog.store.partition.dedup_index import ID_MEMORY_US, DedupIndex, time_of_option

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}").fullmatch
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
INT64_END = 2**63
INT32_END = 2**31
RECORD_OVERHEAD_BYTES = 128
"""Upper bound of a record's bytes besides its text and payload: its numbers, ids and offsets in Arrow."""
WEIGHT_MAX = FRAME_BYTES_MAX // 2
"""Largest weight of one append: half of the largest frame, so that a frame has room for it."""


class ValidatedAppend:
    """An append of valid shape, with its weight in a frame and all that can be computed before the writer admits it.

    The caller's own thread creates it, while an earlier group is still being written to the disk.
    """

    __slots__ = ("agent_id", "digests", "drafts", "expected_seq", "from_export", "is_late", "keys", "oldest", "weight")

    def __init__(self, append: Append) -> None:
        """Validate `append`. Raises BadInput if no log could ever accept it."""
        self.agent_id = agent_id = name_of(append.agent_id)
        self.expected_seq = seq = append.expected_seq
        self.drafts = append.drafts
        self.from_export = append.from_export
        _whole(seq, 0, INT64_END, "expected_seq")
        if not self.drafts:
            raise BadInput(f"an append to {agent_id!r} has no events; a commit has at least one")
        self.keys: list[bytes] = []
        self.digests: list[bytes] = []
        self.is_late = False
        """True if an id is so much older than its record that it could have been forgotten."""
        words = kinds = 0
        for draft in self.drafts:
            seq += 1
            words += _draft_bytes(draft, append.from_export)
            kinds += len(draft.type)
            key = id_bytes(draft.event_id)
            if time_of_option(key) < draft.recorded_at - ID_MEMORY_US:
                self.is_late = True
            self.keys.append(key)
            self.digests.append(digest_at(draft, agent_id, seq))
        self.oldest = time_of_option(min(self.keys))
        """Time of the oldest event id, microseconds UTC."""
        if words > APPEND_BYTES_MAX:
            raise BadInput(
                f"a commit to {self.agent_id!r} has {words} bytes of text and payload, above {APPEND_BYTES_MAX}; "
                "split it"
            )
        if len(self.keys) > 1 and len(set(self.keys)) != len(self.keys):
            raise BadInput(f"an append to {self.agent_id!r} has the same event id twice")
        self.weight = words + 4 * kinds + len(self.keys) * (4 * len(agent_id) + RECORD_OVERHEAD_BYTES)
        if self.weight > WEIGHT_MAX:
            raise BadInput(f"a commit to {self.agent_id!r} has {len(self.drafts)} events, too many for one; split it")


def _draft_bytes(draft: Draft, from_export: bool) -> int:
    """Return the bytes of text and payload of `draft`. Raises BadInput for a field value that no record can have.

    With `from_export` the draft may be a tombstone.
    """
    kind, text, payload = draft.type, draft.text, draft.payload
    at, turn, step, version = draft.recorded_at, draft.turn, draft.step, draft.version
    # Fast path: one test accepts the plain drafts, which are nearly all. Everything else goes through the rules one by
    # one.
    if (
        UUID7(draft.event_id)
        and (draft.cause is None or UUID(draft.cause))
        and draft.said_at is None
        and type(at) is type(turn) is type(step) is type(version) is int
        and -INT64_END <= at < INT64_END
        and 0 <= turn < INT64_END
        and 0 <= step < INT32_END
        and 1 <= version < INT32_END
        and type(kind) is type(payload) is str
        and kind.isascii()
        and payload.isascii()
        and not is_erased(payload)
        and (text is None or (type(text) is str and text.isascii()))
    ):
        return len(payload) + (0 if text is None else len(text))
    return _draft_bytes_slowly(draft, from_export)


def _draft_bytes_slowly(draft: Draft, from_export: bool) -> int:
    """Do the same rule by rule, for a draft that is not plain ASCII or not valid."""
    if UUID7(draft.event_id) is None:
        raise BadInput(f"event id {draft.event_id!r} must be a UUIDv7 in its 36-character lower-case form")
    if draft.cause is not None and UUID(draft.cause) is None:
        raise BadInput(f"cause {draft.cause!r} of event {draft.event_id} must be a UUID in its 36-character form")
    _whole(draft.recorded_at, -INT64_END, INT64_END, "recorded_at")
    if draft.said_at is not None:
        _whole(draft.said_at, -INT64_END, INT64_END, "said_at")
    _whole(draft.turn, 0, INT64_END, "turn")
    _whole(draft.step, 0, INT32_END, "step")
    _whole(draft.version, 1, INT32_END, "version")
    _utf8_bytes(draft.type, "type")
    payload = _utf8_bytes(draft.payload, "payload")
    if is_erased(draft.payload) and not from_export:
        raise BadInput(f"event {draft.event_id} has the payload of a tombstone, which only an erasure may write")
    return payload + (0 if draft.text is None else _utf8_bytes(draft.text, "text"))


def _whole(value: int, start: int, end: int, field: str) -> None:
    if type(value) is not int or not start <= value < end:
        raise BadInput(f"{field} must be a whole number from {start} to {end - 1}, not {value!r}")


def _utf8_bytes(value: str, field: str) -> int:
    if type(value) is not str:
        raise BadInput(f"{field} must be text, not {value!r}")
    if value.isascii():
        return len(value)
    try:
        return len(value.encode())
    except UnicodeEncodeError as error:
        raise BadInput(f"{field} holds half of a character (a lone surrogate): {error}") from error


class StreamHeads:
    """The writer's knowledge of its partition: ends of streams, number of commits, event ids."""

    def __init__(self, heads: dict[str, Head] | None = None, commits: int = 0) -> None:
        self.heads: dict[str, Head] = heads or {}
        self.commits = commits
        """Number of the last commit, 0 if there is none."""
        self.ids = DedupIndex()

    def head(self, agent_id: str) -> Head:
        """Return the end of a stream; Head(0, GENESIS) if it has no records."""
        return self.heads.get(agent_id) or Head(0, GENESIS)

    def replay(self, records: Sequence[Record], where: str) -> None:
        """Add records that were read back from disk. Raises CorruptLog, naming `where`, for a gap in a stream."""
        follow(self.heads, records, where)
        self.ids.add(records)


def follow(heads: dict[str, Head], records: Sequence[Record], where: str) -> None:
    """Advance `heads` past `records`. Raises CorruptLog, naming `where`, for a gap in a stream.

    Records that an agent wrote in another partition, before it moved here, are not a gap.
    """
    for record in records:
        head = heads.get(record.agent_id) or Head(0, GENESIS)
        chain: bytes | None = head.chain
        if record.seq != head.seq + 1:
            chain = chain_before(record, record.seq, head)
        if chain is None:
            raise CorruptLog(
                f"{where}: {record.agent_id!r} continues with seq {record.seq} after seq {head.seq}, but a stream must "
                "not have gaps. Nothing was changed. Restore the log from a backup."
            )
        heads[record.agent_id] = Head(record.seq, extend(chain, record), is_departure(record))


class AppendGroup:
    """Appends tried together against a `StreamHeads`, which does not change before `settle`."""

    def __init__(self, ledger: StreamHeads, recall: Callable[[int], Sequence[Record]]) -> None:
        """Start an empty group. `recall` returns the records of a durable commit by its number."""
        self._ledger = ledger
        self._recall = recall
        self._heads: dict[str, Head] = {}
        self._ids: dict[bytes, int] = {}
        self._commits: dict[int, list[Record]] = {}
        self.records: list[Record] = []
        """New records of the group, in the order of their commits."""

    @property
    def commits(self) -> int:
        """Number of new commits in the group."""
        return len(self._commits)

    def admit(self, append: ValidatedAppend) -> Commit | StoreError:
        """Add the append to the group and return its commit, or return the refusal. A refusal leaves the group
        unchanged.
        """
        ledger, agent_id, keys = self._ledger, append.agent_id, append.keys
        # Known ids first: a repeated append must get its first commit, although its expected_seq is outdated by now.
        for key in keys:
            if key in self._ids or ledger.ids.find(key):
                return self._repeated(append)
        # An id that may have been forgotten cannot be checked for a repeat: refused, or the event could be stored
        # twice.
        if not append.from_export and (append.is_late or append.oldest <= ledger.ids.forgotten_to):
            return _stale(append, ledger.ids.forgotten_to)
        head = self._heads.get(agent_id) or ledger.head(agent_id)
        seq, chain = append.expected_seq, head.chain
        if seq != head.seq or head.away:
            before = chain_before(append.drafts[0], seq + 1, head)
            if before is None:
                return _gone(agent_id) if head.away else WrongSequence(agent_id, seq, head.seq)
            chain = before
        number = ledger.commits + len(self._commits) + 1
        records = []
        for draft, key, digest in zip(append.drafts, keys, append.digests, strict=True):
            seq += 1
            records.append(place(draft, agent_id, seq, number))
            chain = link(chain, digest)
            self._ids[key] = number
        self._heads[agent_id] = Head(seq, chain, is_departure(append.drafts[-1]))
        self._commits[number] = records
        self.records += records
        return Commit(agent_id, number, records)

    def settle(self) -> None:
        """Add the group to the `StreamHeads`. Call it only when the group is durable: a failed group must leave no
        trace.
        """
        self._ledger.heads.update(self._heads)
        self._ledger.commits += len(self._commits)
        self._ledger.ids.note(self._ids)

    def _repeated(self, append: ValidatedAppend) -> Commit | StoreError:
        # A part of a commit is refused: its records could be neither stored twice nor acknowledged as one commit.
        known = [self._ids.get(key) or self._ledger.ids.find(key) for key in append.keys]
        number = next(number for number in known if number)
        records = self._commits.get(number) or self._recall(number)
        agent_id = records[0].agent_id
        if agent_id != append.agent_id or len(records) != len(append.drafts) or set(known) != {number}:
            return DuplicateId(
                f"this append to {append.agent_id!r} repeats event ids that are in the log, but not one whole commit: "
                f"commit {number} of {agent_id!r} has {len(records)} events, the append has {len(append.drafts)}. Send "
                "exactly the same events again, or use new ids."
            )
        return _again(records, append.drafts)


def _again(records: Sequence[Record], drafts: Sequence[Draft]) -> Commit | DuplicateId:
    """Return the first commit of drafts that are appended again; or the error if they have other content."""
    for record, draft in zip(records, drafts, strict=True):
        if not _same(record, draft):
            return DuplicateId(
                f"event {draft.event_id} is in the log with other content (seq {record.seq} of {record.agent_id!r}). "
                "Use a new id for a new event."
            )
    return Commit(records[0].agent_id, records[0].commit, list(records), repeated=True)


def repeated_commit(records: Sequence[Record], drafts: Sequence[Draft]) -> Commit:
    """Return the commit with these records, of another partition, that the drafts repeat. Raises DuplicateId."""
    if [record.event_id for record in records] != [draft.event_id for draft in drafts]:
        raise DuplicateId(
            f"This append repeats event {drafts[0].event_id}, which {records[0].agent_id!r} has in another commit. "
            "Send exactly the same events again, or use new ids."
        )
    found = _again(records, drafts)
    if isinstance(found, DuplicateId):
        raise found
    return found


def _gone(agent_id: str) -> Moved:
    """Return the error for an append to a partition that the agent has left."""
    return Moved(
        f"{agent_id!r} moved to another partition: nothing of this append was stored. Look up the agent's partition, "
        "and send the same events there."
    )


def _stale(append: ValidatedAppend, forgotten_to: int) -> StaleId:
    """Return the error for the first id that may have been forgotten; the append has at least one."""
    event_id = next(
        draft.event_id
        for draft in append.drafts
        if (at := time_of(draft.event_id) or 0) < draft.recorded_at - ID_MEMORY_US or at <= forgotten_to
    )
    return StaleId(
        f"event {event_id} has an id whose time is more than {ID_MEMORY_S // 3600} hours before it was recorded. Ids "
        "are not remembered longer, so a repeat could not be told apart from a new event. Use a new id."
    )


def _same(record: Record, draft: Draft) -> bool:
    """Return True if `draft` became `record`. Of an erased record only id and type can be compared."""
    return (
        record.event_id == draft.event_id
        and record.type == draft.type
        and (
            is_erased(record.payload)
            or (record.version, record.text, record.payload, record.said_at)
            == (draft.version, draft.text, draft.payload, draft.said_at)
        )
    )
