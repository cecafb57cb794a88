"""Encode and check frames: a fixed header with two checksums, and one Arrow record batch.

Invariants: no field of a header is used before the header's CRC is verified. That CRC is salted by the store, the
partition, the file's name (which holds its first commit and the epoch that began it) and the offset, so that stale
bytes from another place never parse. Header and body are multiples of 8 bytes, so that Arrow reads a body in place.

Used by `open_segment` for writing, and by `segment`, `frame_index` and `log_follower` for reading. A change of the
layout needs a new `FORMAT_VERSION`.
"""

import struct
from typing import NamedTuple

import google_crc32c
import pyarrow as pa

from everlog.store.base.store_constants import FORMAT_VERSION, FRAME_BYTES_MAX

MAGIC = b"EVLF"
_FIELDS = struct.Struct("<4sHHIIQQIII")
_CRC = struct.Struct("<I")
_OFFSET = struct.Struct("<Q")
HEADER_BYTES = _FIELDS.size + _CRC.size
ALIGNMENT_BYTES = 8

assert HEADER_BYTES % ALIGNMENT_BYTES == 0


class FrameHeader(NamedTuple):
    """Header fields of a frame. `flags` is reserved for compression and is 0 today."""

    version: int
    flags: int
    body_bytes: int
    commits: int
    """Number of commits in the frame, from 1."""
    epoch: int
    first_commit: int
    records: int
    previous: int
    """Header CRC of the frame before this frame in the file, 0 for the first. Through `body_crc` it covers that frame's
    body too.
    """
    body_crc: int
    crc: int


def salt_of(store_id: str, partition: str, name: str) -> int:
    """Return the salt of the header CRCs in the file `name`."""
    return int(google_crc32c.value(f"{store_id}\0{partition}\0{name}".encode()))


def pack(salt: int, offset: int, body: bytes, *, epoch: int, first_commit: int, commits: int, records: int,
         previous: int) -> tuple[bytes, int]:  # fmt: skip
    """Return the header of the frame at `offset` whose body is `body`, and the header's CRC."""
    fields = _FIELDS.pack(
        MAGIC, FORMAT_VERSION, 0, len(body), commits, epoch, first_commit, records, previous, google_crc32c.value(body)
    )
    crc = google_crc32c.extend(salt, _OFFSET.pack(offset) + fields)
    return fields + _CRC.pack(crc), crc


def unpack(salt: int, offset: int, data: bytes, at: int | None = None) -> FrameHeader | None:
    """Return the header at `offset` of the file; None unless its CRC and lengths are right.

    `data` is the file from its start, or any part of the file in which that offset is the byte `at`.
    """
    at = offset if at is None else at
    if data[at : at + len(MAGIC)] != MAGIC or at + HEADER_BYTES > len(data):
        return None
    fields = data[at : at + _FIELDS.size]
    (crc,) = _CRC.unpack_from(data, at + _FIELDS.size)
    if google_crc32c.extend(salt, _OFFSET.pack(offset) + fields) != crc:
        return None
    header = FrameHeader._make((*_FIELDS.unpack(fields)[1:], crc))
    if header.body_bytes > FRAME_BYTES_MAX or header.body_bytes % ALIGNMENT_BYTES or not header.commits:
        return None
    return header


def body_is_right(header: FrameHeader, body: pa.Buffer) -> bool:
    """Return True if `body` is complete and has the CRC that the header states."""
    return bool(body.size == header.body_bytes and google_crc32c.value(body) == header.body_crc)
