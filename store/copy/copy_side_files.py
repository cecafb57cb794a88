"""Copy the small files beside the logs: keys, descriptions of models, files of servers, webhooks, labels and the like.

Whatever else is in the folder of a store belongs to one machine, or can be derived again.
"""

from pathlib import Path

from everlog.store.check.check_side_files import side_paths
from everlog.store.stores.side_files import SideFiles


def copy_side_files(source: SideFiles, start: Path, target: SideFiles, end: Path) -> int:
    """Make the side files below `end` those below `start`. Return their number. Raises StoreError."""
    copied = set()
    for path in side_paths(source, start):
        found = source.read(start / path)
        if found is None:  # a server has removed it just now
            continue
        copied.add(path)
        before = target.read(end / path)
        if before is None or before[0] != found[0]:
            target.write(end / path, found[0])
    for path in set(side_paths(target, end)) - copied:  # of an earlier attempt
        target.remove(end / path)
    return len(copied)
