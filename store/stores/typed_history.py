"""Keep what a person typed at a prompt, so that the next session can recall it: one private file for each agent.

Used by the line editor of `everlog chat` and `everlog sql`, and by the erasure of records. A history is no source of
truth: a lost or damaged file costs recall only. It holds words that may have to be erased, so the files have one place,
and an erasure removes them whole (`forget_typed`): a new kind of history must be reached there too.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from everlog.store.base.disk import storage
from everlog.store.base.names import hash_of
from everlog.store.base.permissions import make_folders, open_private
from everlog.store.stores.side_files import FOLDER_FILES

FOLDER = "history"
QUERIES = "sql"
"""Name of the file for the queries of `everlog sql`, which belong to no agent."""
TYPED_BYTES_MAX = 1 << 20
"""Limit of one history file, in bytes. A file that is full keeps the newest half."""
ENTRY_BYTES_MAX = 1 << 16
"""Longest entry that is kept, in bytes of JSON. A longer one, such as a pasted file, is in the log only."""


def typed_path(root: Path, agent_id: str | None) -> Path:
    """Return the path of the history of an agent's chat; None: of the queries of the store."""
    return root / FOLDER / (QUERIES if agent_id is None else hash_of(agent_id))


def typed_before(path: Path) -> list[str]:
    """Return the entries of a history, oldest first; those that cannot be read are left out. Raises StoreError."""
    found = []
    for line in _content(path).splitlines():
        try:
            found.append(msgspec.json.decode(line, type=str))
        except (msgspec.DecodeError, UnicodeDecodeError):  # the end of a write that was cut off
            continue
    return found


def keep_typed(path: Path, text: str) -> None:
    """Append an entry to a history. Raises StoreError.

    A text that is too long or not UTF-8 is not kept. The file is created with the mode of a store's file.
    """
    try:
        entry = msgspec.json.encode(text) + b"\n"
    except UnicodeEncodeError:
        return
    if len(entry) > ENTRY_BYTES_MAX:
        return
    with storage("write", path):
        make_folders(path.parent)
        with open_private(path, "ab") as file:
            file.write(entry)
            size = file.tell()
    if size > TYPED_BYTES_MAX:
        lines = _content(path).splitlines(keepends=True)
        FOLDER_FILES.write(path, b"".join(_newest(lines, TYPED_BYTES_MAX // 2)))


def _content(path: Path) -> bytes:
    """Return the content of a history. It stays on the machine on which it was typed, also if the store is a bucket."""
    found = FOLDER_FILES.read(path)
    return b"" if found is None else found[0]


def _newest(lines: list[bytes], bytes_max: int) -> list[bytes]:
    """Return the last lines that have at most `bytes_max` bytes together."""
    first, size = len(lines), 0
    while first and size + len(lines[first - 1]) <= bytes_max:
        first -= 1
        size += len(lines[first])
    return lines[first:]


def forget_typed(root: Path, agent_ids: Iterable[str]) -> None:
    """Remove the histories of the agents, and that of queries, which may name what any agent said. Raises StoreError.

    A chat or a prompt that runs meanwhile creates its file again with its next entry.
    """
    for path in (typed_path(root, None), *(typed_path(root, name) for name in agent_ids)):
        with storage("remove", path):
            path.unlink(missing_ok=True)
    if (root / FOLDER).is_dir():
        with storage("sync", root / FOLDER):
            fd = os.open(root / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
