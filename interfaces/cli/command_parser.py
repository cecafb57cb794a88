"""What can be typed: every command, its arguments, its help and its example. Imports nothing heavy.

A command names its handler as "module:function"; the module is imported when the command runs.
"""

import argparse
import shutil
from typing import NoReturn, TypeAlias

from everlog.interfaces.cli import (
    args_archive,
    args_backup,
    args_blocks,
    args_cost,
    args_documents,
    args_fork,
    args_models,
    args_moments,
    args_placement,
    args_proof,
    args_replay,
    args_rerun,
    args_sections,
    args_settings,
    args_shared,
    args_sql,
    args_turn,
)
from everlog.interfaces.common import argument_values  # fmt: skip
from everlog.interfaces.common.command_options import CommandSpec
from everlog.interfaces.common.command_options import as_of as _as_of
from everlog.interfaces.common.command_options import json as _json
from everlog.interfaces.common.command_options import name as _name
from everlog.interfaces.common.command_options import name_or_all as _name_or_all
from everlog.interfaces.common.command_options import name_or_sam as _name_or_sam
from everlog.interfaces.common.command_options import runtime as _runtime
from everlog.interfaces.common.command_options import tools as _tools
from everlog.interfaces.common.command_options import words as _words
from everlog.interfaces.common.error_output import plain


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(plain(message))


_Subparsers: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001 - it has no public name


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(100, shutil.get_terminal_size().columns - 2))


def _timing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what the agent is told when the timer goes off")
    parser.add_argument("--every", metavar="TIME", type=argument_values.often, help="how often, as 30m or 1h30m (once)")
    first = parser.add_mutually_exclusive_group()
    first.add_argument(
        "--at", metavar="WHEN", type=argument_values.moment, help="when first, as an ISO time (now and --every)"
    )
    first.add_argument(
        "--in", dest="after", metavar="TIME", type=argument_values.duration, help="after how long first, as 10m"
    )
    parser.add_argument(
        "--timer", metavar="TIMER", type=argument_values.words, help="its name: a timer of that name is replaced"
    )
    parser.add_argument(
        "--cancel", metavar="TIMER", type=argument_values.words, help="cancel the timer of that name instead"
    )


def _granting(parser: argparse.ArgumentParser) -> None:
    """What is allowed to the functions of the preset `extras`."""
    group = parser.add_argument_group(
        "what it may reach", "For the functions of the preset `extras`. Never kept: give them each time."
    )
    group.add_argument(
        "--workspace",
        metavar="DIR",
        type=argument_values.allowed,
        help="folder whose text files it may read and add to",
    )
    group.add_argument(
        "--allow-host",
        metavar="HOST[:PORT]",
        action="append",
        default=[],
        type=argument_values.allowed,
        help="web server that it may send requests to (repeatable)",
    )
    group.add_argument(
        "--helper",
        metavar="MODEL",
        type=argument_values.allowed,
        help="model that answers its questions (the agent's own)",
    )


def _opening(parser: argparse.ArgumentParser) -> None:
    """How an agent is created, and what may be changed when it is opened."""
    group = parser.add_argument_group(
        "the agent",
        "Kept in its log (all but --base-url, --tools, --take-over): give them once.\nThose marked (*): for a new one.",
    )
    group.add_argument(
        "--model",
        metavar="MODEL",
        type=argument_values.words,
        help="`offline` (rule-based, embedded), a model of an endpoint, ENDPOINT/MODEL, or a file that ends in .gguf",
    )
    group.add_argument(
        "--base-url",
        metavar="URL",
        help="an OpenAI-compatible endpoint, for this command only: "
        "not kept in the log, so give it each time, or set OPENAI_BASE_URL once",
    )
    args_settings.setup(group)
    args_models.asking(group)
    group.add_argument("--persona", metavar="NAME|FILE", help="who the agent is: a preset or a file (*)")
    group.add_argument("--human", metavar="NAME|FILE", help="what it knows of the user: a preset or a file (*)")
    args_settings.blocks(group)
    _tools(parser)
    _granting(parser)
    _runtime(parser)
    parser.add_argument("--take-over", action="store_true", help="fence the process that has the agent open")


