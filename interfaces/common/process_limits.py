"""How a question to all agents ends before it harms: a limit of memory for the process, and SIGTERM as a tidy end."""

import re
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from everlog.events import BadInput

RESERVED_MB = 2048
"""Room beside what the query may use: what is not sealed, rows, and what threads reserve and do not touch."""
TIMES = 2
"""What DuckDB allocates beside its own limit is held to this multiple of it, and `RESERVED_MB`."""
TERMINATED = 128 + signal.SIGTERM
_DATA = re.compile(r"^VmData:\s+(\d+) kB", re.MULTILINE)


def hold_memory(memory_mb: int) -> None:
    """From now on this process may allocate what a query with `memory_mb` should need. Never raises a limit."""
    used = _DATA.search(Path("/proc/self/status").read_text())
    assert used is not None
    most = int(used[1]) * 1024 + (TIMES * memory_mb + RESERVED_MB) * 1024 * 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    least = min((limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY), default=most)
    resource.setrlimit(resource.RLIMIT_DATA, (min(least, most), hard))


@contextmanager
def ending_tidily() -> Iterator[None]:
    """SIGTERM and want of memory leave no folder behind. Raises SystemExit for the one and BadInput for the other."""
    told: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except KeyboardInterrupt:  # DuckDB's word for any signal that ends a query
        if told:
            raise SystemExit(TERMINATED) from None
        raise
    except MemoryError as error:
        raise BadInput(
            "The query needs more memory than it may have. Nothing was changed. Ask for fewer columns or rows, or give "
            "it more (--memory)."
        ) from error
    finally:
        signal.signal(signal.SIGTERM, before)
