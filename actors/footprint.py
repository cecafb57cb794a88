"""How much memory a process keeps for itself: what matters where there is a process for each agent."""

import ctypes
import gc


def shrink() -> None:
    """Give back what starting up left behind: a third of what an agent's process costs beside the interpreter.

    Python's garbage goes now instead of some day, and the C library hands its free pages back, where it knows how to.
    """
    gc.collect()
    gc.freeze()  # what lives now lives as long as the process: later collections need not look at it
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):  # another C library than glibc
        return
    trim(0)
