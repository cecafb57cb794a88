"""Run the commands of the tour: in this process, or for the crash in a process of its own, against the tour's store.

Used by `tour_command` and `tour_runner`. No command may reach the user's own store, models or cluster: see `isolated`.
"""

import contextlib
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path

from everlog.events import StoreError
from everlog.interfaces.cli.command_run import run
from everlog.interfaces.common.front_end import LineReader
from everlog.interfaces.tour.slow_process import ASKED
from everlog.interfaces.tour.tour_clock import TourClock, TourIds, environment
from everlog.interfaces.tour.tour_steps import FILES, KILL
from everlog.store import FileStore

JOB_IDS = 1000
"""Ids that are set aside for the process in the background; its own ids begin after those of this process."""
COLUMNS = 80
"""Width of the tour, in characters."""
SHARDS = 2
"""Shards of the tour's store: a fixed number, because the default depends on the machine."""
STORE = "store"
"""Name of the store in the folder of the tour."""

_QUOTES = str.maketrans("\u201c\u201d\u2018\u2019", "\"\"''")
"""Typographic quotation marks, which come with text that is pasted."""

_OURS = ("EVERLOG_", "OPENAI_", "RAY_")


@contextlib.contextmanager
def isolated(folder: Path, *, interactive: bool, environ: MutableMapping[str, str] = os.environ) -> Iterator[None]:
    """Make `folder` the working folder and its store the store of every command; restore both at the end.

    Every variable that could lead a command to the store, the models or the cluster of the user is removed meanwhile.
    Without a reader the output is as wide as the screen of the tour.
    """
    before = dict(environ)
    for name in before:
        if name.startswith(_OURS):
            del environ[name]
    environ.update({"EVERLOG_STORE": str(folder / STORE), "EVERLOG_RUNTIME": "local", "EVERLOG_CONFIG": ""})
    if not interactive:
        environ["COLUMNS"] = str(COLUMNS)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        environ.clear()
        environ.update(before)


def words_of(line: str) -> list[str]:
    """Return the words of a command without `everlog`; `&` is one of them. Raises ValueError for an open quote."""
    plain = line.translate(_QUOTES).rstrip()
    words = [*shlex.split(plain.removesuffix("&")), *plain.endswith("&") * ["&"]]
    return words[1:] if words[:1] == ["everlog"] else words


class TourShell:
    """Runs commands in `folder`, inside `isolated`."""

    def __init__(self, folder: Path, ask: LineReader = input) -> None:
        self._folder = folder
        self._clock = TourClock()
        self._ids = TourIds()
        self._world = environment(self._clock, self._ids, ask)
        self._job: subprocess.Popen[bytes] | None = None
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        FileStore.create(folder / STORE, self._clock.now, self._ids.new(self._clock.now()), shards_new=SHARDS)

    def run(self, line: str) -> int:
        """Run a command and let it print. Return its exit code."""
        self._clock.advance()
        if line == KILL:
            return self._kill()
        words = words_of(line)
        return self._start(words[:-1]) if words[-1] == "&" else run(words, self._world)

    def wait(self) -> None:
        """Let the time of one command pass."""
        self._clock.advance()

    def run_quietly(self, line: str) -> None:
        """Run a command whose output is not shown."""
        nothing = io.StringIO()
        with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            self.run(line)

    def close(self) -> None:
        """End the process in the background, if one is running. Idempotent."""
        if self._job is not None:
            self._kill_job(self._job)
            self._job = None

    def _start(self, words: list[str]) -> int:
        """Start a command in the background, and wait until its model is asked."""
        self.close()
        arguments = [str(self._clock.now()), str(self._ids.count), *words]
        self._job = subprocess.Popen(
            [sys.executable, "-m", "everlog.interfaces.tour.slow_process", *arguments],
            cwd=self._folder,
            env=_with_path(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C at the tour's prompt is not meant for this process
        )
        self._ids.count += JOB_IDS
        assert self._job.stdout is not None
        if self._job.stdout.readline().strip().decode() != ASKED:
            self.close()
            raise StoreError(
                "The process of the tour could not be started. Run the tour again; nothing of yours changed."
            )
        print("[1] running: the message is on the disk, and the model is thinking", flush=True)
        return 0

    def _kill(self) -> int:
        """Kill the process in the background with signal 9."""
        if self._job is None:
            print("kill: %1: no such job", flush=True)
            return 1
        code = self._kill_job(self._job)
        self._job = None
        print(f"[1] killed by signal {-code}", flush=True)
        return 0

    @staticmethod
    def _kill_job(job: "subprocess.Popen[bytes]") -> int:
        """Return the exit code: minus the number of the signal."""
        with job:
            job.kill()
            return job.wait()


def _with_path(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child that finds everlog where this process has found it."""
    return {**environ, "PYTHONPATH": os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)}
