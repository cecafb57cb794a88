"""Mark how far the open file of a partition was when its owner closed it: the file `closed-<epoch>`.

A file of frames that loses its last frames looks like one that never had them. The mark tells the two apart: it names
the open file, its length, its last commit and the checksum of its last frame, which covers all frames before it. A mark
stays true while later owners append, and is void as soon as the manifest in force calls the file by another kind or
does not name it. It is written without a sync, so that closing stays cheap; a power failure may lose or tear it, so an
absent or invalid mark is never an error. A mark holds numbers only, no content of records.

Used by `FileLog` when it is closed, and by `partition_recovery`, `partition_reader`, `check_partition` and
`repair_register`. A mark states only bytes that are durable, and is never believed over frames that a later epoch
wrote: an edit that breaks either rule makes a sound log look damaged.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import msgspec

from everlog.store.base.disk import publish, remove_if_there
from everlog.store.base.store_constants import FORMAT_VERSION
from everlog.store.partition.partition import Partition, numbers_in, parse_file_name, token
from everlog.store.partition.segment import Frame, FrameScan

CLOSED = "closed-"
LOST_SUFFIX = ".lost"
"""Ending of a mark that an owner found unmet: `closed-<epoch>.lost`."""


class ClosedMark(msgspec.Struct, frozen=True):
    """End of an open file at the moment when its owner closed it."""

    file: str
    bytes: int
    """Length of the file, all of it in whole and durable frames."""
    commit: int
    """Number of the last commit in the file."""
    frame: int
    """Header CRC of the last frame."""
    epoch: int
    """Epoch of the owner."""
    left: int | None = None
    """Last commit that was still there when an owner found the mark unmet; None in a mark of a clean close."""
    format: int = FORMAT_VERSION


class LostCommits(NamedTuple):
    """Acknowledged commits that a closed file held and does not hold any more."""

    path: Path
    bytes: int
    """Length of the file when it was closed."""
    whole: int
    """Bytes of whole frames that it has now."""
    first: int
    """Number of the first lost commit."""
    last: int
    """Number of the last lost commit that the mark knows; a later owner may have appended more."""
    epoch: int
    """Epoch of the owner that closed the file."""

    @property
    def in_words(self) -> str:
        """Number and range of the lost commits, in words."""
        number = self.last - self.first + 1
        return f"{number} acknowledged commits ({self.first} to {self.last})" if number > 1 else (
            f"1 acknowledged commit ({self.first})"
        )  # fmt: skip

    def __str__(self) -> str:
        if self.whole >= self.bytes:
            return (
                f"{self.path} holds other frames than when epoch {self.epoch} closed it with {self.bytes} bytes, up to "
                f"commit {self.last}. The disk or a person changed the file. Restore the file from a backup before "
                "anything is appended"
            )
        known = f"The last commit that is left is {self.first - 1}" if self.first > 1 else "No commit is left in it"
        return (
            f"{self.path} has lost {self.in_words}: it had {self.bytes} bytes of whole frames when epoch {self.epoch} "
            f"closed it, and has {self.whole} now. {known}. This is no torn write: the disk or a person changed the "
            "file. Restore the file from a backup before anything is appended"
        )


class _Envelope(msgspec.Struct):
    crc32c: str
    mark: msgspec.Raw


def encode_mark(mark: ClosedMark) -> bytes:
    """Return the bytes of a mark's file: JSON whose `crc32c` covers the text of its `mark`."""
    inner = msgspec.json.encode(mark)
    return msgspec.json.encode(_Envelope(f"{google_crc32c.value(inner):08x}", msgspec.Raw(inner)))


def decode_mark(content: bytes) -> ClosedMark | None:
    """Return the mark in a file; None if the file is torn, damaged, or of a newer everlog."""
    try:
        envelope = msgspec.json.decode(content, type=_Envelope)
        inner = bytes(envelope.mark)
        if f"{google_crc32c.value(inner):08x}" != envelope.crc32c:
            return None
        mark = msgspec.json.decode(inner, type=ClosedMark)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return mark if mark.format <= FORMAT_VERSION else None


def leave_mark(partition: Partition, mark: ClosedMark | None, epoch: int) -> None:
    """Write the mark of `epoch`, and remove the marks of earlier epochs; `mark` is None if the file has no frame.

    Nothing is synced, and every OSError is ignored: the log is whole without a mark. The mark has its name only when
    it is written, so no live process reads half of one.
    """
    with suppress(OSError):
        if mark is not None:
            path = partition.numbered(CLOSED, epoch)
            temporary = path.with_name(f"{path.name}.e{epoch:06d}-{token()}.tmp")  # `Ownership.sweep` knows this form
            file = partition.disk.create(temporary)
            try:
                file.write([encode_mark(mark)], 0)
            finally:
                file.close()
            try:
                partition.disk.link(temporary, path)
            finally:
                partition.disk.remove(temporary)
        # Only after the new mark has its name: at no moment is the file without one.
        for number in partition.numbers(CLOSED):
            if number < epoch:
                remove_if_there(partition.disk, partition.numbered(CLOSED, number))


