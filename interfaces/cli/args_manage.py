"""Arguments and help of the commands that create, configure, fork, move, copy and delete agents.

Used by `command_parser`, which imports every args_ file at each start of `everlog`: import nothing heavy here.
"""

import argparse

from everlog.interfaces.cli.args_grants import grant_options, tools
from everlog.interfaces.cli.args_selection import (
    label_of_all,
    label_of_each,
    name_or_pattern,
    optional_name_or_pattern,
    times,
)
from everlog.interfaces.cli.args_shared import (
    ENDS,
    base_url,
    json,
    model,
    name,
    new_name,
    opening,
    placement,
    runtime,
    settings,
    shards,
    yes_option,
)
from everlog.interfaces.cli.args_talk import (
    approval_settings,
    background_settings,
    function_rule_settings,
    group_settings,
    label_settings,
    optional_function_settings,
)
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common import argument_values

_CONFIGURE = """\
Options that are not given stay as they are. The change is one event, and the
changed settings are printed. Without options: prints the current settings. The
defaults below are those of a new agent."""

_FORK = """\
Nothing is copied, and nothing is written to the agent. The fork reads the
agent's records up to the fork point, and has a log, memories and timers of its
own from there on. The cost does not depend on the length of the log. A turn
that is open at the fork point is closed in the fork; the agent completes it.
The name of a deleted agent can be used again: NAME is then the fork, NAME@gen2,
and NAME@gen1 the deleted agent. `everlog fork sam --as-of SEQ --new-name sam`
undoes the deletion of sam."""

_ERASING = """\
Erases the content of the named records; several options add up. What goes is
listed first, with the memory blocks and settings that the agent loses. Other
records may say the same: the raw reply, a memory, a summary, a search result, a
fork, the copy of a shared block. They are listed too; --derived erases them.
The order and the number of records and the hash chain stay. This cannot be
undone. Backups and files of `everlog export` are not changed; delete them
yourself. After an interruption run the same command again. With a pattern: of
each agent that it matches, deleted ones too, after one question; --seq, --turn,
--from and --to belong to one agent."""

_EXPORT = """\
Writes one Parquet file with checksums and every record of the agent, and of its
ancestors if it is a fork. The agent may be running: the file contains the
records up to the moment the command began. Erased content is not exported, but
files that were exported before the erasure still contain it.
With a pattern: a file for each agent, in a folder, which may be new.
With --all: the whole store, deleted agents too. The same folder again: only
what has changed is written, and an interrupted export is completed.
With --af: an agent file of Letta. It has no place for archival memories, timers
and derived memories; what is left out is listed."""

_RESTORE = """\
Every byte and every record is checked first; a damaged file changes nothing.
The agent gets its name and its hash chain back. If the agent exists with the
same records, only missing records are added. A name used by another agent is
rejected. An agent that was deleted since its export comes back under its name.
If interrupted, run the same command again. A folder of `everlog export --all`
is restored file by file; one that fails does not stop the rest.
An agent file of Letta (.af) or MemGPT makes agents with its blocks, prompt,
model and messages; what cannot be carried over is listed."""

_DATASET = """\
Writes {"messages": [{role, content, ...}]} for each conversation, for training
and evaluation. Erased records never appear. Requests of models are written only
if they can be rendered to the recorded bytes; the others are counted."""

_MODELS = """\
Lists the models of models.toml (EVERLOG_MODELS, else the file in the store) and
of endpoints that were tested. `everlog models test NAME` sends a few small
requests to the endpoint, or reads the model file. The result is saved in the
store, and sets up the agents that get this model from then on."""

_RENAME = """\
Every command then takes the new name, and `everlog agents` shows it. The name
in the agent's log stays, because it is part of every digest: records, exports
and SQL have it as agent_id, and it can still be used, like all names that the
agent had. A name of another agent is refused. Deleting an agent, or erasing all
of it, frees the names that it was given."""


def _importing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="JSON lines of {role, content, time, name?, ref?}, a ChatGPT export, a .af file or MemGPT's saved agent",
    )
    parser.add_argument(
        "--format",
        metavar="FORMAT",
        choices=("auto", "jsonl", "chatgpt", "letta", "memgpt"),
        default="auto",
        help="jsonl, chatgpt, letta, memgpt or auto: recognized by the content of the file (default: auto)",
    )
    parser.add_argument(
        "--conversation", metavar="TITLE|ID", help="the conversation to import, of a file that has several"
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


def _another_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("new", metavar="NEW", help="name to use from now on")


def _new_placement(parser: argparse.ArgumentParser) -> None:
    placement(parser, None)


def _with_forks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--with-forks",
        action="store_true",
        help="also delete its forks; without this, an agent that has forks is not deleted",
    )


