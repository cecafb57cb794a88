"""Arguments and help of the commands that look after an installation and teach everlog: config, doctor, ping,
completion, help, tour, explain.

Used by `command_parser`, which is loaded at each start of `everlog`: import nothing heavy here.
"""

import argparse

from everlog.interfaces.cli.args_shared import json
from everlog.interfaces.cli.command_spec import CommandSpec

SHELLS = ("bash", "zsh", "fish")

_CONFIG = """\
Shows each default and where it comes from. The first of these counts: the
option, the environment variable, everlog.toml in the store, the file of the
user (EVERLOG_CONFIG, else ~/.config/everlog/config.toml), the built-in default.
Settings of agents are defaults of new agents only."""
_DOCTOR = """\
Each line is ok, warn or fail, and says what to do. Nothing is changed. Exit
code 1 if a line is fail. Without --online no endpoint is called."""
_PING = """\
Exit code 0: the cluster runs and its supervisor answers. 1: it runs, and does
not answer, or hosts have failed. 3: no cluster runs; agents then run in the
process of each command."""
_COMPLETION = """\
Prints a script that completes commands, options, files and names of agents.
bash: add `eval "$(everlog completion bash)"` to ~/.bashrc. zsh: write the
script to a file _everlog in a folder of $fpath. fish: write it to
~/.config/fish/completions/everlog.fish. Names are read when Tab is pressed."""

_TOUR = """\
Ten minutes. Each step explains something, shows a command, and waits until you
type it; you see its true output. The tour needs no key and no network. It has a
store of its own, which is removed at the end, and touches nothing of yours."""
_EXPLAIN = """\
Every error has a page: what failed, why, how to fix it, and an example. The
last line of an error names its page: `more: everlog explain bad-input`. Without
CODE: a list of all errors."""


_COPY = """\
FROM and TO are folders or addresses (s3://BUCKET/PREFIX, gs://BUCKET/PREFIX,
az://CONTAINER/PREFIX). TO must be empty. Each file is checked against its
digest, and the whole copy against the chains of all agents, before TO counts as
a store. If the copy is interrupted, the same command continues it. The agents
of FROM can be used meanwhile: the copy has what was stored when its positions
were taken. The copy is the same store: use one of the two. Files beside the
logs (keys, servers, webhooks) are copied, too; the index of the archive is
derived again."""
_CHECK = """\
Checks all of a store, in a folder or a bucket, and changes nothing: every byte
of every log as `everlog log check --all --deep`, the files beside the logs,
and what is there that is not everlog's. Of a bucket also rules that delete
objects, and old versions, which no erasure reaches: with everlog[object-check],
and if the service tells. Exit code 1 if a line is fail."""


def _copying(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FROM", help="store to copy: a folder, or the address of a bucket")
    parser.add_argument("target", metavar="TO", help="empty place for the copy: a folder, or the address of a bucket")


def _completing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", nargs="?", choices=SHELLS, help="shell: bash, zsh or fish")
    parser.add_argument("--names", action="store_true", help="print the names of agents, one a line, for such a script")


def _diagnosing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--online", action="store_true", help="also connect to the endpoints of models")


def _helping(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="command to explain (default: all commands)")


def _touring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="list the steps, and run nothing")
    parser.add_argument("--from", dest="first", metavar="STEP", help="name or number of the first step (default: 1)")
    parser.add_argument(
        "--plain",
        action="store_true",
        help="run every step without a reader and print all of it (default: if stdin or stdout is no terminal)",
    )
    parser.add_argument("--keep", metavar="DIR", help="keep the store of the tour in this new or empty folder")


def _explaining(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", metavar="CODE", nargs="?", help="code of the error, for example bad-input")
    parser.add_argument("--all", action="store_true", help="print every page")


COMMANDS = (
    CommandSpec(
        "config",
        "operate.config_command:config",
        "show the defaults of options, and where each comes from",
        "everlog config",
        (json,),
        _CONFIG,
        reads_only=True,
        reads_defaults=False,
    ),
    CommandSpec(
        "doctor",
        "operate.doctor_command:doctor",
        "check this machine, the installation, the store and the models",
        "everlog doctor --online",
        (_diagnosing, json),
        _DOCTOR,
        reads_only=True,
        reads_defaults=False,
    ),
    CommandSpec(
        "ping",
        "fleet.cluster_commands:ping",
        "tell whether the cluster of the store is healthy, by the exit code",
        "everlog ping",
        (json,),
        _PING,
        reads_only=True,
    ),
    CommandSpec(
        "store copy",
        "operate.copy_command:copy",
        "copy a store between folders and buckets, and check the copy",
        "everlog store copy ~/.everlog s3://my-bucket/agents",
        (_copying, json),
        _COPY,
    ),
    CommandSpec(
        "store check",
        "operate.check_command:check",
        "check all of a store: its logs, the files beside them, and its bucket",
        "everlog store check",
        (json,),
        _CHECK,
        reads_only=True,
    ),
    CommandSpec(
        "completion",
        "cli.completion_command:completion",
        "print a script that completes commands in a shell",
        "everlog completion bash",
        (_completing,),
        _COMPLETION,
        reads_only=True,
        reads_defaults=False,
    ),
    CommandSpec(
        "help",
        "cli.help_command:help_",
        "explain a command, or list all",
        "everlog help send",
        (_helping,),
        reads_only=True,
        reads_defaults=False,
    ),
    CommandSpec(
        "tour",
        "tour.tour_command:tour",
        "learn everlog in ten minutes, step by step in the terminal",
        "everlog tour",
        (_touring,),
        _TOUR,
        reads_defaults=False,
    ),
    CommandSpec(
        "explain",
        "explain.explain_command:explain",
        "explain an error: why it happens and how to fix it",
        "everlog explain unknown-agent",
        (_explaining,),
        _EXPLAIN,
        reads_defaults=False,
    ),
)
"""In the order of the help."""
