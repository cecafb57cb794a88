"""Say how far a reader of the feed is: the last commit that it has of each partition, as one compact text. Pure.

    1 byte    version
    4 bytes   beginning of the SHA-256 of the store's id
    then for each partition: 6 bytes of the SHA-256 of its name, and the commit as a varint (LEB128)

in base64url without padding. A partition that a position does not have is read from its first commit on: a partition
that is created later is missing from every older position.
"""

import base64
import binascii
import hashlib

from everlog.events import BadInput

VERSION = 1
STORE_BYTES = 4
NAME_BYTES = 6
COMMIT_MAX = 2**63 - 1
_HEAD = 1 + STORE_BYTES


def key_of(partition: str) -> bytes:
    """Return the bytes that stand for a partition in a position."""
    return hashlib.sha256(partition.encode()).digest()[:NAME_BYTES]


class FeedPosition:
    """Last commits that a reader has, by partition."""

    __slots__ = ("_commits", "_entries", "_head", "_keys")

    def __init__(self, store_id: str) -> None:
        """Make the position before the first commit of every partition."""
        self._head = bytes([VERSION]) + hashlib.sha256(store_id.encode()).digest()[:STORE_BYTES]
        self._commits: dict[bytes, int] = {}
        self._entries: dict[bytes, bytes] = {}
        """Encoded commits: only one of them changes from portion to portion."""
        self._keys: dict[str, bytes] = {}

    @classmethod
    def parse(cls, token: str, store_id: str) -> "FeedPosition":
        """Return the position of a token. Raises BadInput for a text that is no token, or one of another store."""
        position = cls(store_id)
        try:
            content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            content = b""
        if len(content) < _HEAD or content[0] != VERSION:
            raise _bad(token)
        if content[:_HEAD] != position._head:
            raise BadInput("The position belongs to another store. Nothing was read.")
        at = _HEAD
        while at < len(content):
            key = content[at : at + NAME_BYTES]
            commit, at = _varint(content, at + NAME_BYTES)
            if at < 0 or key in position._commits:
                raise _bad(token)
            position._put(key, commit)
        return position

    def token(self) -> str:
        """Return the position as a text of letters, digits, `-` and `_`."""
        content = b"".join((self._head, *self._entries.values()))
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    def of(self, partition: str) -> int:
        """Return the last commit of a partition that the reader has; 0: none."""
        return self._commits.get(self._key(partition), 0)

    def advance(self, partition: str, commit: int) -> None:
        """Note that the reader has everything of a partition up to a commit."""
        if commit:
            self._put(self._key(partition), commit)

    def copy(self) -> "FeedPosition":
        """Return a position that advances by itself."""
        other = FeedPosition("")
        other._head, other._keys = self._head, self._keys
        other._commits, other._entries = dict(self._commits), dict(self._entries)
        return other

    def _key(self, partition: str) -> bytes:
        key = self._keys.get(partition)
        if key is None:
            key = self._keys[partition] = key_of(partition)
        return key

    def _put(self, key: bytes, commit: int) -> None:
        self._commits[key] = commit
        self._entries[key] = key + _encoded(commit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeedPosition) and (self._head, self._commits) == (other._head, other._commits)

    __hash__ = None  # type: ignore[assignment]


def _encoded(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the number at a place and the place after it; -1 instead of that place if there is no valid number."""
    number = shift = 0
    for place in range(at, min(at + 9, len(content))):
        number |= (content[place] & 0x7F) << shift
        shift += 7
        if content[place] < 0x80:
            valid = 0 < number <= COMMIT_MAX and (content[place] or place == at)
            return number, place + 1 if valid else -1
    return 0, -1


def _bad(token: str) -> BadInput:
    return BadInput(f"{token[:40]!r} is no position of a feed: it is `now`, `start`, or one that the feed gave.")
