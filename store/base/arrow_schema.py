"""Convert records to Arrow and back: the one schema of the log.

Records hold ids as 36-character text and times as integers of microseconds; Arrow holds them as uuid and timestamp. The
format version of a frame names this schema, so a change of the schema needs a new format version.

`body_of` builds a batch byte by byte, as Arrow's IPC format defines it: for the one record of a typical commit that
takes a third of the time that pyarrow needs for thirteen arrays. The bytes are exactly those that pyarrow writes.

Used by all files of `store` that read or write records, and by `projections`.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import pyarrow as pa
from msgspec.structs import astuple

from everlog.events import AnyEvent, Record, decode_many
from everlog.store.base.lazy_pyarrow import pc

_ID = pa.uuid()
_TIME = pa.timestamp("us", "UTC")
_INT64 = pa.int64()
_INT32 = pa.int32()
_STRING = pa.string()

SCHEMA = pa.schema(
    [
        pa.field("agent_id", _STRING, nullable=False),
        pa.field("seq", _INT64, nullable=False),
        pa.field("commit", _INT64, nullable=False),
        pa.field("event_id", _ID, nullable=False),
        pa.field("recorded_at", _TIME, nullable=False),
        pa.field("said_at", _TIME),
        pa.field("type", _STRING, nullable=False),
        pa.field("turn", _INT64, nullable=False),
        pa.field("step", _INT32, nullable=False),
        pa.field("cause", _ID),
        pa.field("version", _INT32, nullable=False),
        pa.field("text", _STRING),
        pa.field("payload", _STRING, nullable=False),
    ]
)
"""The envelope's columns, in the order of `events.Record`."""

EVENT_COLUMNS = ("agent_id", "seq", "recorded_at", "type", "version", "text", "payload")
"""Columns needed to decode typed events, and the two that say to which record an event belongs."""
EVENTS_AT_ONCE = 4096
"""Number of events that `events_of` decodes together: enough for loops in C, few enough to hold in memory twice."""


def id_bytes(event_id: str) -> bytes:
    """Return the 16 bytes of an id given in its 36-character form."""
    return bytes.fromhex(event_id.replace("-", ""))


def id_text(value: bytes) -> str:
    """Return the 36-character form of an id given as 16 bytes."""
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def text_bytes(data: pa.RecordBatch | pa.Table) -> int:
    """Return the number of UTF-8 bytes of `text` and `payload` in records."""
    return sum(pc.sum(pc.binary_length(data.column(name))).as_py() or 0 for name in ("text", "payload"))


def batch_of(records: Sequence[Record]) -> pa.RecordBatch:
    """Return `records` as one batch of `SCHEMA`, in the order given."""
    if not records:
        return pa.RecordBatch.from_pylist([], schema=SCHEMA)
    return batch_in(pa.py_buffer(body_of(records)))


def records_of(data: pa.RecordBatch | pa.Table) -> Iterator[Record]:
    """Yield the records of `data`, which has the columns of `SCHEMA`, in the order of its rows."""
    batches = data.to_batches() if isinstance(data, pa.Table) else [data]
    for batch in batches:
        columns = batch.columns
        for agent_id, seq, commit, event_id, at, said, kind, turn, step, cause, version, text, payload in zip(
            columns[0].to_pylist(),
            columns[1].to_pylist(),
            columns[2].to_pylist(),
            columns[3].storage.to_pylist(),
            columns[4].view(_INT64).to_pylist(),
            columns[5].view(_INT64).to_pylist(),
            columns[6].to_pylist(),
            columns[7].to_pylist(),
            columns[8].to_pylist(),
            columns[9].storage.to_pylist(),
            columns[10].to_pylist(),
            columns[11].to_pylist(),
            columns[12].to_pylist(),
            strict=True,
        ):
            yield Record(
                agent_id=agent_id,
                seq=seq,
                commit=commit,
                event_id=id_text(event_id),
                recorded_at=at,
                said_at=said,
                type=kind,
                turn=turn,
                step=step,
                cause=None if cause is None else id_text(cause),
                version=version,
                text=text,
                payload=payload,
            )


_MESSAGE = struct.Struct("<40sq24sq8s60q8s26q")
"""Layout of the IPC message of one batch of `SCHEMA`. Four constant parts (`_BEFORE_...`) surround the variable fields:
bytes of the body, rows, offset and length of each of 30 buffers, rows and nulls of each of 13 columns.
"""
_BEFORE_BYTES = bytes.fromhex("ffffffff080300001400000000000000 0c0016000600050008000c000c000000 0003040018000000")
_BEFORE_ROWS = bytes.fromhex("00000a0018000c00040008000a000000 fc01000010000000")
_BEFORE_BUFFERS = bytes.fromhex("000000001e000000")
_BEFORE_COLUMNS = bytes.fromhex("000000000d000000")
_PADDING = [bytes(count) for count in range(8)]
_SAID_AT, _CAUSE, _TEXT = (SCHEMA.names.index(name) for name in ("said_at", "cause", "text"))
_NO_ID = "0" * 32
_OFFSETS_OF_ONE = struct.Struct("<2i").pack


