"""A process that forks children, which follow or rebuild an archive and are killed at a step; run it with `python -m`.

It reads lines `<what> <step> <root>` and answers each with the step at which the child was killed, or `done`. Children
are forked from this process because LanceDB is imported here and was never used.
"""

import os
import signal
import sys
import traceback
import warnings
from pathlib import Path

import lancedb

from everlog.store import FileStore
from everlog.store.archive import Archive, archive_writer, rebuild_table
from tests.support.store.archive_world import NOW, Hashed

archive_writer.COMPACT_WRITES = 2
rebuild_table.REBUILD_ROWS = 7


def act(what: str, number: int, root: Path, told: int) -> None:
    """Follow or rebuild, and die at the step with that number, counted from 1."""
    steps = 0

    def step(name: str) -> None:
        nonlocal steps
        steps += 1
        if steps == number:
            os.write(told, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    archive = Archive(FileStore(root, lambda: NOW), Hashed(), step=step)
    if what == "rebuild":
        archive.rebuild()
    else:
        archive.follow()
    os.write(told, b"done")


def main() -> None:
    assert lancedb.__version__
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        what, number, root = line.rstrip("\n").split(" ", 2)
        heard, told = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                act(what, int(number), Path(root), told)
            finally:
                if sys.exc_info()[0]:
                    os.write(told, " ".join(traceback.format_exc().split("\n"))[-3000:].encode())
                os._exit(0)
        os.close(told)
        os.waitpid(pid, 0)
        print(os.read(heard, 4000).decode() or "failed", flush=True)
        os.close(heard)


if __name__ == "__main__":
    main()