def _sending(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what is said; - reads it from stdin")
    parser.add_argument(
        "--as",
        dest="kind",
        default="user",
        choices=("user", "system", "event", "login", "heartbeat"),
        help="who says it: the user, the system, something that happened, a login, a heartbeat (user)",
    )
    parser.add_argument(
        "--id", metavar="UUID", type=argument_values.event_id, help="id of the input: sent twice, it counts once"
    )
    parser.add_argument("--name", dest="who", metavar="WHO", default="", help="who of several users says it")
    parser.add_argument("-v", "--verbose", action="store_true", help="show thoughts and functions too")


def _range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="first", metavar="SEQ", type=argument_values.seq, default=1, help="first seq")
    parser.add_argument("--to", dest="last", metavar="SEQ", type=argument_values.seq, help="last seq, inclusive")
    parser.add_argument(
        "--type", dest="kinds", metavar="TYPE", action="append", default=[], help="only this type (repeatable)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until Ctrl-C")


def _searching(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="?", help="words to look for")
    parser.add_argument(
        "--page", metavar="P", type=argument_values.page, default=0, help="page, from 0, 5 results each (0)"
    )
    parser.add_argument(
        "--in",
        dest="place",
        choices=("recall", "archival"),
        default="recall",
        help="what was said, or what the agent kept (recall)",
    )
    parser.add_argument("--role", action="append", default=[], help="only what was said as user, or as assistant")
    parser.add_argument("--from", dest="first_day", metavar="DAY", help="from this day on, YYYY-MM-DD")
    parser.add_argument("--to", dest="last_day", metavar="DAY", help="up to this day, inclusive")
    parser.add_argument("--tag", action="append", default=[], help="only memories with this tag; again for more")
    parser.add_argument("--source", metavar="NAME", help="only documents of this source")
    parser.add_argument("--scores", action="store_true", help="show the score of each result")
    parser.add_argument("--queries", metavar="FILE", help="answer a file of queries, one line of JSON each")


def _full(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="do not shorten long messages")


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl", help="lines of {role, content, time, name?, ref?}")


def _again(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--again", action="store_true", help="import it although every ref in it is known already")


def _deep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deep", action="store_true", help="every record of sealed files too, and make the states again to compare"
    )


def _erasing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="first", metavar="SEQ", type=argument_values.seq, default=1, help="first seq (1)"
    )
    parser.add_argument(
        "--to", dest="last", metavar="SEQ", type=argument_values.seq, help="last seq, inclusive (the head)"
    )


def _yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _following(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="look again every second, until Ctrl-C")


_FLEET = """\
Each agent is told its next message once it has answered the one before. At the
end every message that was acknowledged is looked up in the logs. Exit code 1 if
one is lost or doubled, or if anything failed. Ctrl-C ends it with a report."""
_ERASING = """\
All records up to the head, or those of --from and --to. Order, counts and the
chain stay as they were; search, memory and context know nothing of them any
more. It cannot be undone. What other records repeat of them (the model's reply,
a summary) is content of those: erase them too. Backups, and files of `everlog
export`, are yours to look after."""
_TIMERS = """\
Timers go off while a cluster runs (`everlog up`), or while `everlog chat` has
the agent open. What was missed in between comes once, and is marked late. The
agent can pause its timers with pause_heartbeats."""
_UP = """\
Agents then run as Ray actors, each in a process of its own, and every command
finds them. What they were at is in their logs, whenever it stops."""
_STATUS = """\
Totals, nodes, and hosts with the busiest first. It looks twice, a second apart:
rates are what happened in between."""
_STATS = """\
Amplification is bytes on the disk, everything in the folder, against bytes of
text and payload, as they were written."""
_SEALING = """\
Logs do so by themselves when an agent is opened or closed and a megabyte waits.
A log that another process has open is left alone and told of (exit code 1)."""