NamedMark = tuple[str, ClosedMark | None]
"""Name of a mark's file, and the mark; None for an invalid one."""


def read_marks(partition: Partition, names: Iterable[str]) -> Iterator[NamedMark]:
    """Yield the marks among the `names` of the folder, each with its name, oldest first; None for an invalid one."""
    listed = list(names)
    ended = [f"{CLOSED}{number:06d}" for number in numbers_in(listed, CLOSED)]
    stems = [name[: -len(LOST_SUFFIX)] for name in listed if name.endswith(LOST_SUFFIX)]
    ended += [f"{CLOSED}{number:06d}{LOST_SUFFIX}" for number in numbers_in(stems, CLOSED)]
    for name in ended:
        try:
            content = partition.disk.read(partition.path / name)
        except FileNotFoundError:  # the next close has removed it meanwhile
            continue
        except OSError:
            content = b""  # a mark that cannot be read is as good as none
        yield name, decode_mark(content)


class MarkCheck:
    """Comparison of a scan of the open file with its marks. Pass each frame to `see`, then ask for `lost`.

    Create it before the file is read: an owner that appends and closes meanwhile leaves a mark that old bytes do not
    meet.
    """

    def __init__(self, partition: Partition, file: str, found: Iterable[NamedMark] | None = None) -> None:
        """Take the marks of the open file named `file` out of `found`, or read them. May raise OSError."""
        self._path = partition.path / file
        if found is None:
            found = read_marks(partition, partition.disk.names(partition.path))
        self._unmet = {
            mark.bytes: mark for name, mark in found
            if mark is not None and mark.file == file and not name.endswith(LOST_SUFFIX)
        }  # fmt: skip

    def see(self, frame: Frame) -> None:
        """Note a frame of the file; a mark that it meets is settled."""
        mark = self._unmet.get(frame.end)
        if mark is not None and mark.frame == frame.header.crc:
            del self._unmet[frame.end]

    def lost(self, scan: FrameScan) -> LostCommits | None:
        """Return the commits that are missing from the scanned file; None if it meets its marks.

        A mark is void if a frame in the file is of a later epoch: that owner found the loss and continued.
        """
        unmet = [mark for mark in self._unmet.values() if mark.epoch >= scan.epoch]
        if not unmet:
            return None
        mark = max(unmet, key=lambda mark: mark.bytes)
        first = min(scan.next_commit, mark.commit)  # the scan is beyond the mark if other frames are there
        return LostCommits(self._path, mark.bytes, scan.end, first, mark.commit, mark.epoch)


def set_aside(partition: Partition, lost: LostCommits, epoch: int) -> None:
    """Keep unmet marks as `closed-<epoch>.lost`, durably, so that they are not reported as a loss of now again.

    `epoch` is that of the caller. May raise OSError.
    """
    for name, mark in list(read_marks(partition, partition.disk.names(partition.path))):
        if mark is None or mark.file != lost.path.name or mark.left is not None or mark.epoch >= epoch:
            continue
        if mark.commit >= lost.first:
            _keep(partition, name, mark, lost.first - 1)
    partition.disk.sync_dir(partition.path)


def give_up_marks(partition: Partition) -> None:
    """Keep all marks as `closed-<epoch>.lost`, durably, because a person gives up the records of a partition that has
    none any more. May raise OSError.
    """
    for name, mark in list(read_marks(partition, partition.disk.names(partition.path))):
        begun = None if mark is None else parse_file_name(mark.file)
        if mark is not None and mark.left is None and begun is not None:
            _keep(partition, name, mark, begun.first_commit - 1)
    partition.disk.sync_dir(partition.path)


def _keep(partition: Partition, name: str, mark: ClosedMark, left: int) -> None:
    """Replace a mark by its `.lost`. The new file is durable before the mark is removed: a crash in between leaves
    both, and the caller repeats this. `left`: last commit that is still there.
    """
    content = encode_mark(msgspec.structs.replace(mark, left=left))
    publish(partition.disk, partition.path / f"{name}{LOST_SUFFIX}", content, f"e{mark.epoch:06d}-{token()}")
    remove_if_there(partition.disk, partition.path / name)


def notes_of_marks(partition: Partition, names: Iterable[str]) -> Iterator[str]:
    """Yield what the marks in a folder say beside losses of now: commits lost earlier, and marks that are invalid."""
    for name, mark in read_marks(partition, names):
        path = partition.path / name
        if mark is None and name.endswith(LOST_SUFFIX):
            yield f"{path} is damaged; it says that acknowledged commits were lost earlier. Remove it"
        elif mark is None:
            yield f"{path} is no valid mark of a clean close; it is ignored, and the next close replaces it"
        elif mark.left is not None:
            yield (
                f"{path}: acknowledged commits {mark.left + 1} to {mark.commit} of {mark.file} were lost after epoch "
                f"{mark.epoch} closed it, and a later owner continued after commit {mark.left}; a backup of that time "
                "has them. Remove this file when the loss is dealt with"
            )
