"""One run of the command line: from what was typed to an exit code. An exception that is no EverlogError propagates."""

import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from everlog.events import EverlogError
from everlog.interfaces.cli.command_parser import parser
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.exits import FAILED, MISUSED, UNREAD, interruptible

if TYPE_CHECKING:
    from everlog.interfaces.common.front_end import CommandEnvironment

_SHOWN, _KEPT = "backslashreplace", "surrogateescape"
"""What becomes of characters that cannot be written, and of bytes that are no text: `checked` refuses those."""

CommandHandler = Callable[[Namespace, "CommandEnvironment"], int]


def run(argv: Sequence[str] | None, world: "CommandEnvironment | None") -> int:
    """The exit code. Raises KeyboardInterrupt, however the Ctrl-C was told."""
    try:
        with interruptible():
            return _run(parse(argv), world)
    except SystemExit as error:  # argparse: 0 after --help, 2 after bad usage
        return error.code if isinstance(error.code, int) else MISUSED
    except EverlogError as error:
        complain(error)
        return FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD


def parse(argv: Sequence[str] | None) -> Namespace:
    """Return the arguments. Raises SystemExit as argparse does.

    The one text of a command, and paths, may come after its options: argparse alone takes them only before.
    """
    words = sys.argv[1:] if argv is None else argv
    commands = parser(words)
    args, rest = commands.parse_known_args(words)
    if len(rest) == 1 and not rest[0].startswith("-"):
        empty = next((name for name in ("text", "query") if getattr(args, name, "") is None), None)
        if empty is not None:
            setattr(args, empty, rest.pop())
    if not any(word.startswith("-") for word in rest) and hasattr(args, "paths"):
        args.paths += rest
        rest = []
    if rest:
        commands.error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _run(args: Namespace, world: "CommandEnvironment | None") -> int:
    from everlog.interfaces.common.front_end import CommandEnvironment

    for stream, errors in ((sys.stdout, _SHOWN), (sys.stderr, _SHOWN), (sys.stdin, _KEPT)):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=errors)
    module, name = args.handler.split(":")
    handler = cast("CommandHandler", getattr(importlib.import_module(f"everlog.interfaces.{module}"), name))
    code = handler(args, world or CommandEnvironment())
    sys.stdout.flush()
    return code
