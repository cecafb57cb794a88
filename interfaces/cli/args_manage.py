"""The commands that make, change and end agents and what they remember: their arguments and what the help says of
them. Imports nothing heavy.
"""

import argparse

from everlog.interfaces.cli.args_shared import (
    CommandSpec,
    as_of,
    base_url,
    block_options,
    filters,
    json,
    model,
    name,
    new_name,
    opening,
    placement,
    query,
    records,
    runtime,
    settings,
    shards,
    tags,
    text,
    tools,
    variables,
    words,
    yes,
)
from everlog.interfaces.common import argument_values

_CONFIGURE = """\
What is not named stays as it is. The change is one event; what it changed is
printed. Without options: how the agent is set up."""
_PROMPT_SHOW = """\
With a SECTION: its template, and what it gives. A section is counted in
characters and in tokens as they are estimated."""
_PROMPT_SETTING = """\
The text may be a template: docs/prompts.md says what it can hold. A template
that is wrong is refused with its line, and nothing is changed."""
_PROMPT_RENDER = """\
It is done by itself where the model, its window, the zone or the functions
change; do it by hand after a change of memory blocks that a template shows."""
_BLOCK_EDITING = """\
No turn is run: it is one event, and the model sees it in its next request. A
turn that runs is waited for. `everlog memory NAME` shows the blocks."""
_BLOCK_REMOVING = """\
The agent no longer sees it. The log still says what it held, and `--as-of`
shows it."""
_SHARED_CREATING = """\
A shared block is a memory block that several agents have in their core memory:
what one writes there, all read before their next answer. `everlog shared
attach` gives it to an agent."""
_SHARED_SETTING = """\
Agents that follow it read it before their next answer. --base refuses to undo
what somebody wrote since you looked (`everlog shared show`)."""
_SHARED_ATTACHING = """\
No turn is run. From its next request on the agent reads the block, and what it
writes there with core_memory_append, core_memory_replace and core_memory_remove
is read by all who follow it."""
_SHARED_DELETING = """\
Agents that follow it keep what it said, are told that it is gone, and can no
longer edit it. Its log stays, and `everlog shared create` goes on with it."""
_SHARED_HISTORY = """\
An edit that was erased (`everlog erase block:NAME`) says so. Copies stand in
the logs of agents, and are erased there."""
_ARCHIVE_KEEPING = """\
No turn is run and no model is asked: the agent finds it by its own search from
its next request on. A text that a memory holds already is not kept again."""
_ARCHIVE_DELETING = """\
It is no longer found. The log still says what it was, and `--as-of` shows it;
`everlog erase` takes it out of the log too."""
_ARCHIVE_SEARCHING = """\
Finds what archival_memory_search finds, documents of the agent's sources
included. A "phrase in quotes" is looked for exactly as it stands."""
_ARCHIVE_REBUILDING = """\
The old index answers until the new one takes its place. What was embedded once
by the same model is not embedded again. OPENAI_API_KEY is the endpoint's key."""
_LOAD = """\
Reads txt, md, html, pdf, docx, csv, json and jsonl, and folders of them. What
is in the source already, word for word, is left as it is. A file that cannot be
read is named and the rest goes on (exit code 1). The agent is made if need be,
and can search the source from then on, as can others after `everlog attach`."""
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


def _section(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", type=argument_values.words, help="name of the section")


def _any_section(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", nargs="?", help="name of one section (all)")


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--place", metavar="N", type=argument_values.count, help="its place, from 1 (the last)")


def _new_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="N", type=argument_values.count, help="its new place, from 1")


def _preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", metavar="PRESET", default="chat", help="which preset: chat, docs, extras (chat)")


def _label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("label", metavar="LABEL", type=argument_values.words, help="label of the memory block")


def _block(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("block", metavar="BLOCK", type=argument_values.words, help="name of the shared block")


def _base(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="VERSION", type=int, help="only if this is still its version")


def _version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of", metavar="VERSION|TIME", help="as it was at this version, at this ISO time, or so long ago (2h)"
    )


def _own_label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--label", metavar="LABEL", default="", help="what the agent calls it (the block's own name)")


def _memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "memory", metavar="ID", type=argument_values.words, help="id of the memory, as `archive list` shows it"
    )


def _no_tags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-tags", action="store_true", help="take its tags away (without --tag they stay)")


def _embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="MODEL",
        type=argument_values.words,
        help="whose vectors: `wordllama-256` (offline), or a model of an endpoint (the one that it has)",
    )
    base_url(parser)


