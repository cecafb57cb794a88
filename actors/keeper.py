"""The process that `everlog up` leaves behind: it keeps a local cluster running for a store, until SIGTERM.

python -m actors.keeper STORE
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from store import FileStore

from .addresses import Kept, kept_file, prepare
from .real import RealClock


async def keep(root: Path) -> None:
    """Start a cluster, say its address on stdout when it runs, and stop it at SIGTERM. Raises ClusterError."""
    store = FileStore(root, RealClock().now)
    prepare(root, "")
    from .cluster import joined

    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with joined(store, "") as runtime:
        await runtime.ready()
        path = kept_file(store.root)
        path.write_bytes(msgspec.json.encode(Kept(runtime.address, os.getpid(), os.environ.get("RAY_AUTH_MODE", ""))))
        try:
            print(runtime.address, flush=True)  # noqa: T201 - `everlog up` reads it
            await stopped.wait()
        finally:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    asyncio.run(keep(Path(sys.argv[1])))
