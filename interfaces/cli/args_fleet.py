"""Arguments and help of the commands for many agents, for clusters and for log files. Imports nothing heavy.

Used by `command_parser`, which is loaded at each start of `everlog`.
"""

import argparse

from everlog.interfaces.cli.args_shared import (
    base_url,
    follow,
    json,
    model,
    name_or_all,
    placement,
    runtime,
    shards,
    yes_option,
)
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common import argument_values

_FLEET = """\
Each agent gets its next message when it has answered the one before. At the end
every acknowledged message is looked up in the logs. The agents are in a store
of their own, which is removed at the end, unless --here, --keep or --store
names a store. Exit code 1 if a message is lost or duplicated, or if anything
failed.
Ctrl-C ends the run with a report."""
_UP = """\
Agents then run as Ray actors, in processes of their own, and every command
finds them. All their state is in their logs, so Ray may stop at any time.
Ray listens on 127.0.0.1 only. With --listen it listens on all interfaces:
read "Ports and the token" in docs/reference/cluster.md first.
The process writes what it does to cluster.log in the store. With --foreground
this command is that process: for systemd and containers. Its log goes to
stderr; SIGTERM, SIGINT and SIGHUP end it with exit code 0, and it exits with 1
if Ray cannot start or dies.
With --shards-by-load, or the variable EVERLOG_SHARDS, the number of shards
follows their load while the cluster runs; `everlog cluster status` shows the
last change."""
_STATUS = """\
Shows totals, nodes and hosts, the busiest hosts first. The cluster is measured
twice, one second apart, to compute rates. Exit code 3: no cluster runs.
`everlog ping` tells by its exit code whether the cluster is healthy."""
_DRAIN = """\
For maintenance, and before a machine is stopped: hosts move to other nodes, a
few at a time. The next host starts first; then the old one refuses new
messages, finishes turns for a second, unloads its agents and hands over: a
message waits a few seconds. No host is started on the node any more: stop it,
or its Ray, afterwards. Without NODE: the node of this machine. Exit code 3: no
cluster runs."""
_SHARDS = """\
Without N: the shards and their agents. With N, from 1 to 999: new agents go to
N shards at once, and the others are moved to theirs, one by one, while they
run: a message that comes meanwhile waits until the agent has arrived. An agent
at work moves when its turn has ended. Double or halve the number if you can:
then half of the agents stay where they are. In a cluster its supervisor moves
them, also after this command was interrupted; otherwise the same command
continues. Exit code 1 if some agents could not be moved; they work where they
are."""
_STATS = """\
Amplification is the size of all files in the folder, divided by the size of the
texts and payloads that were written."""
_SEALING = """\
Logs are also sealed automatically, when an agent is opened or closed and one
megabyte is unsealed. A log that another process has open is skipped and
reported (exit code 1)."""

_REPAIR = """\
The register says in which log each agent is. Damaged, wrong and missing files
of it are made from the logs; damaged and wrong ones are kept beside them. A
name that has begun but has no record in any log is given up: it can be created
again. Every change is listed first. No log of the store may be open. Exit code
1 if something cannot be repaired, or if the changes were not confirmed."""


def _load_size(parser: argparse.ArgumentParser) -> None:
    for option, default, what in (
        ("--agents", 100, "number of agents, fleet-00001 and so on; created if they do not exist (default: 100)"),
        ("--messages", 5, "messages to send to each agent (default: 5)"),
        ("--at-once", 1000, "most messages in progress at once (default: 1000)"),
    ):
        parser.add_argument(option, metavar="N", type=argument_values.count, default=default, help=what)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--here", action="store_true", help="use the store of the other commands: the agents stay in it")
    where.add_argument("--keep", metavar="DIR", help="use a store in this new or empty folder, and keep it")
    placement(parser, "shared")
    shards(parser)
    parser.add_argument(
        "--file",
        metavar="FILE",
        help="messages to send: text with one message per line, or a .jsonl for `import` (default: 60 built-in lines)",
    )
    model(parser, "model of the agents, as for `create` (default: offline)")
    base_url(parser)


def _listen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        type=argument_values.ip_address,
        help="IP address of this machine at which other machines join the cluster (default: none can)",
    )


def _shards_by_load(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shards-by-load",
        metavar="MIN:MAX",
        help="let the number of shards follow their load, between these two, such as 2:16 (default: it stays)",
    )


def _draining(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "node", metavar="NODE", nargs="?", help="address or host name of a node, or the beginning of its id"
    )


def _number_of_shards(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", metavar="N", nargs="?", type=argument_values.shards, help="new number of shards")


def _foreground(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--foreground", action="store_true", help="keep running in this process until a signal, and log to stderr"
    )


def _deep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also check every record of sealed files, and recompute stored states to compare",
    )


COMMANDS = (
    CommandSpec(
        "fleet",
        "fleet.fleet_command:fleet",
        "run a load test with many agents, and report the results",
        "everlog fleet --agents 2000 --messages 5",
        (_load_size, json, runtime),
        _FLEET,
    ),
    CommandSpec(
        "up",
        "fleet.daemon_commands:up",
        "start a local Ray for this store, and keep it running",
        "everlog up",
        (_listen, _shards_by_load, _foreground, json),
        _UP,
    ),
    CommandSpec(
        "down", "fleet.daemon_commands:down", "stop the Ray that `everlog up` started", "everlog down", (json,)
    ),
    CommandSpec(
        "cluster status",
        "fleet.cluster_commands:status",
        "show the hosts, agents, queues and rates of the cluster",
        "everlog cluster status --follow",
        (follow, json),
        _STATUS,
        reads_only=True,
    ),
    CommandSpec(
        "cluster drain",
        "fleet.cluster_commands:drain",
        "move the agents of a node to other nodes, before it is stopped",
        "everlog cluster drain 10.0.0.7",
        (_draining, json),
        _DRAIN,
    ),
    CommandSpec(
        "cluster shards",
        "fleet.shards_command:shards",
        "show the number of shards of the store, or change it",
        "everlog cluster shards 8",
        (_number_of_shards, json, runtime),
        _SHARDS,
    ),
    CommandSpec(
        "log check",
        "show.log_commands:check",
        "check every byte of an agent's log",
        "everlog log check sam --deep",
        (name_or_all, _deep, json),
        reads_only=True,
    ),
    CommandSpec(
        "log stats",
        "show.log_commands:stats",
        "show the contents of a log and its size on disk",
        "everlog log stats --all",
        (name_or_all, json),
        _STATS,
        reads_only=True,
    ),
    CommandSpec(
        "log seal",
        "show.log_commands:seal",
        "seal logs into compact Parquet files, and merge small files",
        "everlog log seal --all",
        (name_or_all, json),
        _SEALING,
    ),
    CommandSpec(
        "log repair-register",
        "manage.repair_command:repair",
        "make the register of agents again from the logs",
        "everlog log repair-register --yes",
        (yes_option, json),
        _REPAIR,
    ),
)
"""In the order of the help."""
