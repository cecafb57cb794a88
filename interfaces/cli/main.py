"""The `everlog` command.

0: done. 1: it failed, and stderr says why in one paragraph. 2: bad usage. 130: Ctrl-C. 141: nobody reads the output.
What is imported is imported inside, so that Ctrl-C is answered from the first moment on.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlog.interfaces.common.front_end import CommandEnvironment

__all__ = ["main"]

INTERRUPTED = 130


def main(argv: "Sequence[str] | None" = None, world: "CommandEnvironment | None" = None) -> int:
    """Run the command line and return the exit code; `world` is what a test brings instead of the real one."""
    said = "nothing is lost."
    try:
        from everlog.interfaces.cli.command_run import run

        return run(argv, world)
    except KeyboardInterrupt as error:
        said = str(error) or said
    from everlog.interfaces.common.error_output import complain

    complain(f"interrupted; {said}")
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
