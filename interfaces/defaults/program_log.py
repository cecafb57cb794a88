"""Write the log of the program: lines of JSON on stderr or in a file, at the level of --log or EVERLOG_LOG.

Used by `cli.command_run` around every command. Code of every room writes with Python's `logging`, to loggers below
`everlog`; a program that imports everlog gets the same lines from its own handlers. A line names agents, models,
counts and times. It never quotes a message, a memory or a reply, at any level, and secrets are removed.
"""

import logging
import os
import platform
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from everlog.actors.ports.loggers import ROOT
from everlog.events import BadInput, StoreError
from everlog.interfaces.defaults.default_keys import BY_NAME

if TYPE_CHECKING:
    from everlog.actors.cluster.structured_log import LogLevel
    from everlog.actors.ports.effects import Clock

LEVEL_VARIABLE, FILE_VARIABLE = "EVERLOG_LOG", "EVERLOG_LOG_FILE"
LEVELS: "Mapping[int, LogLevel]" = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
}


class JsonHandler(logging.Handler):
    """Writes records as lines of JSON, in the shape of the notes of a cluster."""

    def __init__(self, out: IO[str] | None, clock: "Clock", environment: Mapping[str, str]) -> None:
        """Create the handler. `out` None: stderr, as it is when a line is written. Secrets of `environment` never
        appear in a line.
        """
        super().__init__()
        self._out, self._clock, self._environment = out, clock, environment

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        from everlog.actors.cluster.structured_log import StructuredLogger

        write = StructuredLogger(
            record.name.removeprefix(f"{ROOT}."), platform.node(), clock=self._clock, environment=self._environment,
            out=lambda: self._out or sys.stderr,
        )  # fmt: skip
        write(record.getMessage(), LEVELS.get(record.levelno, "error"))


def level_of(args: Namespace, environment: Mapping[str, str]) -> str:
    """Return the level of --log, else EVERLOG_LOG; empty for no log. Raises BadInput for an unknown level."""
    named = getattr(args, "log_level", None) or environment.get(LEVEL_VARIABLE, "").strip().lower()
    known = BY_NAME["log"].choices
    if named and named not in known:
        raise BadInput(f"There is no log level {named!r} (--log, {LEVEL_VARIABLE}): it is {', '.join(known)}.")
    return str(named)


@contextmanager
def logged(args: Namespace, clock: "Clock", environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Write the log of the program while the block runs, if a level is set. Raises BadInput, StoreError.

    Without a level nothing is written, also if a library has given the root logger a handler.
    """
    level = level_of(args, environment)
    out = _opened(environment.get(FILE_VARIABLE, "")) if level else None
    logger = logging.getLogger(ROOT)
    before = logger.level, logger.propagate
    handler = JsonHandler(out, clock, environment) if level else logging.NullHandler()
    logger.addHandler(handler)
    logger.propagate = False
    if level:
        logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
        if out is not None:
            out.close()


def _opened(path: str) -> IO[str] | None:
    """Open the file of the log for appending, readable for its owner only; None for stderr. Raises StoreError."""
    if not path:
        return None
    try:
        fd = os.open(Path(path).expanduser(), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"The log of the program cannot be written to {path} ({FILE_VARIABLE}): {error.strerror}. Name another "
            "file."
        ) from error
    return os.fdopen(fd, "a", encoding="utf-8")
