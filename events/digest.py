"""Compute the digest of a record and the hash chain of a stream, which reveal changes in a log.

`chain_n = sha256(chain_{n-1} + digest_n)`, beginning from 32 zero bytes. The chain value is computed, and not stored
with the record, so that both cannot be changed together. Manifests store the value at the end of each file.

Used by `store` for every append, seal and export, and by `everlog verify`. The bytes of `canonical_bytes` never change:
chain values on disk depend on them.
"""

import hashlib

import msgspec

from everlog.events.base import Draft, Record
from everlog.events.codec import ERASED_PREFIX, is_erased

GENESIS = bytes(32)
"""Chain value of an empty stream."""

_encoder = msgspec.json.Encoder()


def canonical_bytes(record: Record) -> bytes:
    """Encode the record as one JSON array in the envelope's order, without `commit`, which depends on the partition."""
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
    """Return the sha256 of the record's canonical bytes: 32 bytes.
    For a tombstone, return the digest of the erased record.
    """
    return digest_at(record, record.agent_id, record.seq)


def digest_at(facts: Record | Draft, agent_id: str, seq: int) -> bytes:
    """Return the digest of the record that a draft becomes at that place."""
    if is_erased(facts.payload):
        return bytes.fromhex(msgspec.json.decode(facts.payload)["digest"])
    return hashlib.sha256(_canonical_bytes(facts, agent_id, seq)).digest()


def tombstone(record: Record) -> Record:
    """Return a record without its content: its place, its envelope and its digest.
    A tombstone is returned unchanged.
    """
    if is_erased(record.payload):
        return record
    payload = f'{ERASED_PREFIX},"digest":"{digest(record).hex()}"}}'
    return msgspec.structs.replace(record, text=None, payload=payload)


def extend(chain: bytes, record: Record) -> bytes:
    """Return the chain value after `record`, from the value before it."""
    return link(chain, digest(record))


def link(chain: bytes, digest: bytes) -> bytes:
    """Return the chain value after a record with that digest, from the value before it."""
    return hashlib.sha256(chain + digest).digest()
