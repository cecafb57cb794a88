"""Measure and reduce the memory of a process, which matters where each agent has a process.

Used by the Ray actors, by shards when they are at rest, and by `everlog fleet` for its figures.
"""

import ctypes
import gc
import sys
from pathlib import Path

ARENA_MAX, MMAP_THRESHOLD = -8, -3
"""Parameters of glibc's mallopt: the number of heaps, and the size from which a freed block is returned at once."""
BLOCK_BYTES = 64 * 1024
PURGE = b"arena.4096.purge"
"""Command that makes jemalloc return the unused memory of all arenas."""


def minimize_reserves() -> None:
    """Keep no memory in reserve: use one heap for all threads, and allocate Arrow's memory from it instead of from a
    pool.

    Nothing here is fast enough to notice the cost. A C library other than glibc is left as it is.
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
    """Return unused memory to the system, also that of garbage in cycles, which takes long to find."""
    gc.collect()  # what is in cycles would otherwise stay for hours; see `collect_garbage_seldom`
    release_reserves()


def release_reserves() -> None:
    """Return free memory to the system. Without glibc, only that of DuckDB and Arrow is returned."""
    purge_duckdb()
    release_arrow()
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return
    trim(0)


def purge_duckdb() -> bool:
    """Return the memory that DuckDB holds in reserve: it has an allocator of its own, which `malloc_trim` does not
    reach.

    Return False if DuckDB is not loaded, or was built with another allocator.
    """
    library = sys.modules.get("_duckdb")
    if library is None or library.__file__ is None:
        return False
    try:
        control = ctypes.CDLL(library.__file__).duckdb_je_mallctl
    except (AttributeError, OSError):
        return False
    return not control(PURGE, None, None, None, ctypes.c_size_t(0))


def release_arrow() -> None:
    """Return the memory that Arrow holds in reserve: parts of it use the pool that it began with, whatever
    `set_memory_pool` says.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and "mimalloc" in arrow.supported_memory_backends():
        arrow.mimalloc_memory_pool().release_unused()


def collect_garbage_seldom() -> None:
    """Run the cyclic garbage collector seldom, for a process with thousands of agents.

    They are a million objects, of which hardly any is garbage. With the default thresholds the collector takes a fifth
    of a busy host's time.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


def own_memory_bytes() -> int:
    """Return the bytes of memory that this process shares with no other; 0 if the system does not report them."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
