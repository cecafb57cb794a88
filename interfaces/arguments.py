"""What can be typed: every command, its arguments, its help and its example. Imports nothing heavy.

A command names its handler as "module:function"; the module is imported when the command runs.
"""

import argparse
import shutil
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from .complaints import plain

SEQ_MAX = 10**15
"""Largest seq that can be asked for."""
PAGE_MAX = 10**6
"""Last page that can be asked for."""
WINDOW_TOKENS_MAX = 10**8

Add = Callable[[argparse.ArgumentParser], None]


class Command(NamedTuple):
    """One command of the command line."""

    name: str
    handler: str
    summary: str
    example: str
    arguments: tuple[Add, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(plain(message))


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(100, shutil.get_terminal_size().columns - 2))


def _name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the agent")


def _name_or_sam(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", default="sam", help="name of the agent (sam)")


def _name_or_all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the agent")
    parser.add_argument("--all", action="store_true", help="every agent of the store")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, as docs/cli.md promises it")


def _as_of(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--as-of", metavar="SEQ|TIME", help="as it was at this seq, or at this ISO time")


def _tools(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tools", metavar="FILE.py", action="append", default=[], help="functions of your own (repeatable)"
    )


def _opening(parser: argparse.ArgumentParser) -> None:
    """How an agent is created, and what may be changed when it is opened."""
    group = parser.add_argument_group(
        "the agent",
        "Kept in its log (all but --base-url, --tools, --take-over): give them once.\nThose marked (*): for a new one.",
    )
    group.add_argument(
        "--model", metavar="MODEL", type=_words, help="`offline` (rule-based, embedded), or a model of an endpoint"
    )
    group.add_argument(
        "--base-url",
        metavar="URL",
        help="an OpenAI-compatible endpoint, for this command only: "
        "not kept in the log, so give it each time, or set OPENAI_BASE_URL once",
    )
    group.add_argument("--window", metavar="TOKENS", type=_window, help="context window of the model")
    group.add_argument(
        "--zone", metavar="ZONE", type=_words, help="time zone that the agent is told the time in, as Europe/Oslo"
    )
    group.add_argument("--persona", metavar="NAME|FILE", help="who the agent is: a preset or a file (*)")
    group.add_argument("--human", metavar="NAME|FILE", help="what it knows of the user: a preset or a file (*)")
    group.add_argument("--system", metavar="FILE", help="a system prompt of your own")
    group.add_argument(
        "--block",
        metavar="LABEL=FILE[:LIMIT]",
        action="append",
        default=[],
        type=_block,
        help="a memory block, with its limit in characters (*, repeatable)",
    )
    group.add_argument(
        "--verify-first",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="hold the first reply to MemGPT's rules",
    )
    _tools(parser)
    parser.add_argument("--take-over", action="store_true", help="fence the process that has the agent open")


def _block(text: str) -> str:
    label, sign, path = text.partition("=")
    if not (label and sign and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not LABEL=FILE or LABEL=FILE:LIMIT")
    return text


def _id(text: str) -> str:
    from events import time_of

    if time_of(text.lower()) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a UUID of version 7 (36 characters)")
    return text.lower()


def _number(text: str, least: int, most: int) -> int:
    """A number in digits. Its length is looked at first: Python converts no endless ones."""
    if not (text.isdecimal() and len(text) <= 20 and least <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {least} to {most:,}")
    return int(text)


def _seq(text: str) -> int:
    return _number(text, 1, SEQ_MAX)


def _page(text: str) -> int:
    return _number(text, 0, PAGE_MAX)


def _window(text: str) -> int:
    return _number(text, 1, WINDOW_TOKENS_MAX)


def _words(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; leave the option out to keep what was set before")
    return text


def _sending(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what is said; - reads it from stdin")
    parser.add_argument(
        "--as",
        dest="kind",
        default="user",
        choices=("user", "system", "event", "login", "heartbeat"),
        help="who says it: the user, the system, something that happened, a login, a heartbeat (user)",
    )
    parser.add_argument("--id", metavar="UUID", type=_id, help="id of the input: sent twice, it counts once")
    parser.add_argument("--name", dest="who", metavar="WHO", default="", help="who of several users says it")
    parser.add_argument("-v", "--verbose", action="store_true", help="show thoughts and functions too")


def _range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="first", metavar="SEQ", type=_seq, default=1, help="first seq")
    parser.add_argument("--to", dest="last", metavar="SEQ", type=_seq, help="last seq, inclusive")
    parser.add_argument(
        "--type", dest="kinds", metavar="TYPE", action="append", default=[], help="only this type (repeatable)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until Ctrl-C")


def _searching(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="?", help="words to look for")
    parser.add_argument("--page", metavar="P", type=_page, default=0, help="page, from 0, 5 results each (0)")
    parser.add_argument(
        "--in",
        dest="place",
        choices=("recall", "archival"),
        default="recall",
        help="what was said, or what the agent kept (recall)",
    )
    parser.add_argument("--queries", metavar="FILE", help="answer a file of queries, one line of JSON each")


def _full(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="do not shorten long messages")


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl", help="lines of {role, content, time, name?, ref?}")


def _again(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--again", action="store_true", help="import it although every ref in it is known already")


def _action(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("check",), help="check: read every byte of every file")


def _yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


COMMANDS = (
    Command("chat", "chat:chat", "talk to an agent; creates it if need be", "everlog chat sam",
            (_name_or_sam, _opening)),
    Command("send", "send:send", "say one thing to an agent and print its answer",
            'everlog send sam "Hi, my name is Chad and I sail"', (_name, _sending, _json, _opening)),
    Command("create", "keeping:create", "create an agent", "everlog create sam --block notes=notes.txt:4000",
            (_name, _json, _opening)),
    Command("agents", "reading:agents", "list the agents of the store", "everlog agents --json", (_json,)),
    Command("events", "reading:events", "print the log of an agent", "everlog events sam --type memory_edited",
            (_name, _range, _json)),
    Command("context", "reading:context", "show what the model sees, now or then", "everlog context sam --as-of 12",
            (_name, _as_of, _full, _json)),
    Command("memory", "reading:memory", "show the memory blocks, now or then",
            "everlog memory sam --as-of 2024-01-31T12:00", (_name, _as_of, _json)),
    Command("pressure", "reading:pressure", "show how full the context window is", "everlog pressure sam",
            (_name, _as_of, _json)),
    Command("search", "searching:search", "search what was said, or what the agent kept",
            'everlog search sam "sailing trip" --page 1', (_name, _searching, _as_of, _json)),
    Command("import", "keeping:import_", "import a past conversation; creates the agent if need be",
            "everlog import sam conversation.jsonl", (_name, _file, _again, _json, _opening)),
    Command("rebuild", "proving:rebuild", "build all derived state again from the log, and compare",
            "everlog rebuild sam", (_name_or_all, _json)),
    Command("verify", "proving:verify", "render every request ever sent again, and compare", "everlog verify --all",
            (_name_or_all, _tools, _json)),
    Command("delete", "keeping:delete", "end an agent; its records stay", "everlog delete sam --yes", (_name, _yes)),
    Command("log", "proving:check", "check every byte of an agent's log", "everlog log check sam",
            (_action, _name_or_all, _json)),
)  # fmt: skip
"""Every command, in the order of the help."""


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    root = _Parser(
        prog="everlog",
        description="Agents with memory, whose whole state is their log of events.",
        epilog="example:\n  everlog chat sam\n\n`everlog COMMAND --help` has an example of each.",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    root.add_argument("--store", metavar="DIR", help="folder of the store (EVERLOG_STORE, else ~/.everlog)")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=f"example:\n  {command.example}",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        for add in command.arguments:
            add(sub)
        sub.add_argument("--store", metavar="DIR", default=argparse.SUPPRESS, help="folder of the store")
        sub.set_defaults(handler=command.handler, command=command.name, fail=sub.error)
    return root
