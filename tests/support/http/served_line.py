"""A command line whose commands all go to a server, which runs in a thread in front of the same store."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from everlog.actors.loop_thread import LoopThread
from everlog.actors.ports.ports import Ports
from everlog.interfaces.cli.main import main
from tests.support.cli.command_line import Line
from tests.support.http.served_store import served


class ServedLine(Line):
    """The command line with --server. The server begins with the first command."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], stack: ExitStack) -> None:
        super().__init__(root, capsys)
        self._stack = stack
        self.address = ""

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        """Run a command against the server. Return exit code, stdout and stderr."""
        self._serve()
        self._capsys.readouterr()
        code = main(["--server", self.address, *argv], world=self.world)
        out, err = self._capsys.readouterr()
        return code, out, err

    def _serve(self) -> None:
        if not self.address:
            loop = self._stack.enter_context(LoopThread())
            ports = Ports(clock=self.clock, ids=self._ids)
            opening = served(self.root, self, ports=ports, idle_s=1000, timers=True)
            self.address = self._stack.enter_context(loop.holding(opening)).address

    name = "script"

    async def ask(self, request: bytes, **how: object) -> object:
        """Answer as the script does that the test has set by now."""
        return await self.script.ask(request, **how)

    async def close(self) -> None:
        """Close nothing."""


@contextmanager
def served_line(root: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[ServedLine]:
    """Return a command line with a server while the block runs."""
    with ExitStack() as stack:
        yield ServedLine(root, capsys, stack)
