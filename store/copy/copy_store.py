"""Copy a store to another place, file by file under the same names: from a folder to a bucket, or the other way.

The copy has no `everlog.json` until everything else is there and checked, so no process takes half of it for a store.
`copying.json` says meanwhile what it will be a copy of. A copy that was interrupted anywhere is continued by the same
command: files that are there with the right content stay, all others are written again.

The copy is the same store: it has the same id, because each frame depends on it. Used by `everlog store copy`.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from everlog.events import BadInput, CorruptLog, StoreError
from everlog.store.base.disk import Disk, parse_json, publish, publish_open, remove_if_there, storage
from everlog.store.base.names import hash_of
from everlog.store.check.check_partition import check
from everlog.store.check.check_side_files import side_files_on
from everlog.store.copy.copy_positions import CopyPosition, bytes_of, is_newest, small_files, take_positions
from everlog.store.copy.copy_side_files import copy_side_files
from everlog.store.partition.epoch import this_process
from everlog.store.partition.manifest import OPEN, FileEntry, ParquetEntry, encode
from everlog.store.partition.partition import EPOCH, MANIFEST, Partition, parse_file_name, token
from everlog.store.partition.segment import missing_file_error
from everlog.store.stores.file_store import CONFIGURATION, COPYING, FileStore, disk_of
from everlog.store.streams.shard_numbers import SHARDS

COMMAND = "everlog store copy"
ATTEMPTS_MAX = 20
"""Number of attempts, because files of a store that is in use are replaced by sealing."""
NAMES_SHOWN = 5


class CopyMark(msgspec.Struct, frozen=True):
    """Content of `copying.json`."""

    store_id: str


class CopyReport(msgspec.Struct):
    """Result of `copy_store`."""

    logs: int = 0
    agents: int = 0
    """Streams with records."""
    records: int = 0
    files: int = 0
    """Files of the logs that the copy consists of."""
    bytes: int = 0
    kept: int = 0
    """Files that an earlier, interrupted copy had written already."""
    side_files: int = 0
    """Small files beside the logs, such as keys and descriptions of models."""
    was_finished: bool = False
    """True if an earlier attempt had finished the copy, and only its mark was left: nothing was read or written."""


def copy_store(
    source: FileStore, root: Path, now: Callable[[], int], disk: Disk | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> CopyReport:  # fmt: skip
    """Copy `source` to `root`, where no store is, and check the copy. Raises BadInput, UsageError, CorruptLog,
    StoreError.
    """
    disk = disk or disk_of(root)
    if root == source.root or root in source.root.parents or source.root in root.parents:
        raise BadInput(f"{root} is the store itself, or inside of it, or around it: choose another place for the copy.")
    with storage("copy a store to", root):
        _begin(source, disk, root)
        if disk.exists(root / CONFIGURATION):
            # From then on the copy is a store, in which agents may have written since. It must not be changed.
            _check_same(disk.read(root / CONFIGURATION), source.disk.read(source.root / CONFIGURATION), root)
            _end(disk, root)
            return CopyReport(was_finished=True)
        for _ in range(ATTEMPTS_MAX):
            try:
                report = _Copy(source, disk, root, now).run(progress)
            except FileNotFoundError:  # an owner has sealed a file since the position was taken
                continue
            beside = side_files_on(source.disk, source.root), side_files_on(disk, root)
            report.side_files = copy_side_files(beside[0], source.root, beside[1], root)
            content = source.disk.read(source.root / CONFIGURATION)
            if not publish(disk, root / CONFIGURATION, content, token()):
                _check_same(disk.read(root / CONFIGURATION), content, root)
            _end(disk, root)
            return report
    raise StoreError(f"files of {source.root} were replaced {ATTEMPTS_MAX} times while they were copied. Try again.")


def _begin(source: FileStore, disk: Disk, root: Path) -> None:
    """Mark the copy as begun. Raises BadInput if anything is there already."""
    mark = root / COPYING
    if disk.exists(mark):
        begun = parse_json(disk.read(mark), CopyMark, mark)
        if begun.store_id != source.store_id:
            raise BadInput(
                f"A copy of another store into {root} was interrupted: finish that one, or choose another place."
            )
        return
    if disk.exists(root):
        found = sorted(
            name for name in disk.names(root) if not name.startswith(COPYING)
        )  # a mark that was half written
        if found:
            more = ", ..." * (len(found) > NAMES_SHOWN)
            raise BadInput(
                f"{root} is not empty: it holds {', '.join(found[:NAMES_SHOWN])}{more}. Nothing was changed: a copy "
                "never replaces anything. Choose an empty place."
            )
    disk.make_dirs(root)
    publish(disk, mark, msgspec.json.encode(CopyMark(source.store_id)), token())


def _end(disk: Disk, root: Path) -> None:
    remove_if_there(disk, root / COPYING)
    disk.sync_dir(root)


def _check_same(found: bytes, expected: bytes, root: Path) -> None:
    if found != expected:
        raise CorruptLog(
            f"{root / CONFIGURATION} is not what was copied. Nothing was changed. Copy the store to another place."
        )


class _Copy:
    """One attempt."""

    def __init__(self, source: FileStore, disk: Disk, root: Path, now: Callable[[], int]) -> None:
        self._source = source
        self._disk = disk
        self._root = root
        self._owner = msgspec.json.encode(this_process(COMMAND, now()))
        self._report = CopyReport()

    def run(self, progress: Callable[[int, int], None]) -> CopyReport:
        # The register is read twice. A mark of an agent without records may be lost as soon as it has some, so what was
        # read before the positions counts; an agent that was registered later counts if its records are included. So
        # does a later number of shards: such an agent may be in a shard of it.
        before = small_files(self._source.disk, self._source.root)
        positions = take_positions(self._source)
        hashes = {hash_of(name) for position in positions for name in position.streams}
        later = small_files(self._source.disk, self._source.root)
        after = {p: content for p, content in later.items() if p.name[:64] in hashes or p.parts[0] == SHARDS}
        self._copy_small({**after, **before})
        for number, position in enumerate(positions, 1):
            self._copy_partition(position)
            progress(number, len(positions))
        self._report.logs = len(positions)
        self._report.agents = len(hashes)
        return self._report

    def _copy_small(self, files: Mapping[Path, bytes]) -> None:
        folders = {Path("agents"), Path("names"), Path("log"), *(path.parent for path in files)}
        for folder in sorted(folders):
            self._disk.make_dirs(self._root / folder)
            wanted = {path.name for path in files if path.parent == folder}
            for name in self._disk.names(self._root / folder) if folder.parts[0] != "log" else []:
                path = self._root / folder / name
                if name not in wanted and len(name) > 2:  # of an earlier attempt; folders have names of two letters
                    remove_if_there(self._disk, path)
        for path, content in sorted(files.items()):
            self._write(self._root / path, content)

    def _copy_partition(self, position: CopyPosition) -> None:
        source, manifest = position.partition, position.manifest
        target = Partition(self._disk, self._root / "log" / source.name, source.name, source.store_id)
        self._disk.make_dirs(target.path)
        there = set(self._disk.names(target.path))
        if not manifest.number:
            return
        wanted = {f"{EPOCH}{position.epoch:06d}", f"{MANIFEST}{manifest.number:06d}"}
        for entry in manifest.files:
            content = _content_of(position, entry)
            self._write_file(target.path / entry.name, content, there)
            wanted.add(entry.name)
            for derived in (entry.state, entry.checkpoints):
                if derived is not None and self._copy_derived(position.partition, derived, target, there):
                    wanted.add(derived.name)
        for name in there - wanted:  # of an earlier attempt, when the source had other files
            if parse_file_name(name) or name.startswith((EPOCH, MANIFEST)):
                remove_if_there(self._disk, target.path / name)
        self._finish_partition(position, target)

    def _finish_partition(self, position: CopyPosition, target: Partition) -> None:
        """Publish the epoch and the manifest of a partition, and check it. Raises CorruptLog."""
        path = target.numbered(EPOCH, position.epoch)
        if not self._disk.exists(path):
            file = publish_open(self._disk, path, self._owner, token(), lock=True)
            if file is not None:
                file.unlock()  # this process is done: the first owner of the copy need not take over
                file.close()
        manifest = position.manifest
        self._write(target.numbered(MANIFEST, manifest.number), encode(manifest))
        found = check(target, deep=True)
        if not found.ok:
            raise CorruptLog(
                f"the copy of {target.name} is not whole: {found.errors[0]}. The source was not changed; `everlog log "
                "check --all` there says whether it is damaged."
            )
        self._report.records += found.records

    def _copy_derived(self, source: Partition, entry: ParquetEntry, target: Partition, there: set[str]) -> bool:
        """Copy a file that can be derived again. Return False if the source has lost it."""
        try:
            content = source.disk.read(source.path / entry.name)
        except FileNotFoundError:
            return False
        self._write_file(target.path / entry.name, content, there)
        return True

    def _write_file(self, path: Path, content: bytes, there: set[str]) -> None:
        """Write a file of a log, unless an earlier attempt has."""
        self._report.files += 1
        self._report.bytes += len(content)
        if path.name in there:
            if self._disk.read(path) == content:
                self._report.kept += 1
                return
            self._disk.remove(path)
        file = self._disk.create(path)
        try:
            file.write([content], 0)
            file.sync()
        finally:
            file.close()
        self._disk.sync_dir(path.parent)

    def _write(self, path: Path, content: bytes) -> None:
        """Publish a small file, unless an earlier attempt has."""
        if self._disk.exists(path):
            if self._disk.read(path) == content:
                return
            self._disk.remove(path)
        publish(self._disk, path, content, token())


def _content_of(position: CopyPosition, entry: FileEntry) -> bytes:
    """Return what is copied of a file. Raises FileNotFoundError if it was replaced, CorruptLog if it is damaged."""
    where = position.partition
    length = bytes_of(position, entry.kind, entry.bytes)
    path = where.path / entry.name
    try:
        content = where.disk.read(path, 0, length)
    except FileNotFoundError as error:
        if is_newest(where, position.manifest):
            raise missing_file_error(str(path), entry.first_commit) from error
        raise
    if entry.kind != OPEN and hashlib.sha256(content).hexdigest() != entry.sha256:
        raise CorruptLog(
            f"{path} does not have the SHA-256 of its manifest: the source is damaged. Nothing was "
            "changed there; `everlog log check --all` shows where."
        )
    return content
