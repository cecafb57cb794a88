"""Look up the assignments of many agents in a bucket with few requests, many at the same time.

A listing of a folder tells the newest file of each of its agents, so that only files which are new are read. Used by
`Register`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from everlog.store.base.disk import Disk, storage
from everlog.store.base.names import hash_of
from everlog.store.streams.register_file import Assignment, damaged_error, decode_assignments

PathOf = Callable[[str, int], Path]
"""Returns the path of the assignment of an agent in an epoch."""


def newest_assignments(
    disk: Disk, names: Sequence[str], known: Mapping[str, Assignment], path_of: PathOf
) -> dict[str, Assignment]:
    """Return the newest assignments of agents, without those that have none. `known`: assignments that were read
    before, which may be outdated. Raises CorruptLog, StoreError.
    """
    epochs = _newest_epochs(disk, names, path_of)
    found = {name: known[name] for name in epochs if name in known and known[name].epoch == epochs[name]}
    # Each agent's own file is read: that of an agent which was registered with it may name a partition in which another
    # process was faster.
    paths = {name: path_of(name, epoch) for name, epoch in epochs.items() if name not in found}
    contents = {name: disk.beside(partial(disk.read, path)) for name, path in paths.items()}
    for name, path in paths.items():
        with storage("read", path):
            file = decode_assignments(contents[name](), path)
        assignment = file.assignments.get(hash_of(name))
        if assignment is None or assignment.epoch != epochs[name]:
            raise damaged_error(path, "it is of another agent, or of another move")
        found[name] = assignment
    return found


def _newest_epochs(disk: Disk, names: Sequence[str], path_of: PathOf) -> dict[str, int]:
    """Return the number of the newest file of each agent that has one."""
    folders: dict[Path, list[str]] = defaultdict(list)
    for name in names:
        folders[path_of(name, 1).parent].append(name)
    epochs: dict[str, int] = {}
    listings = {folder: disk.beside(partial(_names, disk, folder)) for folder in folders}
    for folder, inside in folders.items():
        there = listings[folder]()
        for name in inside:
            epoch = 0
            while path_of(name, epoch + 1).name in there:
                epoch += 1
            if epoch:
                epochs[name] = epoch
    return epochs


def _names(disk: Disk, folder: Path) -> set[str]:
    with storage("list the agents in", folder):
        try:
            return set(disk.names(folder))
        except FileNotFoundError:
            return set()
