"""Find the files and folders that users other than the owner may read, write or enter."""

import os
import stat
from pathlib import Path


def open_paths(root: Path, denied: int = 0o077) -> dict[str, str]:
    """Return the mode of `root`, and of each path below it, that has a bit of `denied`: by its path from `root`."""
    found = {}
    for folder, _, names in os.walk(root):
        for path in (Path(folder), *(Path(folder) / name for name in names)):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & denied and not path.is_symlink():
                found[str(path.relative_to(root))] = oct(mode)
    return found
