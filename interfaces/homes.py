"""Arguments about where agents live, and about many of them."""

import argparse

from . import values


def homes(parser: argparse.ArgumentParser) -> None:
    """Where an agent that is made lives."""
    _placement(parser, "dedicated")


def _placement(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--placement",
        choices=("shared", "dedicated"),
        default=default,
        metavar="HOW",
        help="of new ones: shared (many in one process and log), or dedicated (a process and a log for each) "
        f"({default})",
    )
    parser.add_argument(
        "--shards", metavar="K", type=values.count, help="shared logs of a store that is made (one for each processor)"
    )


def where(parser: argparse.ArgumentParser) -> None:
    """Where an agent moves."""
    parser.add_argument(
        "--to", required=True, choices=("shared", "dedicated"), metavar="HOW",
        help="shared (its shard's process and log), or dedicated (a process and a log of its own)",
    )  # fmt: skip


def crowd(parser: argparse.ArgumentParser) -> None:
    """How many agents, and what is said to them."""
    for option, default, what in (
        ("--agents", 100, "how many agents (100): fleet-00001 and so on, made where there are none"),
        ("--messages", 5, "messages that each of them is told (5)"),
        ("--at-once", 1000, "messages under way at once, at most (1000)"),
    ):
        parser.add_argument(option, metavar="N", type=values.count, default=default, help=what)
    _placement(parser, "shared")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="what is said: text, one message a line; or a .jsonl as `import` reads it (sixty everyday lines)",
    )
    parser.add_argument("--model", metavar="MODEL", type=values.words, help="as with `create` (offline)")
    parser.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible endpoint, for this command only")


_FLEET = """\
Each agent is told its next message once it has answered the one before. At the
end every message that was acknowledged is looked up in the logs. Exit code 1 if
one is lost or doubled, or if anything failed. Ctrl-C ends it with a report."""
_ERASING = """\
All records up to the head, or those of --from and --to. Order, counts and the
chain stay as they were; search, memory and context know nothing of them any
more. It cannot be undone. What other records repeat of them (the model's reply,
a summary) is content of those: erase them too. Backups are yours to look after."""
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
    Command("chat", "chat:chat", "talk to an agent; creates it if need be", "everlog chat sam",
            (_name_or_sam, _opening)),
    Command("send", "send:send", "say one thing to an agent and print its answer",
            'everlog send sam "Hi, my name is Chad and I sail"', (_name, _sending, _json, _opening)),
    Command("create", "keeping:create", "create an agent", "everlog create sam --block notes=notes.txt:4000",
            (_name, _homes, _json, _opening)),
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
    Command("timer", "timing:timer", "have an agent woken at a time, or every so often",
            'everlog timer sam "Does it rain?" --every 30m', (_name, _timing, _json, _runtime), _TIMERS),
    Command("timers", "timing:timers", "list the timers of an agent", "everlog timers sam", (_name, _as_of, _json)),
    Command("rebuild", "proving:rebuild", "build all derived state again from the log, and compare",
            "everlog rebuild sam", (_name_or_all, _json)),
    Command("verify", "proving:verify", "render every request ever sent again, and compare", "everlog verify --all",
            (_name_or_all, _tools, _json)),
    Command("delete", "keeping:delete", "end an agent; its records stay", "everlog delete sam --yes",
            (_name, _yes, _runtime)),
    Command("move", "keeping:move", "let an agent live among others, or by itself", "everlog move sam --to shared",
            (_name, _where, _runtime)),
    Command("erase", "erasing:erase", "take out what records say, in every file; their places stay",
            "everlog erase sam --from 12 --to 14", (_name, _erasing, _yes, _json, _runtime), _ERASING),
    Command("fleet", "fleet:fleet", "talk to many agents at once, and report what it took",
            "everlog fleet --agents 2000 --messages 5", (_crowd, _json, _runtime), _FLEET),
    Command("up", "cluster:up", "keep a local Ray running for this store", "everlog up", (), _UP),
    Command("down", "cluster:down", "stop the Ray that `everlog up` keeps running", "everlog down", ()),
    Command("cluster up", "cluster:up", "the same as `everlog up`", "everlog cluster up", (), _UP),
    Command("cluster down", "cluster:down", "the same as `everlog down`", "everlog cluster down", ()),
    Command("cluster status", "cluster:status", "show how the cluster is doing: hosts, agents, queues, rates",
            "everlog cluster status --follow", (_following, _json), _STATUS),
    Command("log check", "logs:check", "check every byte of an agent's log", "everlog log check sam --deep",
            (_name_or_all, _deep, _json)),
    Command("log stats", "logs:stats", "tell what a log holds and what it costs on the disk", "everlog log stats --all",
            (_name_or_all, _json), _STATS),
    Command("log seal", "logs:seal", "bring logs into their small lasting form, and compact them",
            "everlog log seal --all", (_name_or_all, _json), _SEALING),
)  # fmt: skip
"""Every command, in the order of the help. A name of two words is one of a group's."""

GROUPS = {
    "cluster": "look after a cluster: up, down, status",
    "log": "look after the files of a log: check, stats, seal",
}
"""What the help says of the commands that have commands of their own."""