def _erased_records(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("records (these add up)")
    which.add_argument(
        "--match", metavar="WORDS", action="append", default=[], help="records that say these words, in any case"
    )
    which.add_argument(
        "--seq", dest="seqs", metavar="N,N-M", type=argument_values.seq_ranges, action="append", default=[],
        help="records by seq, and ranges of them, both ends inclusive",
    )  # fmt: skip
    which.add_argument(
        "--turn", dest="turns", metavar="N", type=argument_values.seq, action="append", default=[],
        help="all records of a turn",
    )  # fmt: skip
    which.add_argument(
        "--person", dest="persons", metavar="NAME", action="append", default=[],
        help="messages of a user, and what the agent said in the turns that they opened",
    )  # fmt: skip
    which.add_argument("--from", dest="first", metavar="SEQ", type=argument_values.seq, help="first record of a range")
    which.add_argument(
        "--to", dest="last", metavar="SEQ", type=argument_values.seq, help="last record of it, inclusive"
    )
    which.add_argument("--all", action="store_true", help="all records: memory and settings too")
    parser.add_argument(
        "--derived", action="store_true", help="also erase the records that say the same as the named ones"
    )
    parser.add_argument("--dry-run", action="store_true", help="list what would be erased, and change nothing")


def _exporting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="name of the agent, or a pattern; with --all: the folder"
    )
    parser.add_argument("file", metavar="FILE.everlog", nargs="?", help="file to write; for a pattern: folder")
    parser.add_argument(
        "--all", action="store_true", help="every agent, source and shared block of the store, a file each"
    )
    parser.add_argument(
        "--with-sources", action="store_true", help="include the documents of all sources that the agent can search"
    )
    parser.add_argument(
        "--af", action="store_true",
        help="write an agent file of Letta, as FILE.af does: blocks, prompt, model and messages",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _restoring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE|DIR",
        help="file that `everlog export` wrote, folder of --all, or an agent file of Letta or MemGPT",
    )
    parser.add_argument(
        "--new-name", dest="new", metavar="NEW",
        help="name of the agent, for an agent file; {n} in it stands for its number (default: the name in the file)",
    )  # fmt: skip


def _dataset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pattern", metavar="PATTERN", nargs="?", default="*", help="names of agents, with * and ? (default: all agents)"
    )
    parser.add_argument("--out", metavar="FILE", required=True, help="file to write, one JSON object per line")
    parser.add_argument(
        "--view", choices=("people", "models"), default="people",
        help="people: what users and agents said; models: each recorded request with its reply",
    )  # fmt: skip
    parser.add_argument(
        "--turns", metavar="N", type=argument_values.count,
        help="one line for each N messages of the user (default: one line for each agent)",
    )  # fmt: skip
    times(parser)
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


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
        (name, placement, shards, json, opening, group_settings),
    ),
    CommandSpec(
        "import",
        "manage.transfer.import_command:import_",
        "import past conversations; creates the agents that do not exist",
        "everlog import sam conversation.jsonl",
        (name, _importing, json, opening),
    ),
    CommandSpec(
        "configure",
        "manage.configure_command:configure",
        "show or change the settings of an agent, or change those of a pattern",
        "everlog configure sam --model gpt-4o --sampling temperature=0.3",
        (
            optional_name_or_pattern,
            _model,
            settings,
            approval_settings,
            function_rule_settings,
            optional_function_settings,
            label_settings,
            group_settings,
            background_settings,
            *ENDS,
        ),
        _CONFIGURE,
    ),
    CommandSpec(
        "tools",
        "manage.tools_command:tools",
        "list the functions that an agent may call, and which of them wait for a person",
        "everlog tools sam",
        (name, tools, grant_options, json),
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
        "rename",
        "manage.agent_commands:rename",
        "give an agent another name",
        "everlog rename sam samuel",
        (name, _another_name, json),
        _RENAME,
    ),
    CommandSpec(
        "move",
        "manage.agent_commands:move",
        "move an agent to shared or dedicated placement",
        "everlog move sam --placement shared",
        (name, label_of_each, _new_placement, json, runtime),
    ),
    CommandSpec(
        "delete",
        "manage.fork_command:delete",
        "delete an agent, or those of a pattern; their records stay in the log",
        "everlog delete 'fleet-*' --yes",
        (name_or_pattern, label_of_all, _with_forks, yes_option, json, runtime),
    ),
    CommandSpec(
        "erase",
        "manage.erase_command:erase",
        "erase the content of records from all files of the store",
        "everlog erase sam --match 4711 --derived",
        (name_or_pattern, label_of_all, _erased_records, yes_option, json, runtime),
        _ERASING,
    ),
    CommandSpec(
        "export",
        "manage.transfer.export_commands:export",
        "write an agent to one file, with checksums, or those of a pattern to a folder",
        "everlog export sam sam.everlog",
        (_exporting, label_of_all, json),
        _EXPORT,
        usage="NAME FILE.everlog, or --all DIR",
    ),
    CommandSpec(
        "dataset",
        "manage.transfer.dataset_command:dataset",
        "write conversations as JSON lines of chat messages",
        "everlog dataset 'support-*' --out conversations.jsonl --since 30d",
        (_dataset, json),
        _DATASET,
        reads_only=True,
        usage="[PATTERN]",
    ),
    CommandSpec(
        "restore",
        "manage.transfer.export_commands:restore",
        "restore an agent from an export, after checking the file",
        "everlog restore sam.everlog",
        (_restoring, json, runtime),
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
