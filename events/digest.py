"""The digest of a record and the chain of a stream: what makes a log that was changed tell on itself.

`chain_n = sha256(chain_{n-1} + digest_n)`, beginning from 32 zero bytes. It is computed, never stored beside the
record, so that it cannot be changed together with it; manifests keep its value at the end of each file.
"""

import hashlib

import msgspec

from .base import Record
from .codec import ERASED_PREFIX, is_erased

GENESIS = bytes(32)
"""The chain of an empty stream."""

_encoder = msgspec.json.Encoder()


def canonical_bytes(record: Record) -> bytes:
    """The record as one JSON array in the envelope's order, without `commit`, which is a matter of the partition."""
    return _encoder.encode(
        (
            record.agent_id,
            record.seq,
            record.event_id,
            record.recorded_at,
            record.said_at,
            record.type,
            record.turn,
            record.step,
            record.cause,
            record.version,
            record.text,
            record.payload,
        )
    )


def digest(record: Record) -> bytes:
    """sha256 of the record's canonical bytes: 32 bytes. A tombstone carries the digest of what it was."""
    if is_erased(record.payload):
        return bytes.fromhex(msgspec.json.decode(record.payload)["digest"])
    return hashlib.sha256(canonical_bytes(record)).digest()


def tombstone(record: Record) -> Record:
    """What is left of an erased record: its place, its envelope and its digest. A tombstone stays as it is."""
    if is_erased(record.payload):
        return record
    payload = f'{ERASED_PREFIX},"digest":"{digest(record).hex()}"}}'
    return msgspec.structs.replace(record, text=None, payload=payload)


def extend(chain: bytes, record: Record) -> bytes:
    """The chain value after `record`, from the value before it."""
    return hashlib.sha256(chain + digest(record)).digest()
