"""Claim a task, so that one process of all machines does it: a side file that its holder changes again and again.

No clock is compared. Another process takes the claim when it has seen the same content for EXPIRES_S seconds of its own
time. A holder that stood still longer finds out when it keeps the claim next. Until then both may work: what they write
needs a condition of its own, such as `replace_whole` or the epoch of a log.

Used where a file cannot be locked, in a bucket: by servers for webhooks.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from everlog.events import CorruptLog
from everlog.store.stores.side_files import SideFiles, StampedContent

BEAT_S = 5.0
"""Seconds between two changes by the holder."""
EXPIRES_S = 20.0
"""Seconds without a change after which another process takes a claim."""


class ClaimContent(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a claim that is held."""

    holder: str
    """Different for each process."""
    who: str
    """Holder in words, for people."""
    beat: int = 0
    """Number of changes."""


class Claim:
    """The claim at a path, for one process. Methods raise StoreError."""

    def __init__(self, files: SideFiles, path: Path, holder: str, who: str, now_s: Callable[[], float]) -> None:
        """`holder` is different for each process; `now_s` returns seconds of a clock that never goes back."""
        self._files, self._path, self._now_s = files, path, now_s
        self._content = ClaimContent(holder=holder, who=who)
        self._seen: StampedContent | None = None
        """Content of another process, as it was found first."""
        self._since = 0.0

    def take(self) -> str:
        """Take the claim if it is free, or its holder has gone. Return the holder in words if it is another process;
        empty: this process holds the claim.
        """
        found = self._files.read(self._path)
        held = None if found is None or not found[0] else self._parsed(found[0])
        if held is not None and held.holder == self._content.holder:
            return ""
        if held is not None and found != self._seen:
            self._seen, self._since = found, self._now_s()
        if held is not None and self._now_s() - self._since < EXPIRES_S:
            return held.who
        if self._write(found):
            return ""
        return "another process" if held is None else held.who

    def keep(self) -> bool:
        """Tell others that this process still holds the claim. Return False if another process has taken it."""
        found = self._files.read(self._path)
        return found is not None and self._is_mine(found) and self._write(found)

    def free(self) -> None:
        """Let another process take the claim at once, if this process holds it."""
        found = self._files.read(self._path)
        if found is not None and self._is_mine(found):
            self._files.replace(self._path, b"", found)

    def _is_mine(self, found: StampedContent) -> bool:
        return bool(found[0]) and self._parsed(found[0]).holder == self._content.holder

    def _write(self, before: StampedContent | None) -> bool:
        self._content = msgspec.structs.replace(self._content, beat=self._content.beat + 1)
        return self._files.replace(self._path, msgspec.json.encode(self._content), before)

    def _parsed(self, content: bytes) -> ClaimContent:
        try:
            return msgspec.json.decode(content, type=ClaimContent)
        except msgspec.MsgspecError as error:
            raise CorruptLog(f"{self._path} is damaged ({error}): remove it, nothing is lost.") from error
