"""Check the store: its storage, owner, permissions, space, files of the register, and the processes that have it open.

Used by `everlog doctor`. Nothing is written, and no log is read: `everlog log check --all` reads every byte.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from everlog.events import EverlogError
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.operate.findings import Finding, FindingLevel
from everlog.interfaces.output.json_shapes import size
from everlog.store import CONFIGURATION, FileStore, check_presence, check_storage, exposure, storage_warning, url_of
from everlog.store.partition.epoch import has_live_owner

SPACE_WARN, SPACE_FAIL = 2_000_000_000, 100_000_000
"""Free bytes below which the space is a warning, or a failure."""
SHOWN_MAX = 5
"""Most logs that are named."""


def check_store(root: Path, world: CommandEnvironment) -> Iterator[Finding]:
    """Yield the findings about the store in `root`, which need not exist."""
    if not (url := url_of(root)):
        yield from _storage(root)
        if not (root / CONFIGURATION).exists():
            yield Finding("store", "ok", f"{root} does not exist yet: the first agent makes it")
            return
        yield from _access(root)
    try:
        store = FileStore(root, world.clock.now)
        agents, partitions = len(store.agents()), store.partitions()
    except EverlogError as error:
        yield Finding("store", "fail", str(error), "`everlog explain " + error.code + "` says more.")
        return
    yield Finding("store", "ok", f"{url or root}: {plural(agents, 'agent')}, {plural(len(partitions), 'log')}")
    yield from _register(store)
    held = [name for name in partitions if has_live_owner(store.partition(name))]
    yield Finding("locks", "ok", f"open in other processes: {', '.join(held[:SHOWN_MAX]) or 'no log'}"
                  + (f" and {len(held) - SHOWN_MAX:,} more" if held[SHOWN_MAX:] else ""))  # fmt: skip


def _access(root: Path) -> Iterator[Finding]:
    """Yield the findings about the owner of the store's folder, and about who else may enter it."""
    yield _owner(root)
    wide = exposure(root)
    if wide:
        yield Finding("permissions", "warn", wide)
    else:
        yield Finding("permissions", "ok", "no other user may enter the store")


def _storage(root: Path) -> Iterator[Finding]:
    """Yield the findings about the file system and its free space."""
    try:
        check_storage(root)
        known = storage_warning(root)
    except EverlogError as error:
        yield Finding("storage", "fail", str(error))
        return
    yield (
        Finding("storage", "warn", known, "Keep the store on a disk of its own.")
        if known
        else Finding("storage", "ok", "the file system keeps what is synced")
    )
    there = next(path for path in (root, *root.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    level: FindingLevel = "fail" if free < SPACE_FAIL else "warn" if free < SPACE_WARN else "ok"
    cure = "" if level == "ok" else "Make room: a full disk stops every agent."
    yield Finding("space", level, f"{size(free)} free", cure)


def _owner(root: Path) -> Finding:
    owner = root.stat().st_uid
    if owner != os.getuid():
        return Finding("owner", "fail", f"the store belongs to user {owner}, and this process to user {os.getuid()}",
                       "Run everlog as the owner of the store; files of two owners lock each other out.")  # fmt: skip
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return Finding("owner", "fail", f"{root} cannot be read and written", f"chmod u+rwx {root}")
    return Finding("owner", "ok", "the store belongs to this user, and can be read and written")


def _register(store: FileStore) -> Iterator[Finding]:
    """Yield the findings about the register of agents."""
    try:
        errors = check_presence(store)
    except EverlogError as error:
        errors = [str(error)]
    for said in errors:
        yield Finding("register", "fail", said, "`everlog log check --all` finds all damage.")
    if not errors:
        yield Finding("register", "ok", "its files are whole, and each log that it names exists")
