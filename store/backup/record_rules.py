"""Check the records of an export against the rules of a log, before anything of it is restored. Pure.

An export may come from anywhere, and its checksum and chain prove only that its bytes are those that its maker wrote.
So each record must be one that `FileLog.append` and `events.draft` could have written: an envelope within its limits,
a payload of its type's shape, an id that no earlier record has. A record that breaks a rule would stop the restore
half-way, or end every later command that reads the agent.

Used by `export_agent.verify`, for `everlog restore`. A rule that refuses what a released everlog wrote makes backups
useless: add none that the golden logs do not pass.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from everlog.events import BadInput, Draft, Record, UnknownEvent, event_of, is_erased
from everlog.events.times import since_epoch
from everlog.store.base.contract import Append
from everlog.store.partition.append_rules import ValidatedAppend

TYPE_CHARS_MAX = 100
"""Largest length of a record's type, in characters."""
FIRST_TIME = since_epoch(datetime.min.replace(tzinfo=UTC))
LAST_TIME = since_epoch(datetime.max.replace(tzinfo=UTC))
"""Limits of a time, inclusive: the years 1 to 9999, which every reader of a log can show."""

_IS_TOMBSTONE = re.compile(r'\{"erased":true,"digest":"[0-9a-f]{64}"\}').fullmatch
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError)
"""Errors of decoding a payload that no everlog wrote; upcasters of old shapes raise the built-in ones."""


class CommitRules:
    """The rules for the commits of one stream, which are checked in their order."""

    def __init__(self) -> None:
        self._ids: set[bytes] = set()
        self.erased = 0
        """Number of tombstones so far."""

    def fault(self, records: Sequence[Record]) -> str:
        """Return the first fault in a commit, or an empty text."""
        for record in records:
            wrong = record_fault(record)
            if wrong:
                return f"seq {record.seq} {wrong}"
            self.erased += is_erased(record.payload)
        first = records[0]
        try:
            append = ValidatedAppend(Append(first.agent_id, first.seq - 1, [*map(draft_of, records)], from_export=True))
        except BadInput as error:
            return f"seq {first.seq} to {records[-1].seq} cannot be in a log: {error}"
        for record, key in zip(records, append.keys, strict=True):
            if key in self._ids:
                return f"seq {record.seq} has the event id of an earlier record, {record.event_id}"
            self._ids.add(key)
        return ""


def record_fault(record: Record) -> str:
    """Return the fault in the content of one record, or an empty text."""
    for field, at in (("recorded_at", record.recorded_at), ("said_at", record.said_at)):
        if at is not None and not FIRST_TIME <= at <= LAST_TIME:
            return f"has {field} {at}, which is no time in the years 1 to 9999"
    if not record.type or len(record.type) > TYPE_CHARS_MAX or not record.type.isprintable():
        return f"has the type {record.type[:TYPE_CHARS_MAX]!a}, which no event has"
    if record.cause == record.event_id:
        return "names itself as its cause"
    if is_erased(record.payload):
        whole = _IS_TOMBSTONE(record.payload) and record.text is None
        return "" if whole else "is neither a valid tombstone nor a record"
    try:
        event = event_of(record)
        if isinstance(event, UnknownEvent):  # of a newer everlog: carried through, but SQL reads its payload as JSON
            msgspec.json.decode(record.payload, type=dict)
    except _UNREADABLE as error:
        return f"is a {record.type!r} of version {record.version}, and its payload is no such event ({error})"
    return ""


def draft_of(record: Record) -> Draft:
    """Return the draft from which the log made the record."""
    return Draft(**{field: getattr(record, field) for field in Draft.__struct_fields__})