def events_of(data: pa.RecordBatch | pa.Table) -> Iterator[AnyEvent]:
    """Yield the typed events of `data`, which has the columns of `SCHEMA`, in row order: like `event_of` for each
    record, but fast.

    Only the envelope columns that decoding needs are taken out of Arrow.
    """
    table = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    for batch in table.to_batches(max_chunksize=EVENTS_AT_ONCE):
        kinds, versions, texts, payloads = (
            batch.column(name).to_pylist() for name in ("type", "version", "text", "payload")
        )
        yield from decode_many(kinds, versions, texts, payloads, partial(_time_at, batch.column("recorded_at")))


def _time_at(column: pa.Array, row: int) -> int:
    return int(column[row].value)


def body_of(records: Sequence[Record]) -> bytes:
    """Encode `records`, at least one, as the body of a frame: one encapsulated Arrow IPC message, without a schema."""
    agent_id, seq, commit, event_id, recorded_at, said_at, kind, turn, step, cause, version, text, payload = zip(
        *map(astuple, records), strict=True
    )
    rows = len(records)
    int64, int32 = f"<{rows}q", f"<{rows}i"
    nulls = [rows, 0] * len(SCHEMA)
    said_valid, said_at = _valid(said_at, 0, nulls, _SAID_AT)
    cause_valid, cause = _valid(cause, _NO_ID, nulls, _CAUSE)
    text_valid, text = _valid(text, "", nulls, _TEXT)
    buffers = (
        *(b"", *_words(agent_id)),
        *(b"", struct.pack(int64, *seq)),
        *(b"", struct.pack(int64, *commit)),
        *(b"", _ids(event_id)),
        *(b"", struct.pack(int64, *recorded_at)),
        *(said_valid, struct.pack(int64, *said_at)),
        *(b"", *_words(kind)),
        *(b"", struct.pack(int64, *turn)),
        *(b"", struct.pack(int32, *step)),
        *(cause_valid, _ids(cause)),
        *(b"", struct.pack(int32, *version)),
        *(text_valid, *_words(text)),
        *(b"", *_words(payload)),
    )
    places: list[int] = []
    parts = [b""]
    end = 0
    for buffer in buffers:
        size = len(buffer)
        places += (end, size)
        if size:
            parts.append(buffer)
            end += size
            # Arrow requires each buffer to begin at a multiple of 8 bytes.
            if end & 7:
                parts.append(_PADDING[-end & 7])
                end += -end & 7
    parts[0] = _MESSAGE.pack(
        _BEFORE_BYTES, end, _BEFORE_ROWS, rows, _BEFORE_BUFFERS, *places, _BEFORE_COLUMNS, *nulls
    )  # fmt: skip
    return b"".join(parts)


def _valid(values: tuple[Any, ...], filler: object, nulls: list[int], column: int) -> tuple[bytes, tuple[Any, ...]]:
    """Return the validity bits of `values` (0 for None), and `values` with `filler` in place of None; no bits if there
    is no None.
    """
    count = values.count(None)
    if not count:
        return b"", values
    nulls[2 * column + 1] = count
    if count == len(values):
        return bytes((count + 7) // 8), (filler,) * count
    bits = "".join(["0" if value is None else "1" for value in reversed(values)])
    filled = tuple([filler if value is None else value for value in values])
    return int(bits, 2).to_bytes((len(values) + 7) // 8, "little"), filled


def _ids(values: Sequence[str]) -> bytes:
    return bytes.fromhex("".join(values).replace("-", ""))


def _words(values: Sequence[str]) -> tuple[bytes, bytes]:
    """Return the offsets of the texts as Arrow's int32 array, and the joined UTF-8 bytes of the texts."""
    if len(values) == 1:
        (value,) = values
        data = value.encode()
        return _OFFSETS_OF_ONE(0, len(data)), data
    data = "".join(values).encode()
    lengths = [*map(len, values)]
    # The lengths are in characters: count bytes instead if any text is not ASCII.
    if len(data) != sum(lengths):
        lengths = [len(value.encode()) for value in values]
    return struct.pack(f"<{len(lengths) + 1}i", 0, *accumulate(lengths)), data


def batch_in(body: pa.Buffer) -> pa.RecordBatch:
    """Return the batch in the body of a frame, without a copy."""
    return pa.ipc.read_record_batch(body, SCHEMA)
