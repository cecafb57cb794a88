"""How much memory a process keeps for itself: what matters where there is a process for each agent."""

import ctypes
import gc
import sys
from pathlib import Path

ARENA_MAX, MMAP_THRESHOLD = -8, -3
"""Parameters of glibc's mallopt: how many heaps, and from which size on a block is given back at once."""
BLOCK_BYTES = 64 * 1024
PURGE = b"arena.4096.purge"
"""What jemalloc is told to let go of what nobody uses, in all of its arenas."""


def minimize_reserves() -> None:
    """Keep no memory in reserve: one heap for all threads, and Arrow's memory from it instead of a pool of its own.

    Nothing here is hot enough to notice. A C library other than glibc is left as it is.
    """
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(ARENA_MAX, 1)
    mallopt(MMAP_THRESHOLD, BLOCK_BYTES)


def give_back() -> None:
    """Return memory that is not used to the system. A C library other than glibc does so by itself, or not."""
    purge_duckdb()
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return
    trim(0)


def purge_duckdb() -> bool:
    """Return what DuckDB keeps in reserve: it brings an allocator of its own, which a trim does not reach.

    False where it is not loaded, or was built with another allocator.
    """
    library = sys.modules.get("_duckdb")
    if library is None or library.__file__ is None:
        return False
    try:
        control = ctypes.CDLL(library.__file__).duckdb_je_mallctl
    except (AttributeError, OSError):
        return False
    return not control(PURGE, None, None, None, ctypes.c_size_t(0))


def roomy() -> None:
    """Look for garbage in cycles seldom: thousands of agents are a million objects, and hardly any of them is some.

    As often as is usual, it costs a fifth of a busy host's time.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


def own_memory_bytes() -> int:
    """What this process shares with no other; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
