"""Export a whole store into a folder, one file for each agent, source and shared block, and restore the folder.

Used by `everlog export --all` and `everlog restore DIR`. Agents may run meanwhile: each file is one consistent prefix
of its stream. A run that was interrupted continues: a file whose stream has not changed since is kept. The list of the
files, `manifest.json`, is written last, so a folder without it is not complete.

Forks come after their ancestors in the list. Restored first, a fork would bring a shortened ancestor that has ended.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from everlog.actors.ports.effects import Clock
from everlog.actors.reports.export_restore import check_generations
from everlog.events import BadInput, CorruptLog, EverlogError, StoreError
from everlog.events.times import iso
from everlog.projections import DERIVER
from everlog.store import (
    ExportHeader,
    FileStore,
    RestoreReport,
    export,
    stream_of,
    stream_of_block,
    write_whole,
)
from everlog.store.backup.export_file import ExportReader
from everlog.store.base.permissions import make_folders

MANIFEST = "manifest.json"
VERSION = 1
NOT_INSIDE = (
    "models.toml", "mcp.toml", "a2a.toml", "everlog.toml", "keys and other variables", "files of your own functions",
    "workspaces", "names that `everlog rename` gave",
    "the search index, which is built again from the logs", "probe findings, which `everlog models test` makes again",
)  # fmt: skip
"""Things that a folder of `export --all` does not hold."""
_SLUG_CHARS = 60


class BackupFile(msgspec.Struct, frozen=True):
    """One file of a backup."""

    file: str
    """Name of the file in the folder."""
    stream: str
    """Agent, source or shared block that the file holds."""
    to_seq: int
    chain: str
    """Chain value at `to_seq`, in hexadecimal."""
    bytes: int


class BackupManifest(msgspec.Struct, frozen=True):
    """List of the files of a backup, in the order in which to restore them."""

    version: int
    store: str
    """Id of the store."""
    made_at: str
    files: list[BackupFile]
    left_out: dict[str, str] = {}
    """Streams that could not be exported, each with the reason."""
    not_inside: Sequence[str] = NOT_INSIDE


StreamCallback = Callable[[str, str], None]
"""Called for each stream with its name and what became of it: `exported`, `unchanged`, `empty`, `left out`."""


def export_store(store: FileStore, folder: Path, *, clock: Clock, on_stream: StreamCallback) -> BackupManifest:
    """Export every agent, source and shared block into `folder`, which is created if needed. Return the list.

    A stream that is damaged is left out and listed; one that never had a record is skipped. Raises BadInput if the
    folder holds something else or the backup of another store; StoreError if a file cannot be written.
    """
    _check_folder(folder, store.store_id)
    make_folders(folder)
    files, left_out = [], {}
    for stream in _streams(store):
        path = folder / file_of(stream)
        try:
            if _never_began(store, stream):
                on_stream(stream, "empty")
                continue
            header, made = _exported(store, stream, path, clock)
        except (BadInput, CorruptLog) as error:
            left_out[stream] = str(error)
            on_stream(stream, "left out")
            continue
        own = header.own
        files.append(BackupFile(path.name, stream, own.to_seq, own.chain, path.stat().st_size))
        on_stream(stream, "exported" if made else "unchanged")
    listed = BackupManifest(VERSION, store.store_id, iso(clock.now()), files, left_out)
    write_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(listed), indent=2))
    return listed


def _never_began(store: FileStore, stream: str) -> bool:
    """Return True for a stream that was registered and never had a record. Raises CorruptLog for one that has lost
    its records.
    """
    if store.reader(stream).head(stream).seq:
        return False
    store.check_not_lost(stream)
    return True


def _exported(store: FileStore, stream: str, path: Path, clock: Clock) -> tuple[ExportHeader, bool]:
    """Return the header of a stream's file, and True if the file was written now: its stream had changed, or the file
    was missing or damaged.
    """
    head = store.reader(stream).head(stream)
    if path.exists():
        try:
            with closing(ExportReader(path)) as reader:  # verifies every byte: a damaged file is written again
                before = reader.contents
        except EverlogError:
            before = None
        if before is not None and (before.own.to_seq, before.own.chain) == (head.seq, head.chain.hex()):
            return before, False
    return export(store, stream, path, store_id=store.store_id, made_at=clock.now(), replace=True), True


def _streams(store: FileStore) -> Iterator[str]:
    """Yield every stream of the store: ancestors before their forks, then sources and shared blocks."""
    given: set[str] = set()
    for name in store.agents():
        ancestors = [name]
        while ancestors[-1] not in given and (parent := store.parent_of(ancestors[-1])) is not None:
            ancestors.append(parent[0])
        for one in reversed(ancestors):
            if one not in given:
                given.add(one)
                yield one
    yield from map(stream_of, store.sources())
    yield from map(stream_of_block, store.blocks())


def file_of(stream: str) -> str:
    """Return the name of a stream's file: readable, and different for each stream on every file system."""
    slug = re.sub(r"[^\w.-]", "_", stream, flags=re.ASCII)[:_SLUG_CHARS].lstrip(".")
    return f"{slug}-{hashlib.sha256(stream.encode()).hexdigest()[:8]}.everlog"


def _check_folder(folder: Path, store_id: str) -> None:
    """Raise BadInput unless the folder is new, empty, or a backup of this store, finished or not."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BadInput(f"{folder} is a file. Name a new folder, or that of an earlier `everlog export --all`.")
    if (folder / MANIFEST).exists():
        before = read_manifest(folder)
        if before.store != store_id:
            raise BadInput(f"{folder} holds a backup of another store ({before.store}). Name another folder.")
        return
    strange = sorted(path.name for path in folder.iterdir() if not path.name.endswith((".everlog", ".tmp")))
    if strange:
        raise BadInput(f"{folder} holds other files, such as {strange[0]}. Name a new or empty folder.")


def read_manifest(folder: Path) -> BackupManifest:
    """Return the list of a backup. Raises BadInput if there is none, or it cannot be read."""
    path = folder / MANIFEST
    try:
        found = msgspec.json.decode(path.read_bytes(), type=BackupManifest)
    except FileNotFoundError as error:
        raise BadInput(
            f"{folder} has no {MANIFEST}: it is no backup of a store, or `everlog export --all` was interrupted; run "
            "it again with the same folder. A single file can be restored by its name."
        ) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise BadInput(
            f"{path} cannot be read: {error}. Make the backup again, or restore its files one by one."
        ) from error
    if found.version != VERSION:
        raise BadInput(
            f"{path} has version {found.version}; this everlog reads version {VERSION}. Use a newer everlog."
        )
    return found


RestoreCallback = Callable[[BackupFile, RestoreReport | EverlogError], None]
"""Called with each file of a backup, and its report or the error that kept it from being restored."""


def restore_store(store: FileStore, folder: Path, on_file: RestoreCallback) -> BackupManifest:
    """Restore every file of a backup, and return its list. A file that fails does not stop the others. Running it again
    adds only what is missing. Raises BadInput if the folder is no backup.
    """
    listed = read_manifest(folder)
    for one in listed.files:
        result: RestoreReport | EverlogError
        path = folder / one.file
        try:
            if Path(one.file).name != one.file or not path.is_file():
                raise StoreError(f"The backup has no file {one.file!r}, which its {MANIFEST} lists. Copy it again.")
            check_generations(store, path)
            result = store.restore(path, DERIVER)
        except EverlogError as error:
            result = error
        on_file(one, result)
    return listed
