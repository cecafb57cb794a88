"""Records to Arrow and back: the log's one schema.

Records hold ids as 36-character text and times as integers of microseconds; Arrow holds them as uuid and timestamp.
The format version of a frame names this schema, so a change of it is a new format version.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from events import Record

_ID = pa.uuid()
_ID_STORAGE = pa.binary(16)
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


def id_bytes(event_id: str) -> bytes:
    """The 16 bytes of an id in its 36-character form."""
    return bytes.fromhex(event_id.replace("-", ""))


def id_text(value: bytes) -> str:
    """The 36-character form of an id's 16 bytes."""
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def batch_of(records: Sequence[Record]) -> pa.RecordBatch:
    """`records` as one batch of `SCHEMA`, in the order given."""
    ids = pa.array([id_bytes(r.event_id) for r in records], _ID_STORAGE)
    causes = pa.array([None if r.cause is None else id_bytes(r.cause) for r in records], _ID_STORAGE)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([r.agent_id for r in records], _STRING),
            pa.array([r.seq for r in records], _INT64),
            pa.array([r.commit for r in records], _INT64),
            pa.ExtensionArray.from_storage(_ID, ids),
            pa.array([r.recorded_at for r in records], _TIME),
            pa.array([r.said_at for r in records], _TIME),
            pa.array([r.type for r in records], _STRING),
            pa.array([r.turn for r in records], _INT64),
            pa.array([r.step for r in records], _INT32),
            pa.ExtensionArray.from_storage(_ID, causes),
            pa.array([r.version for r in records], _INT32),
            pa.array([r.text for r in records], _STRING),
            pa.array([r.payload for r in records], _STRING),
        ],
        schema=SCHEMA,
    )


def records_of(data: pa.RecordBatch | pa.Table) -> Iterator[Record]:
    """The records of `data`, which has the columns of `SCHEMA`, in its order."""
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


def body_of(records: Sequence[Record]) -> pa.Buffer:
    """`records` as the body of a frame: one encapsulated Arrow IPC message, without a schema."""
    return batch_of(records).serialize()


def batch_in(body: pa.Buffer) -> pa.RecordBatch:
    """The batch inside the body of a frame, without a copy."""
    return pa.ipc.read_record_batch(body, SCHEMA)
