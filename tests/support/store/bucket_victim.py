"""A process to be killed: it owns an agent of a store in a bucket, and prints the id of each event that is
acknowledged.

    python -m tests.support.store.bucket_victim FOLDER LIFE
"""

import os
import sys
from pathlib import Path

from everlog.events import uuid7
from everlog.store import FileStore
from tests.contract.log_contract import NOW, Drafts


def main(folder: str, life: str) -> None:
    """Append to the agent until this process is killed."""
    clock = iter(range(NOW + int(life) * 1_000_000_000, 2**62, 1000))
    log = FileStore(Path(folder), lambda: next(clock)).open("sam", "victim", take_over=True)
    os.write(1, b"open\n")
    for number in range(10_000):
        at = next(clock)
        draft = Drafts(at).one(f"{life} {number}", event_id=uuid7(at, int(life) * 100_000 + number))
        log.append("sam", log.head("sam").seq, [draft])
        os.write(1, f"{draft.event_id}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
