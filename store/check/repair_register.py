"""Repair the register: make its files again from the records of all partitions.

Used by `everlog log repair-register`. No file is lost by it: a damaged or wrong one is kept beside the right one, under
a name that the register ignores. The order of each change: the mark, the copies under other names, then the right
files. After a crash between two of these steps the same call plans what is left and finishes it.
"""

import itertools
from pathlib import Path

from everlog.events import PartitionBusy
from everlog.store.base.disk import Disk, publish, remove_if_there, storage
from everlog.store.check.repair_plan import RegisterChange, RepairPlan, plan_repair
from everlog.store.check.stream_facts import facts_of
from everlog.store.partition.closed_mark import give_up_marks
from everlog.store.partition.epoch import has_live_owner
from everlog.store.partition.partition import token
from everlog.store.stores.file_store import FileStore
from everlog.store.streams.register_file import encode_assignments
from everlog.store.streams.stream_evidence import GIVEN_UP


def look_at_register(store: FileStore) -> RepairPlan:
    """Return the changes that `repair_register` would make. Changes nothing. Raises StoreError; PartitionBusy if a
    process on this machine has a partition open.
    """
    _raise_if_open(store)
    return plan_repair(store, facts_of(store))


def repair_register(store: FileStore, plan: RepairPlan) -> None:
    """Make the changes of a plan, durably. Raises StoreError, PartitionBusy; the same call may be repeated."""
    _raise_if_open(store)
    for change in plan.changes:
        _carry_out(store, change)
    store.register_files.forget()


def _raise_if_open(store: FileStore) -> None:
    for name in store.partitions(restoring=True):
        if has_live_owner(store.partition(name)):
            raise PartitionBusy(
                f"log/{name} is open in another process. Close it there (`everlog down` stops a cluster), and run the "
                "command again. Nothing was changed."
            )


def _carry_out(store: FileStore, change: RegisterChange) -> None:
    register, disk = store.register_files, store.disk
    with storage("repair the register in", store.root / "agents"):
        for folder in change.folders:
            disk.make_dirs(folder)
        if change.free is not None:
            give_up_marks(store.partition(change.free.name))  # first: a repeated call plans this as long as it is left
            publish(disk, change.free / GIVEN_UP, b"", token())
        if change.publish or change.mark:
            folder = register.path_of(change.stream).parent
            disk.make_dirs(folder)
            if change.mark:
                register.mark(change.stream)
                disk.sync_dir(folder)
        for path, ending in change.aside:
            _put_aside(disk, path, ending)
        for assignment in change.publish:
            path = register.path_of(assignment.agent_id, assignment.epoch)
            publish(disk, path, encode_assignments([assignment]), token())


def _put_aside(disk: Disk, path: Path, ending: str) -> None:
    """Keep a file under its name with that ending, durably, and free its name. Do nothing if the file is missing."""
    if not disk.exists(path):
        return
    for number in itertools.count(1):
        kept = path.with_name(path.name + ending + (f".{number}" if number > 1 else ""))
        try:
            disk.link(path, kept)
        except FileExistsError:
            if disk.read(kept) != disk.read(path):  # another file that an earlier repair has kept
                continue
        break
    disk.sync_dir(path.parent)
    remove_if_there(disk, path)
    disk.sync_dir(path.parent)