COMMANDS = (
    CommandSpec(
        "chat",
        "talk.chat:chat",
        "talk to an agent; creates it if need be",
        "everlog chat sam",
        (_name_or_sam, _opening),
    ),
    CommandSpec(
        "send",
        "talk.send:send",
        "say one thing to an agent and print its answer",
        'everlog send sam "Hi, my name is Chad and I sail"',
        (_name, _sending, _json, _opening),
    ),
    args_turn.CANCEL,
    CommandSpec(
        "create",
        "manage.agent_commands:create",
        "create an agent",
        "everlog create sam --block notes=notes.txt:4000",
        (_name, args_placement.placed, _json, _opening),
    ),
    CommandSpec(
        "agents", "show.show_commands:agents", "list the agents of the store", "everlog agents --json", (_as_of, _json)
    ),
    CommandSpec(
        "events",
        "show.show_commands:events",
        "print the log of an agent",
        "everlog events sam --type memory_edited",
        (_name, _range, _as_of, _json),
    ),
    CommandSpec(
        "context",
        "show.show_commands:context",
        "show what the model sees, now or then",
        "everlog context sam --as-of 12",
        (_name, _as_of, _full, _json),
    ),
    CommandSpec(
        "memory",
        "show.show_commands:memory",
        "show the memory blocks, now or then",
        "everlog memory sam --as-of 2024-01-31T12:00",
        (_name, _as_of, _json),
    ),
    *args_settings.COMMANDS,
    *args_sections.COMMANDS,
    *args_blocks.COMMANDS,
    CommandSpec(
        "pressure",
        "show.show_commands:pressure",
        "show how full the context window is",
        "everlog pressure sam",
        (_name, _as_of, _json),
    ),
    CommandSpec(
        "replay",
        "replay_console.replay_command:replay",
        "watch an agent live again, event by event",
        "everlog replay sam --speed 8x",
        (_name, args_replay.watching, _json, _runtime),
        args_replay.REPLAY,
    ),
    *args_moments.COMMANDS,
    CommandSpec(
        "search",
        "show.search_command:search",
        "search what was said, or what the agent kept",
        'everlog search sam "sailing trip" --page 1',
        (_name, _searching, _words, _as_of, _json),
    ),
    CommandSpec(
        "import",
        "manage.agent_commands:import_",
        "import a past conversation; creates the agent if need be",
        "everlog import sam conversation.jsonl",
        (_name, _file, _again, _json, _opening),
    ),
    CommandSpec(
        "load",
        "manage.document_commands:load",
        "load documents into a source, for an agent to search",
        "everlog load sam handbook/ --source handbook",
        (_name, args_documents.loading, _json, _opening),
        args_documents.LOAD,
    ),
    CommandSpec(
        "sources",
        "manage.document_commands:sources",
        "list the sources of documents, and who can search them",
        "everlog sources",
        (args_documents.listing, _as_of, _json),
    ),
    CommandSpec(
        "attach",
        "manage.document_commands:attach",
        "let an agent search a source",
        "everlog attach ann handbook",
        (_name, args_documents.source, _json, _runtime),
    ),
    CommandSpec(
        "detach",
        "manage.document_commands:detach",
        "keep a source from an agent",
        "everlog detach ann handbook",
        (_name, args_documents.source, _json, _runtime),
    ),
    CommandSpec(
        "timer",
        "talk.timer_commands:timer",
        "have an agent woken at a time, or every so often",
        'everlog timer sam "Does it rain?" --every 30m',
        (_name, _timing, _json, _runtime),
        _TIMERS,
    ),
    CommandSpec(
        "timers",
        "talk.timer_commands:timers",
        "list the timers of an agent",
        "everlog timers sam",
        (_name, _as_of, _json),
    ),
    CommandSpec(
        "rebuild",
        "show.verify_command:rebuild",
        "build all derived state again from the log, and compare",
        "everlog rebuild sam",
        (_name_or_all, _json),
    ),
    CommandSpec(
        "verify",
        "show.verify_command:verify",
        "render every request ever sent again, and compare",
        "everlog verify --all",
        (_name_or_all, args_proof.sampling, _tools, _json),
        args_proof.VERIFY,
    ),
    CommandSpec(
        "fork",
        "manage.fork_command:fork",
        "begin another agent as what this one was at any moment",
        "everlog fork sam --at 40 --as sam-before-the-trip",
        (_name, args_fork.forking, _json, _runtime),
        args_fork.FORK,
    ),
    CommandSpec(
        "rerun",
        "talk.rerun_command:rerun",
        "what if: tell a fork again what the agent was told, and compare",
        "everlog rerun sam --from 40 --model gpt-4o --as sam-otherwise",
        (_name, args_rerun.rerunning, _tools, _granting, _json),
        args_rerun.RERUN,
    ),
    CommandSpec(
        "delete",
        "manage.fork_command:delete",
        "end an agent; its records stay",
        "everlog delete sam --yes",
        (_name, args_fork.deleting, _yes, _runtime),
    ),
    CommandSpec(
        "move",
        "manage.agent_commands:move",
        "let an agent live among others, or by itself",
        "everlog move sam --to shared",
        (_name, args_placement.moved, _runtime),
    ),
    CommandSpec(
        "erase",
        "manage.erase_command:erase",
        "take out what records say, in every file; their places stay",
        "everlog erase sam --from 12 --to 14",
        (_name, _erasing, _yes, _json, _runtime),
        _ERASING,
    ),
    CommandSpec(
        "export",
        "manage.export_commands:export",
        "write an agent into one file, with checksums",
        "everlog export sam sam.everlog",
        (_name, args_backup.exporting, _json),
        args_backup.EXPORT,
    ),
    CommandSpec(
        "restore",
        "manage.export_commands:restore",
        "take in what an export holds, checked on the way in",
        "everlog restore sam.everlog",
        (args_backup.restoring, _json),
        args_backup.RESTORE,
    ),
    *args_models.COMMANDS,
    *args_archive.COMMANDS,
    *args_shared.COMMANDS,
    *args_sql.COMMANDS,
    *args_cost.COMMANDS,
    CommandSpec(
        "fleet",
        "fleet.fleet_command:fleet",
        "talk to many agents at once, and report what it took",
        "everlog fleet --agents 2000 --messages 5",
        (args_placement.crowd, _json, _runtime),
        _FLEET,
    ),
    CommandSpec("up", "fleet.cluster_commands:up", "keep a local Ray running for this store", "everlog up", (), _UP),
    CommandSpec(
        "down", "fleet.cluster_commands:down", "stop the Ray that `everlog up` keeps running", "everlog down", ()
    ),
    CommandSpec("cluster up", "fleet.cluster_commands:up", "the same as `everlog up`", "everlog cluster up", (), _UP),
    CommandSpec(
        "cluster down", "fleet.cluster_commands:down", "the same as `everlog down`", "everlog cluster down", ()
    ),
    CommandSpec(
        "cluster status",
        "fleet.cluster_commands:status",
        "show how the cluster is doing: hosts, agents, queues, rates",
        "everlog cluster status --follow",
        (_following, _json),
        _STATUS,
    ),
    CommandSpec(
        "log check",
        "show.log_commands:check",
        "check every byte of an agent's log",
        "everlog log check sam --deep",
        (_name_or_all, _deep, _json),
    ),
    CommandSpec(
        "log stats",
        "show.log_commands:stats",
        "tell what a log holds and what it costs on the disk",
        "everlog log stats --all",
        (_name_or_all, _json),
        _STATS,
    ),
    CommandSpec(
        "log seal",
        "show.log_commands:seal",
        "bring logs into their small lasting form, and compact them",
        "everlog log seal --all",
        (_name_or_all, _json),
        _SEALING,
    ),
)
"""Every command, in the order of the help. A name of two words is one of a group's."""