def _loading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", help="files and folders; with --sql: databases of DuckDB that it reads"
    )
    parser.add_argument("--source", metavar="SOURCE", help="the source to load into (that of the agent's own name)")
    parser.add_argument(
        "--sql", metavar="QUERY", help="load each row of a SELECT over Parquet, CSV, JSON or a database of DuckDB"
    )
    parser.add_argument(
        "--prune", action="store_true", help="take out what was loaded from there before and is there no longer"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def _source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="name of the source")


def _cut(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--as-of", metavar="SEQ|TIME", help="the cut: the last record that both share (the newest)")


def _new_home(parser: argparse.ArgumentParser) -> None:
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


_ENDS = (tools, json, runtime)

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
        (name, _model, settings, *_ENDS),
        _CONFIGURE,
    ),
    CommandSpec(
        "prompt show",
        "manage.section_commands:show",
        "show the sections of a system prompt",
        "everlog prompt show sam",
        (name, _any_section, as_of, json),
        _PROMPT_SHOW,
    ),
    CommandSpec(
        "prompt add",
        "manage.section_commands:add",
        "add a section",
        "everlog prompt add sam manners --file manners.md --place 2",
        (name, _section, text, variables, _place, *_ENDS),
        _PROMPT_SETTING,
    ),
    CommandSpec(
        "prompt set",
        "manage.section_commands:set_",
        "give a section another text",
        'everlog prompt set sam tools "You are on {{ model }}."',
        (name, _section, text, variables, *_ENDS),
        _PROMPT_SETTING,
    ),
    CommandSpec(
        "prompt move",
        "manage.section_commands:move",
        "put a section at another place",
        "everlog prompt move sam memory 1",
        (name, _section, _new_place, *_ENDS),
    ),
    CommandSpec(
        "prompt hide",
        "manage.section_commands:hide",
        "keep a section, and leave it out of the prompt",
        "everlog prompt hide sam tools",
        (name, _section, *_ENDS),
    ),
    CommandSpec(
        "prompt unhide",
        "manage.section_commands:unhide",
        "take a hidden section into the prompt again",
        "everlog prompt unhide sam tools",
        (name, _section, *_ENDS),
    ),
    CommandSpec(
        "prompt remove",
        "manage.section_commands:remove",
        "remove a section",
        "everlog prompt remove sam tools",
        (name, _section, *_ENDS),
    ),
    CommandSpec(
        "prompt reset",
        "manage.section_commands:reset",
        "go back to a preset, with its functions",
        "everlog prompt reset sam",
        (name, _preset, *_ENDS),
    ),
    CommandSpec(
        "prompt render",
        "manage.section_commands:render",
        "render the templates again",
        "everlog prompt render sam",
        (name, *_ENDS),
        _PROMPT_RENDER,
    ),
    CommandSpec(
        "block add",
        "manage.block_commands:add",
        "give an agent another memory block",
        'everlog block add sam rules "Be kind." --read-only --limit 500',
        (name, _label, text, block_options, json, runtime),
        _BLOCK_EDITING,
    ),
    CommandSpec(
        "block set",
        "manage.block_commands:set_",
        "change a memory block: value, limit, description, protection",
        'everlog block set sam rules "Be kind and brief."',
        (name, _label, text, block_options, json, runtime),
        _BLOCK_EDITING,
    ),
    CommandSpec(
        "block remove",
        "manage.block_commands:remove",
        "take a memory block out of core memory",
        "everlog block remove sam rules",
        (name, _label, json, runtime),
        _BLOCK_REMOVING,
    ),
    CommandSpec(
        "shared create",
        "manage.shared_commands:create",
        "make a memory block that agents can share",
        'everlog shared create team "The captain is Ann." --limit 4000',
        (_block, text, block_options, json, runtime),
        _SHARED_CREATING,
    ),
    CommandSpec(
        "shared list",
        "manage.shared_commands:listed",
        "list the shared blocks, and who follows each",
        "everlog shared list",
        (json,),
    ),
    CommandSpec(
        "shared show",
        "manage.shared_commands:show",
        "show what a shared block says, now or then",
        "everlog shared show team --as-of 2h",
        (_block, _version, json),
    ),
    CommandSpec(
        "shared set",
        "manage.shared_commands:set_",
        "rewrite a shared block",
        'everlog shared set team "The captain is Bob."',
        (_block, text, _base, json, runtime),
        _SHARED_SETTING,
    ),
    CommandSpec(
        "shared describe",
        "manage.shared_commands:describe",
        "change the limit, description or protection of a shared block",
        'everlog shared describe team --description "Who is who on board"',
        (_block, block_options, json, runtime),
    ),
    CommandSpec(
        "shared attach",
        "manage.shared_commands:attach",
        "have an agent follow a shared block",
        "everlog shared attach sam team",
        (name, _block, _own_label, json, runtime),
        _SHARED_ATTACHING,
    ),
    CommandSpec(
        "shared detach",
        "manage.shared_commands:detach",
        "take a shared block out of an agent's core memory",
        "everlog shared detach sam team",
        (name, _block, json, runtime),
    ),
    CommandSpec(
        "shared history",
        "manage.shared_commands:history",
        "list every edit of a shared block, and who made it",
        "everlog shared history team",
        (_block, json),
        _SHARED_HISTORY,
    ),
    CommandSpec(
        "shared delete",
        "manage.shared_commands:delete",
        "end a shared block; what agents know of it stays",
        "everlog shared delete team",
        (_block, json, runtime),
        _SHARED_DELETING,
    ),
    CommandSpec(
        "archive insert",
        "manage.archive_commands:insert",
        "keep a text in an agent's archival memory",
        'everlog archive insert sam "The gold is under the oak" --tag gold',
        (name, text, tags, json, runtime),
        _ARCHIVE_KEEPING,
    ),
    CommandSpec(
        "archive list",
        "manage.archive_commands:listed",
        "list what an agent keeps, in order",
        "everlog archive list sam --tag gold",
        (name, filters, as_of, json),
    ),
    CommandSpec(
        "archive show",
        "manage.archive_commands:show",
        "show one memory whole",
        "everlog archive show sam 01a3b6c2-4f00-7000-8000-000000000001",
        (name, _memory, as_of, json),
    ),
    CommandSpec(
        "archive update",
        "manage.archive_commands:update",
        "put another text in the place of a memory",
        'everlog archive update sam 01a3b6c2-4f00-7000-8000-000000000001 "The elm"',
        (name, _memory, text, tags, _no_tags, json, runtime),
    ),
    CommandSpec(
        "archive delete",
        "manage.archive_commands:delete",
        "delete a memory",
        "everlog archive delete sam 01a3b6c2-4f00-7000-8000-000000000001",
        (name, _memory, json, runtime),
        _ARCHIVE_DELETING,
    ),
    CommandSpec(
        "archive search",
        "manage.archive_commands:search",
        "search what an agent keeps, and the documents that it can read",
        'everlog archive search sam "where is the gold" --since 2024-01-01',
        (name, query, filters, words, as_of, json),
        _ARCHIVE_SEARCHING,
    ),
    CommandSpec(
        "archive status",
        "manage.index_commands:status",
        "tell how far the index of all memories is, and whose vectors it has",
        "everlog archive status",
        (json,),
    ),
    CommandSpec(
        "archive check",
        "manage.index_commands:check",
        "hold the index of all memories against the logs, row for row",
        "everlog archive check",
        (json,),
    ),
    CommandSpec(
        "archive rebuild",
        "manage.index_commands:rebuild",
        "make the index of all memories anew, from the logs alone",
        "everlog archive rebuild --embedder text-embedding-3-small",
        (_embedder, json),
        _ARCHIVE_REBUILDING,
    ),
    CommandSpec(
        "load",
        "manage.document_commands:load",
        "load documents into a source, for an agent to search",
        "everlog load sam handbook/ --source handbook",
        (name, _loading, json, opening),
        _LOAD,
    ),
    CommandSpec(
        "attach",
        "manage.document_commands:attach",
        "let an agent search a source",
        "everlog attach ann handbook",
        (name, _source, json, runtime),
    ),
    CommandSpec(
        "detach",
        "manage.document_commands:detach",
        "keep a source from an agent",
        "everlog detach ann handbook",
        (name, _source, json, runtime),
    ),
    CommandSpec(
        "fork",
        "manage.fork_command:fork",
        "begin another agent as what this one was at any moment",
        "everlog fork sam --as-of 40 --new-name sam-before-the-trip",
        (name, _cut, new_name, placement, json, runtime),
        _FORK,
    ),
    CommandSpec(
        "move",
        "manage.agent_commands:move",
        "let an agent live among others, or by itself",
        "everlog move sam --placement shared",
        (name, _new_home, runtime),
    ),
    CommandSpec(
        "delete",
        "manage.fork_command:delete",
        "end an agent; its records stay",
        "everlog delete sam --yes",
        (name, _with_forks, yes, runtime),
    ),
    CommandSpec(
        "erase",
        "manage.erase_command:erase",
        "take out what records say, in every file; their places stay",
        "everlog erase sam --from 12 --to 14",
        (name, records, yes, json, runtime),
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
