"""The `everlog` command: reads the arguments, calls the command, turns errors into a paragraph and an exit code.

0: done. 1: it failed, and stderr says why in one paragraph. 2: bad usage. 130: Ctrl-C. 141: nobody reads the output.
An exception that is no EverlogError is our bug and propagates.
"""

import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from events import EverlogError

from .arguments import parser
from .complaints import complain

if TYPE_CHECKING:
    from .contract import World

__all__ = ["main"]

FAILED, MISUSED, INTERRUPTED, UNREAD = 1, 2, 130, 141

Handler = Callable[[Namespace, "World"], int]


def main(argv: Sequence[str] | None = None, world: "World | None" = None) -> int:
    """Run the command line and return the exit code; `world` is what a test brings instead of the real one."""
    try:
        return _run(_parsed(argv), world)
    except SystemExit as error:  # argparse: 0 after --help, 2 after bad usage
        return error.code if isinstance(error.code, int) else MISUSED
    except EverlogError as error:
        complain(error)
        return FAILED
    except KeyboardInterrupt:
        complain("interrupted; what was said is kept.")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD


def _parsed(argv: Sequence[str] | None) -> Namespace:
    """The arguments. The one text of a command may come after its options: argparse alone takes it only before."""
    commands = parser()
    args, rest = commands.parse_known_args(argv)
    if len(rest) == 1 and not rest[0].startswith("-"):
        empty = next((name for name in ("text", "query") if getattr(args, name, "") is None), None)
        if empty is not None:
            setattr(args, empty, rest.pop())
    if rest:
        commands.error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _run(args: Namespace, world: "World | None") -> int:
    from .contract import World

    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    module, name = args.handler.split(":")
    handler = cast("Handler", getattr(importlib.import_module(f"interfaces.{module}"), name))
    code = handler(args, world or World())
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
