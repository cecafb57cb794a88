"""P10 against the real system: refused writes, creations and remounts, in a process of their own."""

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CWD = Path(__file__).parents[3]
MOUNT = 'mount -t tmpfs -o size=2m none "$0" && exec "$@"'
ALONE = ["unshare", "--user", "--map-root-user", "--mount"]


@functools.cache
def may_mount(folder: str) -> bool:
    """Return True if this system lets a process have mounts of its own."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "sh", "-c", MOUNT, folder, "true"], capture_output=True, check=False).returncode == 0


def starved(what: str, folder: Path) -> dict[str, Any]:
    """Return the report of the starving process."""
    command = [sys.executable, "-m", "tests.support.store.starved_appender", what, str(folder)]
    if what in ("space", "remount"):
        if not may_mount(str(folder)):
            pytest.skip("this system gives a process no mounts of its own (unshare --user --mount)")
        command = [*ALONE, "sh", "-c", MOUNT, str(folder), *command]
    done = subprocess.run(command, cwd=CWD, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("what", "said", "cure"),
    [
        ("space", "No space left on device", "Make room and open the log again"),
        ("remount", "Read-only file system", "Mount it for writing"),
        ("size", "File too large", "Remove the cause, then open the log again"),
        ("files", "Too many open files", "Raise the limit (ulimit -n)"),
    ],
)
def test_p10_refusals_of_the_system_are_clean_and_heal(what: str, said: str, cure: str, tmp_path: Path) -> None:
    """The operation fails with cause and cure, and so do the next ones; once the cause is removed, all works without
    repair.
    """
    told = starved(what, tmp_path)
    first, second, *_ = told["errors"]
    assert first.startswith("StoreError: could not ")
    assert str(tmp_path) in first
    assert said in first
    assert cure in first
    assert said in second
    assert second.startswith("StoreError: " if what == "remount" else "Poisoned: ")
    assert told["kept"]
    assert told["check"] == []
