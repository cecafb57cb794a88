"""The digest of a record and the chain of a stream: what makes a log that was changed tell on itself.

`chain_n = sha256(chain_{n-1} + digest_n)`, beginning from 32 zero bytes. It is computed, never stored beside the
record, so that it cannot be changed together with it; manifests keep its value at the end of each file.
"""

import hashlib

import msgspec

from everlog.events.base import Draft, Record
from everlog.events.codec import ERASED_PREFIX, is_erased

GENESIS = bytes(32)
"""The chain of an empty stream."""

_encoder = msgspec.json.Encoder()


def canonical_bytes(record: Record) -> bytes:
    """The record as one JSON array in the envelope's order, without `commit`, which is a matter of the partition."""
    return _canonical_bytes(record, record.agent_id, record.seq)


def _canonical_bytes(facts: Record | Draft, agent_id: str, seq: int) -> bytes:
    return _encoder.encode(
        (
            agent_id,
            seq,
            facts.event_id,
            facts.recorded_at,
            facts.said_at,
            facts.type,
            facts.turn,
            facts.step,
            facts.cause,
            facts.version,
            facts.text,
            facts.payload,
        )
    )


def digest(record: Record) -> bytes:
    """sha256 of the record's canonical bytes: 32 bytes. A tombstone carries the digest of what it was."""
    return digest_at(record, record.agent_id, record.seq)


def digest_at(facts: Record | Draft, agent_id: str, seq: int) -> bytes:
    """The digest of the record that a draft becomes in that place."""
    if is_erased(facts.payload):
        return bytes.fromhex(msgspec.json.decode(facts.payload)["digest"])
    return hashlib.sha256(_canonical_bytes(facts, agent_id, seq)).digest()


def tombstone(record: Record) -> Record:
    """What is left of an erased record: its place, its envelope and its digest. A tombstone stays as it is."""
    if is_erased(record.payload):
        return record
    payload = f'{ERASED_PREFIX},"digest":"{digest(record).hex()}"}}'
    return msgspec.structs.replace(record, text=None, payload=payload)


def extend(chain: bytes, record: Record) -> bytes:
    """The chain value after `record`, from the value before it."""
    return link(chain, digest(record))


def link(chain: bytes, digest: bytes) -> bytes:
    """The chain value after a record with that digest, from the value before it."""
    return hashlib.sha256(chain + digest).digest()
