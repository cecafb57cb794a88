"""Limit the memory of a process that runs a query over all agents, and end it cleanly on SIGTERM.

Used by `everlog sql`. The limit is never lifted: the tour, which runs commands in its own process, replaces
`hold_memory`.
"""

import re
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from everlog.events import BadInput

RESERVED_MB = 2048
"""Memory besides the query's own: unsealed records, rows in Python, and address space that threads reserve."""
MEMORY_FACTOR = 2
"""Multiple of the query's memory that the process may allocate, plus `RESERVED_MB`: DuckDB allocates beyond its own
limit.
"""
TERMINATED = 128 + signal.SIGTERM
_DATA = re.compile(r"^VmData:\s+(\d+) kB", re.MULTILINE)


def hold_memory(memory_mb: int) -> None:
    """Limit the data segment of this process to what a query with `memory_mb` should need. A lower limit is kept."""
    used = _DATA.search(Path("/proc/self/status").read_text())
    assert used is not None
    most = int(used[1]) * 1024 + (MEMORY_FACTOR * memory_mb + RESERVED_MB) * 1024 * 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    least = min((limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY), default=most)
    resource.setrlimit(resource.RLIMIT_DATA, (min(least, most), hard))


@contextmanager
def cleaning_up_on_exit() -> Iterator[None]:
    """Turn SIGTERM and lack of memory into exceptions, so that temporary folders are removed.

    Raises SystemExit for SIGTERM and BadInput for lack of memory.
    """
    limits_raised: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        limits_raised.append(number)
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except KeyboardInterrupt:  # DuckDB raises it for any signal that interrupts a query
        if limits_raised:
            raise SystemExit(TERMINATED) from None
        raise
    except MemoryError as error:
        raise BadInput(
            "The query needs more memory than it may use. Nothing was changed. Ask for fewer columns or rows, or raise "
            "the limit (--memory)."
        ) from error
    finally:
        signal.signal(signal.SIGTERM, before)
