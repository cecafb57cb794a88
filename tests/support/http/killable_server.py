"""An `everlog serve` in a process of its own."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]


class KillableServer:
    """An `everlog serve` on a port that stays the same, which can be killed and started again."""

    def __init__(self, store: Path, options: Sequence[str] = ()) -> None:
        self._store, self._options = store, options
        # Held without listening: no other process gets the port before the server starts, or while it is dead.
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        self.port = int(self._held.getsockname()[1])
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        command = [sys.executable, "-m", "everlog.interfaces.cli.main", "--store", str(self._store), "serve",
                   "--port", str(self.port), "--runtime", "local", "--placement", "shared", "--json",
                   *self._options]  # fmt: skip
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["address"].endswith(f":{self.port}")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the server, by default without a chance to do anything."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.communicate(timeout=60)
        self.process = None

    def __del__(self) -> None:
        self._held.close()

    @property
    def address(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.port}"
