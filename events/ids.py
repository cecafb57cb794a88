"""Make and read UUIDv7: ids that carry their time. Pure: time and random bits are arguments.

Used by clocks of hosts and tests to make ids. The store reads the time out of ids, and refuses appends whose id is too
old.
"""

RANDOM_BITS = 74
"""Random bits in a UUIDv7, which also has 48 bits of time and 6 fixed bits (RFC 9562, 5.7)."""


def uuid7(at: int, chance: int) -> str:
    """Return the id for time `at` (microseconds UTC, kept to the millisecond) and `chance` (0 to 2**74, exclusive)."""
    milliseconds = at // 1000
    bits = (milliseconds & (2**48 - 1)) << 80 | 7 << 76 | (chance >> 62) << 64 | 0b10 << 62 | chance & (2**62 - 1)
    text = bits.to_bytes(16).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def derived_id(at: int, digest: bytes) -> str:
    """Return the id for time `at` (microseconds UTC) whose random bits are the last of a digest: the same for the same
    content.
    """
    return uuid7(at, int.from_bytes(digest) & (2**RANDOM_BITS - 1))


def time_of(event_id: str) -> int | None:
    """Return the time inside a UUIDv7, microseconds UTC to the millisecond; None if `event_id` is not a UUIDv7."""
    parts = event_id.split("-")
    if [len(part) for part in parts] != [8, 4, 4, 4, 12] or parts[2][0] != "7" or parts[3][0] not in "89ab":
        return None
    try:
        return int(parts[0] + parts[1], 16) * 1000
    except ValueError:
        return None
