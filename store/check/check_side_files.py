"""Check the small files beside the logs, in a folder or a bucket: that each is whole, and what else is there.

Used by `everlog store check`, and by the copy of a store, which has to find the same files.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from everlog.store.base.disk import Disk, storage
from everlog.store.base.store_constants import SIDE_FILES, SIDE_FOLDERS
from everlog.store.object.bucket_side_files import BucketSideFiles
from everlog.store.object.object_disk import FOLDER, ObjectDisk, foreign_keys
from everlog.store.object.obstore_bucket import ObstoreBucket
from everlog.store.stores.side_files import FOLDER_FILES, WHOLE_BYTES_MAX, SideFiles

STORE_NAMES = ("everlog.json", "agents", "names", "shards", "log")
"""Names in the folder of a store that are the store itself."""
COPIED_NAMES = frozenset((*STORE_NAMES, *SIDE_FILES, *(folder.partition("/")[0] for folder in SIDE_FOLDERS)))
"""Names in the folder of a store that a copy of it has too."""
MACHINE_NAMES = ("archive", "cluster.json", "cluster.log", "copying.json", "history")
"""Names in the folder of a store of what belongs to one machine, or is derived."""


def side_files_on(disk: Disk, root: Path) -> SideFiles:
    """Return the side files of the store in `root` on that disk."""
    if isinstance(disk, ObjectDisk) and isinstance(disk.bucket, ObstoreBucket):
        return BucketSideFiles(disk.bucket, root)
    return FOLDER_FILES


def side_paths(files: SideFiles, root: Path) -> Iterator[Path]:
    """Yield the paths of the side files that a store has, relative to `root`. Raises StoreError."""
    beside = set(files.names(root))
    yield from (Path(name) for name in SIDE_FILES if name in beside)
    for folder, endings in SIDE_FOLDERS.items():
        yield from (Path(folder, name) for name in files.names(root / folder) if name.endswith(endings))


def check_side_files(files: SideFiles, root: Path) -> tuple[int, list[str]]:
    """Return the number of the side files of a store, and what is wrong with them. Raises StoreError."""
    count, wrong = 0, []
    for path in side_paths(files, root):
        found = files.read(root / path)
        if found is None:  # removed just now
            continue
        count += 1
        if fault := _fault(path, found[0]):
            wrong.append(f"{root / path} {fault}. Restore it from a backup, or remove it.")
    return count, wrong


def _fault(path: Path, content: bytes) -> str:
    """Return what is wrong with the content of a side file; empty if nothing is."""
    if len(content) >= WHOLE_BYTES_MAX:
        return f"is longer than {WHOLE_BYTES_MAX:,} bytes, and is not read whole"
    try:
        _parse(path, content)
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return f"is damaged: {error}"
    return ""


def _parse(path: Path, content: bytes) -> Any:
    if path.suffix in (".json", ".state"):
        return msgspec.json.decode(content)
    text = content.decode()
    return tomllib.loads(text) if path.suffix == ".toml" else text


def foreign_names(disk: Disk, root: Path) -> list[str]:
    """Return what lies in the place of a store and no everlog writes: keys of objects, or names of a folder. Raises
    StoreError.
    """
    with storage("list", root):
        if isinstance(disk, ObjectDisk):
            return foreign_keys(found.key for found in disk.bucket.objects(""))
        names = disk.names(root)
    ours = {*COPIED_NAMES, *MACHINE_NAMES, FOLDER}
    return sorted(name for name in names if name not in ours and not name.startswith("."))
