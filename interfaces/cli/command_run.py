"""Run one command line: from its words to an exit code. An exception that is no EverlogError propagates.

Used by `main` and by the tour. Handlers are imported only when their command runs, so that the others start fast.
"""

import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from everlog.events import EverlogError
from everlog.interfaces.cli.command_parser import parser
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.exits import FAILED, PIPE_CLOSED, USAGE_ERROR, interruptible

if TYPE_CHECKING:
    from everlog.interfaces.common.front_end import CommandEnvironment

NOTHING_LOST = "nothing is lost."
"""Message for Ctrl-C during a command that writes, if the command itself has none."""

_SHOWN, _KEEP_BYTES = "backslashreplace", "surrogateescape"
"""Error handlers of the streams: output escapes characters that it cannot encode; input keeps bytes that are no text,
and `input_text.check_text` rejects them.
"""

CommandHandler = Callable[[Namespace, "CommandEnvironment"], int]


def run(argv: Sequence[str] | None, world: "CommandEnvironment | None") -> int:
    """Run the command and return its exit code.

    Raises KeyboardInterrupt for Ctrl-C, with what the user should know as its text; empty for a command that only
    reads.
    """
    try:
        return _run(parse(argv), world)
    except SystemExit as error:  # argparse: 0 after --help, 2 after bad usage
        return error.code if isinstance(error.code, int) else USAGE_ERROR
    except EverlogError as error:
        complain(error)
        return FAILED
    except BrokenPipeError:
        # Point stdout at the null device: Python flushes stdout at its exit, and would print the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED


def parse(argv: Sequence[str] | None) -> Namespace:
    """Return the arguments. Raises SystemExit as argparse does.

    The one text of a command, and paths, may come after its options: argparse alone takes them only before.
    """
    words = sys.argv[1:] if argv is None else argv
    args, rest = parser(words).parse_known_args(words)
    if len(rest) == 1 and not rest[0].startswith("-"):
        empty = next((name for name in ("text", "query") if getattr(args, name, "") is None), None)
        if empty is not None:
            setattr(args, empty, rest.pop())
    if not any(word.startswith("-") for word in rest) and hasattr(args, "paths"):
        args.paths += rest
        rest = []
    if rest:
        args.fail(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _run(args: Namespace, world: "CommandEnvironment | None") -> int:
    from everlog.interfaces.common.front_end import CommandEnvironment

    for stream, errors in ((sys.stdout, _SHOWN), (sys.stderr, _SHOWN), (sys.stdin, _KEEP_BYTES)):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=errors)
    module, name = args.handler.split(":")
    handler = cast("CommandHandler", getattr(importlib.import_module(f"everlog.interfaces.{module}"), name))
    try:
        with interruptible():
            code = handler(args, world or CommandEnvironment())
            sys.stdout.flush()
    except KeyboardInterrupt as error:
        if args.reads_only or str(error):
            raise
        raise KeyboardInterrupt(NOTHING_LOST) from error
    return code
