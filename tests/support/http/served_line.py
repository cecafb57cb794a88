"""A command line whose commands all go to a server, which runs in a thread in front of the same store."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from everlog.actors.loop_thread import LoopThread
from everlog.actors.ports.ports import Ports
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.bootstrap import tools_in
from everlog.interfaces.common.server_choice import FILES_ONLY, WITHOUT_STORE
from everlog.interfaces.http.core import jobs
from tests.support.cli.command_line import Line
from tests.support.http.served_store import served

OF_THE_SERVER = ("--tools", "--shards")
"""Options that a test gives to a command, and that the server gets."""


class ServedLine(Line):
    """The command line with --server. The server begins with the first command."""

    name = "script"

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], *, beside: bool) -> None:
        """`beside`: commands that a server does not carry out are run on the store, while no server runs; and options
        of the process of the agents are given to the server.
        """
        super().__init__(root, capsys)
        self._beside = beside
        self._options: dict[str, list[str]] = {}
        self._running = ExitStack()
        self.address = ""

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        """Run a command against the server. Return exit code, stdout and stderr."""
        if self._beside:
            if not {argv[0], " ".join(argv[:2])}.isdisjoint(FILES_ONLY | WITHOUT_STORE):
                self.renew()
                return super().__call__(*argv)
            argv = self._without_options(argv)
        self._serve()
        self._capsys.readouterr()
        code = main(["--server", self.address, *argv], world=self.world)
        out, err = self._capsys.readouterr()
        return code, out, err

    def _without_options(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command without options of the server, which begins again if these are other ones."""
        words, options = list(argv), dict(self._options)
        for name in OF_THE_SERVER:
            given = []
            while name in words:
                at = words.index(name)
                given.append(words[at + 1])
                del words[at : at + 2]
            options[name] = given or options.get(name, [])
        if options != self._options:
            self.renew()
            self._options = options
        return tuple(words)

    def _serve(self) -> None:
        if not self.address:
            loop = self._running.enter_context(LoopThread())
            ports = Ports(clock=self.clock, ids=self._ids)
            # The clock of the test advances at each reading: silence in it does not mean that a job is lost.
            self._running.enter_context(patch.object(jobs, "LOST_US", 2**60))
            tools = [tool for path in self._options.get("--tools", ()) for tool in tools_in(Path(path))]
            shards = next(iter(map(int, self._options.get("--shards", ()))), None)
            opening = served(self.root, self, ports=ports, idle_s=1000, timers=True, tools=tools, shards=shards)
            self.address = self._running.enter_context(loop.holding(opening)).address

    def renew(self) -> None:
        """Stop the server: the next command begins another one, with the environment of that moment."""
        self._running.close()
        self.address = ""

    async def ask(self, request: bytes, **how: object) -> object:
        """Answer as the script does that the test has set by now."""
        return await self.script.ask(request, **how)

    async def close(self) -> None:
        """Close nothing."""


@contextmanager
def served_line(root: Path, capsys: pytest.CaptureFixture[str], *, beside: bool = False) -> Iterator[ServedLine]:
    """Return a command line with a server while the block runs. `beside`: see `ServedLine`."""
    line = ServedLine(root, capsys, beside=beside)
    try:
        yield line
    finally:
        line.renew()