GROUPS = {
    "archive": "keep, change and search memories, and look after their index",
    "block": "add, change and remove memory blocks",
    "cluster": "look after a cluster: up, down, status",
    "log": "look after the files of a log: check, stats, seal",
    "prompt": "show and change the sections of a system prompt",
    "shared": "memory blocks that several agents have: make, edit, attach them",
}
"""What the help says of the commands that have commands of their own."""


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
    groups: dict[str, _Subparsers] = {}
    for command in COMMANDS:
        group, _, name = command.name.rpartition(" ")
        if group and group not in groups:
            groups[group] = _group(commands, group)
        _add(groups[group] if group else commands, name, command)
    return root


def _group(commands: "_Subparsers", group: str) -> "_Subparsers":
    """The parser of a command that only has commands of its own; its help has an example of each."""
    examples = [f"  {command.example}" for command in COMMANDS if command.name.startswith(f"{group} ")]
    summary = GROUPS[group]
    sub = commands.add_parser(
        group,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog="\n".join(["examples:", *examples]),
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    sub.add_argument("--store", metavar="DIR", default=argparse.SUPPRESS, help="folder of the store")
    return sub.add_subparsers(title="commands", metavar="COMMAND", required=True)


def _add(commands: "_Subparsers", name: str, command: CommandSpec) -> None:
    summary = f"{command.summary[0].upper()}{command.summary[1:]}."
    sub = commands.add_parser(
        name,
        help=command.summary,
        description=f"{summary}\n\n{command.more}" if command.more else summary,
        epilog=f"example:\n  {command.example}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    for add in command.arguments:
        add(sub)
    sub.add_argument("--store", metavar="DIR", default=argparse.SUPPRESS, help="folder of the store")
    sub.set_defaults(handler=command.handler, command=command.name, fail=sub.error)
