"""The commands about many agents, the cluster that runs them and the files that they are kept in: their arguments and
what the help says of them. Imports nothing heavy.
"""

import argparse

from everlog.interfaces.cli.args_shared import (
    CommandSpec,
    base_url,
    follow,
    json,
    model,
    name_or_all,
    placement,
    runtime,
    shards,
)
from everlog.interfaces.common import argument_values

_FLEET = """\
Each agent is told its next message once it has answered the one before. At the
end every message that was acknowledged is looked up in the logs. Exit code 1 if
one is lost or doubled, or if anything failed. Ctrl-C ends it with a report."""
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


def _load_size(parser: argparse.ArgumentParser) -> None:
    for option, default, what in (
        ("--agents", 100, "how many agents (100): fleet-00001 and so on, made where there are none"),
        ("--messages", 5, "messages that each of them is told (5)"),
        ("--at-once", 1000, "messages under way at once, at most (1000)"),
    ):
        parser.add_argument(option, metavar="N", type=argument_values.count, default=default, help=what)
    placement(parser, "shared")
    shards(parser)
    parser.add_argument(
        "--file",
        metavar="FILE",
        help="what is said: text, one message a line; or a .jsonl as `import` reads it (sixty everyday lines)",
    )
    model(parser, "as with `create` (offline)")
    base_url(parser)


def _deep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deep", action="store_true", help="every record of sealed files too, and make the states again to compare"
    )


COMMANDS = (
    CommandSpec(
        "fleet",
        "fleet.fleet_command:fleet",
        "talk to many agents at once, and report what it took",
        "everlog fleet --agents 2000 --messages 5",
        (_load_size, json, runtime),
        _FLEET,
    ),
    CommandSpec("up", "fleet.cluster_commands:up", "keep a local Ray running for this store", "everlog up", (), _UP),
    CommandSpec(
        "down", "fleet.cluster_commands:down", "stop the Ray that `everlog up` keeps running", "everlog down", ()
    ),
    CommandSpec(
        "cluster status",
        "fleet.cluster_commands:status",
        "show how the cluster is doing: hosts, agents, queues, rates",
        "everlog cluster status --follow",
        (follow, json),
        _STATUS,
    ),
    CommandSpec(
        "log check",
        "show.log_commands:check",
        "check every byte of an agent's log",
        "everlog log check sam --deep",
        (name_or_all, _deep, json),
    ),
    CommandSpec(
        "log stats",
        "show.log_commands:stats",
        "tell what a log holds and what it costs on the disk",
        "everlog log stats --all",
        (name_or_all, json),
        _STATS,
    ),
    CommandSpec(
        "log seal",
        "show.log_commands:seal",
        "bring logs into their small lasting form, and compact them",
        "everlog log seal --all",
        (name_or_all, json),
        _SEALING,
    ),
)
"""In the order of the help."""
