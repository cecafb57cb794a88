"""Run one command line: from its words to an exit code. An exception that is no EverlogError propagates.

Used by `main` and by the tour. Handlers are imported only when their command runs, so that the others start fast.
"""

import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

from everlog.events import EverlogError
from everlog.interfaces.cli.command_parser import NAMELESS, parser, with_name
from everlog.interfaces.cli.standard_streams import discard_output, open_closed_streams, output_error, watch_output
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.exits import FAILED, PIPE_CLOSED, USAGE_ERROR, interruptible

if TYPE_CHECKING:
    from everlog.interfaces.common.front_end import CommandEnvironment
    from everlog.interfaces.common.server_choice import ChosenServer

NOTHING_LOST = "nothing is lost."
"""Message for Ctrl-C during a command that writes, if the command itself has none."""

LOST_OUTPUT = (
    "The output could not be written ({}). Make room, or print it elsewhere. Look before you repeat a command that "
    "writes: what it had done by then is kept (`everlog events NAME` shows it)."
)
"""Error for output that is lost; the reason is filled in."""

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
    open_closed_streams()
    watch_output()
    try:
        code = _code(argv, world)
        sys.stdout.flush()
        lost = output_error()
        if lost is not None:  # argparse ignores that its help cannot be written
            raise lost
        return code
    except EverlogError as error:
        complain(error)
        return FAILED
    except BrokenPipeError:
        discard_output()
        return PIPE_CLOSED
    except OSError as error:
        if error is not output_error():
            raise
        discard_output()
        complain(LOST_OUTPUT.format(error.strerror or error))
        return FAILED


def _code(argv: Sequence[str] | None, world: "CommandEnvironment | None") -> int:
    try:
        return _run(parse(argv), world)
    except SystemExit as error:  # argparse: 0 after --help, 2 after bad usage
        return error.code if isinstance(error.code, int) else USAGE_ERROR


def parse(argv: Sequence[str] | None) -> Namespace:
    """Return the arguments. Raises SystemExit as argparse does.

    The one text or file of a command, and paths, may come after its options: argparse alone takes them only before.
    """
    words = with_name(sys.argv[1:] if argv is None else argv)
    args, rest = parser(words).parse_known_args(words)
    if len(rest) == 1 and not rest[0].startswith("-"):
        empty = next((name for name in ("text", "query", "file") if getattr(args, name, "") is None), None)
        if empty is not None:
            setattr(args, empty, rest.pop())
    if not any(word.startswith("-") for word in rest) and hasattr(args, "paths"):
        args.paths += rest
        rest = []
    if args.json and not args.has_json:
        args.fail(f"`everlog {args.command}` has no --json" if args.command else "--json needs a command")
    if rest and getattr(args, "name", None) == NAMELESS and not any(word.startswith("-") for word in rest):
        args.fail(f"give NAME or --label, not both: {' '.join(rest)}")
    if rest:
        args.fail(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _run(args: Namespace, world: "CommandEnvironment | None") -> int:
    from everlog.interfaces.common.front_end import CommandEnvironment
    from everlog.interfaces.defaults.default_files import applied
    from everlog.interfaces.defaults.program_log import logged

    for stream, errors in ((sys.stdout, _SHOWN), (sys.stderr, _SHOWN), (sys.stdin, _KEEP_BYTES)):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=errors)
    if world is None:  # the process is ours; with a world it is that of a test or of the tour
        from everlog.store import restrict_process

        restrict_process()
    module, name = args.handler.split(":")
    handler = cast("CommandHandler", getattr(importlib.import_module(f"everlog.interfaces.{module}"), name))
    world = world or CommandEnvironment()
    args.chosen_server = _server(args, world)
    defaults = applied(args) if args.reads_defaults else nullcontext()
    try:
        with interruptible(), defaults, logged(args, world.clock):
            code = _logged_call(handler, args, world)
            sys.stdout.flush()
    except KeyboardInterrupt as error:
        if args.reads_only or str(error):
            raise
        raise KeyboardInterrupt(NOTHING_LOST) from error
    finally:
        if args.chosen_server is not None:
            args.chosen_server.close()
    return code


def _server(args: Namespace, world: "CommandEnvironment") -> "ChosenServer | None":
    """Return the server that the command talks to; None if it works on a folder. The usual command imports nothing for
    that.
    """
    if not (args.server or os.environ.get("EVERLOG_SERVER")):
        return None
    from everlog.interfaces.common.bootstrap import ports_of
    from everlog.interfaces.common.server_choice import choose_server

    return choose_server(args, ports_of(world))


def _logged_call(handler: CommandHandler, args: Namespace, world: "CommandEnvironment") -> int:
    """Run the handler, with a line in the log of the program before and after it. Arguments are not logged: they hold
    messages.
    """
    from everlog.actors.ports.loggers import logger_of
    from everlog.interfaces.common.agent_names import look_up_names, run_labelled

    log, name = logger_of("cli"), f"everlog {args.command}"
    log.info("%s begins, process %d", name, os.getpid())
    try:
        if getattr(args, "by_label", "") and args.labels and args.name in (None, NAMELESS):
            code = run_labelled(handler, args, world)
        else:
            look_up_names(args, world)
            code = handler(args, world)
    except EverlogError as error:
        log.error("%s failed: %s", name, error.code)
        raise
    except (KeyboardInterrupt, SystemExit) as error:
        log.info("%s ended by %s", name, type(error).__name__)
        raise
    log.info("%s ended with exit code %d", name, code)
    return code
