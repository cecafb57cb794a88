"""Arguments of the commands that create, configure, fork, move, copy and end agents."""

import argparse

from everlog.interfaces.cli.args_shared import (
    ENDS,
    CommandSpec,
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

_CONFIGURE = """\
What is not named stays as it is. The change is one event; what it changed is
printed. Without options: how the agent is set up."""

_FORK = """\
Nothing is copied and nothing is written to the agent: the fork reads it up to
the cut, and goes on by itself, with a log, memories and timers of its own. It
costs the same however long the log is. A turn that was open at the cut is
closed in the fork; what it had begun stays with the agent."""

_ERASING = """\
All records up to the head, or those of --from and --to. Order, counts and the
chain stay as they were; search, memory and context know nothing of them any
more. It cannot be undone. What other records repeat of them (the model's reply,
a summary) is content of those: erase them too. Backups, and files of `everlog
export`, are yours to look after."""

_EXPORT = """\
One Parquet file with every record of the agent, its ancestors' too if it is a
fork, and checksums. The agent may be at work meanwhile: what it had when the
command began is in it. Words that were erased are not; files that were exported
before an erasure still have them."""

_RESTORE = """\
Every byte and every record is checked first; a file that is damaged changes
nothing. An agent comes back under its own name with the same chain. One that is
here already with these records is left as it is, and gets those that it lacks;
a name that is somebody else here is refused. After an interruption, say it
again."""

_MODELS = """\
Those of models.toml (EVERLOG_MODELS, else in the store), and those of endpoints
that were asked what they can do. `everlog models test NAME` asks: a few small
requests to the endpoint, or a look into the file. What is found is kept in the
store, and agents that get this model from then on are set up by it."""


def _importing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.jsonl", help="lines of {role, content, time, name?, ref?}")
    parser.add_argument("--again", action="store_true", help="import it although every ref in it is known already")


def _model(parser: argparse.ArgumentParser) -> None:
    model(parser, "the model that is asked from now on")


def _fork_point(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--as-of", metavar="SEQ|TIME", help="the cut: the last record that both share (the newest)")


def _new_placement(parser: argparse.ArgumentParser) -> None:
    placement(parser, None)


def _with_forks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--with-forks", action="store_true", help="end its forks too, which else keep it from ending")


def _exporting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.everlog", help="the file to write")
    parser.add_argument(
        "--with-sources", action="store_true", help="with the documents of all sources that it can search"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def _restoring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.everlog", help="a file that `everlog export` made")


def _testing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", metavar="test", nargs="?", choices=("test",), help="ask what a model can do")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="the model that is tested")
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
        "import a past conversation; creates the agent if need be",
        "everlog import sam conversation.jsonl",
        (name, _importing, json, opening),
    ),
    CommandSpec(
        "configure",
        "manage.configure_command:configure",
        "change how an agent is set up",
        "everlog configure sam --model gpt-4o --sampling temperature=0.3",
        (name, _model, settings, *ENDS),
        _CONFIGURE,
    ),
    CommandSpec(
        "fork",
        "manage.fork_command:fork",
        "begin another agent as what this one was at any moment",
        "everlog fork sam --as-of 40 --new-name sam-before-the-trip",
        (name, _fork_point, new_name, placement, json, runtime),
        _FORK,
    ),
    CommandSpec(
        "move",
        "manage.agent_commands:move",
        "let an agent live among others, or by itself",
        "everlog move sam --placement shared",
        (name, _new_placement, runtime),
    ),
    CommandSpec(
        "delete",
        "manage.fork_command:delete",
        "end an agent; its records stay",
        "everlog delete sam --yes",
        (name, _with_forks, yes_option, runtime),
    ),
    CommandSpec(
        "erase",
        "manage.erase_command:erase",
        "take out what records say, in every file; their places stay",
        "everlog erase sam --from 12 --to 14",
        (name, records, yes_option, json, runtime),
        _ERASING,
    ),
    CommandSpec(
        "export",
        "manage.export_commands:export",
        "write an agent into one file, with checksums",
        "everlog export sam sam.everlog",
        (name, _exporting, json),
        _EXPORT,
    ),
    CommandSpec(
        "restore",
        "manage.export_commands:restore",
        "take in what an export holds, checked on the way in",
        "everlog restore sam.everlog",
        (_restoring, json),
        _RESTORE,
    ),
    CommandSpec(
        "models",
        "manage.models_command:models",
        "list models and what they can do, or test one",
        "everlog models test qwen3 --base-url http://127.0.0.1:8000/v1",
        (_testing, json),
        _MODELS,
    ),
)
"""In the order of the help."""
