"""Arguments and help of the commands that create, configure, fork, move, copy and delete agents.

Used by `command_parser`, which imports every args_ file at each start of `everlog`: import nothing heavy here.
"""

import argparse

from everlog.interfaces.cli.args_shared import (
    ENDS,
    base_url,
    json,
    model,
    name,
    new_name,
    opening,
    placement,
    records,
    runtime,
    settings,
    shards,
    yes_option,
)
from everlog.interfaces.cli.command_spec import CommandSpec

_CONFIGURE = """\
Options that are not given stay as they are. The change is one event, and the
changed settings are printed. Without options: prints the current settings. The
defaults below are those of a new agent."""

_FORK = """\
Nothing is copied, and nothing is written to the agent. The fork reads the
agent's records up to the fork point, and has a log, memories and timers of its
own from there on. The cost does not depend on the length of the log. A turn
that is open at the fork point is closed in the fork; the agent completes it."""

_ERASING = """\
Erases the content of all records, or of those from --from to --to. The order
and the number of records and the hash chain stay. Search, memory and context no
longer contain the content. This cannot be undone. Other records may repeat the
content (the model's reply, a summary): erase them too. Backups and files of
`everlog export` are not changed; delete them yourself."""

_EXPORT = """\
Writes one Parquet file with checksums and every record of the agent, and of its
ancestors if it is a fork. The agent may be running: the file contains the
records up to the moment the command began. Erased content is not exported, but
files that were exported before the erasure still contain it."""

_RESTORE = """\
Every byte and every record is checked first; a damaged file changes nothing.
The agent gets its name and its hash chain back. If the agent exists with the
same records, only missing records are added. A name used by another agent is
rejected. If interrupted, run the same command again."""

_MODELS = """\
Lists the models of models.toml (EVERLOG_MODELS, else the file in the store) and
of endpoints that were tested. `everlog models test NAME` sends a few small
requests to the endpoint, or reads the model file. The result is saved in the
store, and sets up the agents that get this model from then on."""


def _importing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE.jsonl", help="file with one object {role, content, time, name?, ref?} per line"
    )
    parser.add_argument(
        "--again", action="store_true", help="import the file even if every ref in it was imported before"
    )


def _model(parser: argparse.ArgumentParser) -> None:
    model(parser, "model to use from now on")


def _fork_point(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of", metavar="SEQ|TIME", help="fork point: the last record that both agents share (default: the newest)"
    )


def _new_placement(parser: argparse.ArgumentParser) -> None:
    placement(parser, None)


def _with_forks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--with-forks",
        action="store_true",
        help="also delete its forks; without this, an agent that has forks is not deleted",
    )


def _exporting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.everlog", help="file to write")
    parser.add_argument(
        "--with-sources", action="store_true", help="include the documents of all sources that the agent can search"
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _restoring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.everlog", help="file that `everlog export` wrote")


def _testing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", metavar="test", nargs="?", choices=("test",), help="find out what MODEL can do")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="name of the model to test")
    base_url(parser)


COMMANDS = (
    CommandSpec(
        "create",
        "manage.agent_commands:create",
        "create an agent",
        "everlog create sam --block notes=notes.txt:4000",
        (name, placement, shards, json, opening),
    ),
    CommandSpec(
        "import",
        "manage.agent_commands:import_",
        "import a conversation; creates the agent if it does not exist",
        "everlog import sam conversation.jsonl",
        (name, _importing, json, opening),
    ),
    CommandSpec(
        "configure",
        "manage.configure_command:configure",
        "show or change the settings of an agent",
        "everlog configure sam --model gpt-4o --sampling temperature=0.3",
        (name, _model, settings, *ENDS),
        _CONFIGURE,
    ),
    CommandSpec(
        "fork",
        "manage.fork_command:fork",
        "create an agent from any moment of another agent's past",
        "everlog fork sam --as-of 40 --new-name sam-before-the-trip",
        (name, _fork_point, new_name, placement, json, runtime),
        _FORK,
    ),
    CommandSpec(
        "move",
        "manage.agent_commands:move",
        "move an agent to shared or dedicated placement",
        "everlog move sam --placement shared",
        (name, _new_placement, runtime),
    ),
    CommandSpec(
        "delete",
        "manage.fork_command:delete",
        "delete an agent; its records stay in the log",
        "everlog delete sam --yes",
        (name, _with_forks, yes_option, runtime),
    ),
    CommandSpec(
        "erase",
        "manage.erase_command:erase",
        "erase the content of records from all files of the store",
        "everlog erase sam --from 12 --to 14",
        (name, records, yes_option, json, runtime),
        _ERASING,
    ),
    CommandSpec(
        "export",
        "manage.export_commands:export",
        "write an agent to one file, with checksums",
        "everlog export sam sam.everlog",
        (name, _exporting, json),
        _EXPORT,
    ),
    CommandSpec(
        "restore",
        "manage.export_commands:restore",
        "restore an agent from an export, after checking the file",
        "everlog restore sam.everlog",
        (_restoring, json),
        _RESTORE,
    ),
    CommandSpec(
        "models",
        "manage.models_command:models",
        "list models and their abilities, or test one",
        "everlog models test qwen3 --base-url http://127.0.0.1:8000/v1",
        (_testing, json),
        _MODELS,
        reads_only=True,
        usage="[test MODEL]",
    ),
)
"""In the order of the help."""
