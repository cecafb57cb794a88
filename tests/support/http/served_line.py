"""A command line whose commands all go to a server, which runs in a thread in front of the same store.

Each test has a server of its own, made with the application, the protocol and the client that users have. To keep one
for many tests would save the 20 ms that the start of one takes in a process that has started one before.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from everlog.actors.loop_thread import LoopThread
from everlog.actors.ports.ports import Ports
from everlog.events import EverlogError
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.bootstrap import tools_in
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.exits import FAILED
from everlog.interfaces.common.server_choice import FILES_ONLY, WITHOUT_STORE
from everlog.interfaces.http.core import jobs
from tests.support.cli.command_line import Line
from tests.support.http.served_store import served

OF_THE_SERVER = ("--tools", "--shards", "--base-url")
"""Options that a test gives to a command, and that the server gets."""


class ServedLine(Line):
    """The command line with --server. The server begins with the first command."""

    name = "script"

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], *, beside: bool, runtime: str = "local") -> None:
        """`beside`: commands that a server does not carry out are run on the store, while no server runs; and options
        of the process of the agents are given to the server. `runtime`: where the agents run.
        """
        self._running = ExitStack()
        self._runtime = runtime
        self._beside = beside
        self._options: dict[str, list[str]] = {}
        super().__init__(root, capsys)

    @property
    def root(self) -> Path:  # type: ignore[override]
        """Folder of the store. The server stops when a test asks for it, so that the test can open the files."""
        self.release()
        return self._folder

    @root.setter
    def root(self, folder: Path) -> None:
        self.release()
        self._folder = folder

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        """Run a command against the server. Return exit code, stdout and stderr."""
        if self._beside:
            if _is_beside(argv):
                self.release()
                return super().__call__(*argv)
            argv = self._without_options(argv)
        self._capsys.readouterr()
        try:
            self._serve()
        except EverlogError as error:  # as `everlog serve` does
            complain(error)
            self._options = {}
            return (FAILED, *self._capsys.readouterr())
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
            self.release()
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
            url = next(iter(self._options.get("--base-url", ())), "")
            opening = served(
                self._folder, self, ports=ports, real=self.real, runtime=self._runtime, idle_s=1000, timers=True,
                tools=tools, shards=shards, base_url=url,
            )  # fmt: skip
            self.address = self._running.enter_context(loop.holding(opening)).address

    def release(self) -> None:
        """Stop the server, which has the store open: the next command begins another one."""
        self._running.close()
        self.address = ""

    async def ask(self, request: bytes, **how: object) -> object:
        """Answer as the script does that the test has set by now."""
        return await self.script.ask(request, **how)

    async def close(self) -> None:
        """Close nothing."""


def _is_beside(argv: tuple[str, ...]) -> bool:
    """Return True for a command that a server does not carry out."""
    words = [word for word in argv if word != "--json"] or [""]
    names = FILES_ONLY | WITHOUT_STORE | {"models test"}
    of_whole_store = (words[0] == "restore" and Path(words[1]).is_dir()) or (words[0] == "export" and "--all" in words)
    return of_whole_store or not names.isdisjoint({words[0], " ".join(words[:2])})


@contextmanager
def served_line(
    root: Path, capsys: pytest.CaptureFixture[str], *, beside: bool = False, runtime: str = "local"
) -> Iterator[ServedLine]:
    """Return a command line with a server while the block runs. `beside`, `runtime`: see `ServedLine`."""
    line = ServedLine(root, capsys, beside=beside, runtime=runtime)
    try:
        yield line
    finally:
        line.release()
