"""The `everlog` command.

Entry point of the installed command. Everything else is imported inside `main`, so that Ctrl-C during the imports ends
without a traceback.

Exit codes: 0 done; 1 failed, and stderr says why in one paragraph; 2 bad usage; 130 Ctrl-C; 141 the reader of the
output has closed it.
"""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlog.interfaces.common.front_end import CommandEnvironment

__all__ = ["main"]

INTERRUPTED = 130
GARBAGE_THRESHOLDS = (100_000, 50, 50)
"""Thresholds of the garbage collector in a process of this command. Imports and the agents of a store are a million
objects, of which hardly any is garbage: with the usual thresholds the collector takes an eighth of the time.
"""
ARROW_ALLOCATOR = ("ARROW_DEFAULT_MEMORY_POOL", "system")
"""Variable that Arrow reads when it is loaded, and its value here unless the user has set it. Arrow's own pool keeps
what a thread has freed until that thread allocates again: 70 MB of a server at rest.
"""


def main(argv: "Sequence[str] | None" = None, world: "CommandEnvironment | None" = None) -> int:
    """Run the command line and return the exit code.

    Without `argv` the process belongs to this command, and its memory is set up. `world` replaces the real environment
    in tests.
    """
    if argv is None:
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        os.environ.setdefault(*ARROW_ALLOCATOR)
    try:
        # Imported inside `try`, so that Ctrl-C during the imports ends without a traceback too.
        from everlog.interfaces.cli.command_run import run

        return run(argv, world)
    except KeyboardInterrupt as error:
        said = str(error)
    if said:
        from everlog.interfaces.common.error_output import complain

        complain(f"interrupted; {said}")
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
