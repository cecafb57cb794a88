"""Commands that can be typed, and the documentation of each."""

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.interfaces.cli.command_parser import COMMANDS, GROUPS, parser
from everlog.interfaces.cli.main import main
from everlog.store import FileStore
from tests.support.cli.command_line import Line, whole_parser

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
NAMES = [command.name for command in COMMANDS]


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_every_command_helps_with_an_example(command, capsys):
    """`everlog COMMAND --help` exits 0 and ends with an example that the parser accepts."""
    assert main([*command.name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert "example:" in out
    assert command.example in out
    words = re.findall(r'"[^"]*"|\S+', command.example)[1:]
    assert whole_parser().parse_args([word.strip('"') for word in words]).handler == command.handler


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_every_command_and_option_is_documented(command):
    """`docs/reference/cli.md` has a section for every command and names every option of it."""
    assert f"## everlog {command.name}" in DOCUMENT
    sub = argparse.ArgumentParser()
    for add in command.arguments:
        add(sub)
    for option in (o for action in sub._actions for o in action.option_strings if o.startswith("--")):
        assert option == "--help" or f"`{option}" in DOCUMENT, option


def options() -> Iterator[tuple[str, argparse.Action]]:
    """Yield every option of every command with its definition."""
    for command in COMMANDS:
        sub = argparse.ArgumentParser(add_help=False)
        for add in command.arguments:
            add(sub)
        for action in sub._actions:
            yield from ((option, action) for option in action.option_strings)


WIDER = {
    "--from": {"SEQ", "SEQ|TIME", "STEP"},
    "--as-of": {"SEQ|TIME", "TIME", "VERSION|TIME"},
    "--since": {"DAY", "TIME"},
    "--until": {"DAY", "TIME"},
}
"""Options that take more kinds of value in one command than in another."""


def test_an_option_is_the_same_in_every_command():
    """An option has one name in the code, one word for its value, and the same other forms in every command."""
    found = defaultdict(set)
    for option, action in options():
        metavar = "any" if action.metavar in WIDER.get(option, ()) else action.metavar
        found[option].add((action.dest, metavar, tuple(action.option_strings)))
    assert {option: ways for option, ways in found.items() if len(ways) > 1} == {}
    for option, metavars in WIDER.items():
        assert {action.metavar for name, action in options() if name == option} == metavars


def test_a_short_option_is_short_for_one():
    """Each short option stands for one long option: -f is --follow everywhere."""
    longer = defaultdict(set)
    for option, action in options():
        if not option.startswith("--"):
            longer[option].add(action.option_strings[-1])
    assert longer == {"-f": {"--follow"}, "-v": {"--verbose"}, "-y": {"--yes"}}


def test_the_table_of_options_is_true():
    """Each option of the table in `docs/cli.md` takes the value that the table shows."""
    section = DOCUMENT.split("## Options that mean the same everywhere")[1].split("\n## ")[0]
    column = " ".join(re.findall(r"^\| (`-.*?) \| [^|]* \| [^|]* \|$", section.replace("\\|", "/"), re.MULTILINE))
    written = [(option, value.replace("/", "|")) for option, value in re.findall(r"`(--[a-z-]+)(?: ([^`]+))?`", column)]
    assert len(written) > 25
    known = defaultdict(set)
    for option, action in options():
        known[option].add(action.metavar)
    known["--store"].add("DIR")
    known["--log"].add("LEVEL")
    assert [one for one in written if (one[1] or None) not in known[one[0]]] == []


def test_the_page_gives_one_default_for_calling():
    """The two tables that have --calling, the made one and the one by hand, begin with the same default."""
    defaults = re.findall(r"^\| `--calling WAY` \|.*\| ([^|]*) \|$", DOCUMENT, re.MULTILINE)
    assert len(set(defaults)) == 2
    assert all(default.startswith("the best that the model supports") for default in defaults)


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_only_the_parser_of_the_command_is_made(command, monkeypatch):
    """A named command builds its own parser, that of its group and the top one; --store may come first."""
    made = []
    whole = argparse.ArgumentParser.__init__

    def counted(self, *args, **options):
        made.append(self)
        whole(self, *args, **options)

    words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command.example)[1:]]
    expected = vars(whole_parser().parse_args(["--store", "s", *words]))
    monkeypatch.setattr(argparse.ArgumentParser, "__init__", counted)
    for argv in (["--store", "s", *words], ["--store=s", *words], [words[0], "--store", "s", *words[1:]]):
        made.clear()
        parsed = vars(parser(argv).parse_args(argv))
        assert len(made) == 2 + command.name.count(" ")
        assert {**parsed, "fail": None} == {**expected, "fail": None}


@pytest.mark.parametrize(
    ("argv", "near"),
    [
        (["nonsense"], ""),
        (["archive", "nonsense"], ""),
        (["sned", "sam", "hi"], "did you mean `everlog send`?"),
        (["archive", "serch", "sam"], "did you mean `everlog archive search`?"),
        (["insert", "sam", "hi"], "did you mean `everlog archive insert`?"),
        (["creat"], "did you mean `everlog create` or `everlog shared create` or `everlog keys create`?"),
        (["archve"], "did you mean `everlog archive`?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_unknown_command_is_answered_with_similar_ones(argv, near, cli: Line):
    """The error names commands with a similar name, and not all commands."""
    code, _, err = cli(*argv)
    reason, usage = err.splitlines()
    assert code == 2
    assert reason.startswith("everlog: there is no command ")
    assert reason.endswith(near or ".")
    assert ("did you mean" in reason) == bool(near)
    assert usage.startswith("usage: everlog ")


def test_a_usage_error_gives_its_reason_first_and_one_line_of_usage(cli: Line):
    """The reason comes before the usage, which names the arguments and where the options are listed."""
    cli.ok("create", "sam")
    assert cli("send", "sam")[2].splitlines() == [
        "everlog: TEXT is missing: --role user needs a text",
        "usage: everlog send NAME TEXT [options]; `everlog send --help` lists the options",
    ]
    assert cli("fork", "sam")[2].splitlines()[1].startswith("usage: everlog fork NAME --new-name NEW [options]; ")
    assert cli("agents", "--fast")[2].splitlines() == [
        "everlog: unrecognized arguments: --fast",
        "usage: everlog agents [PATTERN ...] [options]; `everlog agents --help` lists the options",
    ]


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_help_has_one_form(command, capsys):
    """Defaults are written as "(default: x)", and options that can be repeated as "; repeatable"."""
    assert main([*command.name.split(), "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "(repeatable" not in out
    for what in re.findall(r"\(default[^)]*\)", out):
        assert re.match(r"\(default( limit)?: .", what), what


def keys_of(value: object) -> set[str]:
    """Return every key of a JSON value, except those inside payloads and chat messages."""
    if isinstance(value, list):
        return {key for item in value for key in keys_of(item)}
    if not isinstance(value, dict):
        return set()
    inner = {k: v for k, v in value.items() if k not in ("payload", "tool_calls")}
    return set(value) | keys_of(list(inner.values()))


def failed_seal(cli: Line) -> object:
    """Return the output of `log seal --all --json` while a log is open in another process."""
    log = FileStore(cli.root, cli.clock.now).open("bob", "everlog chat")
    try:
        code, out, _ = cli("log", "seal", "--all", "--json")
    finally:
        log.close()
    assert code == 1
    return json.loads(out)


def test_every_json_key_is_documented(cli: Line, tmp_path):
    """Every key that a command prints with --json is named in `docs/reference/cli.md`."""
    talk = tmp_path / "talk.jsonl"
    talk.write_text('{"role":"user","content":"I sail","time":"2024-01-01","ref":"a"}\n')
    queries = tmp_path / "queries.txt"
    queries.write_text("sail\n")
    empty = tmp_path / "empty.txt"
    empty.touch()
    printed = [
        cli.json("create", "ann"),
        *cli.lines("send", "sam", "hello sail"),
        cli.json("agents"),
        cli.json("context", "sam"),
        cli.json("memory", "sam"),
        cli.json("pressure", "sam"),
        cli.json("search", "sam", "sail"),
        cli.json("import", "bob", str(talk)),
        cli.json("load", "sam", str(talk), "--source", "talk"),
        json.loads(cli("load", "sam", str(empty), "--json")[1]),
        cli.json("sources"),
        cli.json("sources", "--source", "talk"),
        cli.json("attach", "ann", "talk"),
        cli.json("verify", "sam"),
        cli.json("rebuild", "sam"),
        cli.json("log", "check", "sam", "--deep"),
        cli.json("log", "stats", "sam"),
        cli.json("log", "stats", "--all"),
        cli.json("log", "seal", "sam"),
        cli.json("sql", "SELECT 1 AS one"),
        cli.json("report"),
        cli.json("archive", "search", "sam", "sail"),
        cli.json("archive", "status"),
        cli.json("archive", "check"),
        cli.json("archive", "rebuild"),
        cli.json("export", "sam", str(tmp_path / "sam.everlog")),
        cli.json("restore", str(tmp_path / "sam.everlog")),
        cli.json("erase", "sam", "--all", "--yes"),
        failed_seal(cli),
        json.loads(cli.ok("search", "sam", "--queries", str(queries))),
    ]
    assert {key for key in keys_of(printed) if f"`{key}`" not in DOCUMENT} == set()


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_help_fits_the_terminal(command, capsys, monkeypatch):
    """No line of help is wider than a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command.name.split(), "--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_commands_lists_them_with_examples(group, capsys, monkeypatch):
    """`everlog log --help` names each of its commands with an example; `everlog log` alone is bad usage."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([group, "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    mine = [command for command in COMMANDS if command.name.startswith(f"{group} ")]
    assert mine
    for command in mine:
        assert command.example in out
        assert command.summary in " ".join(out.split())
    assert main([group]) == 2


def test_help_is_light():
    """`everlog --help` loads neither DuckDB nor pyarrow nor rich."""
    heavy = ("duckdb", "pyarrow", "rich", "openai", "lancedb", "wordllama", "ray", "asyncio")
    probe = "import sys; from everlog.interfaces.cli.main import main; main(['--help'])"
    probe += f"; print(*(name for name in {heavy} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == ""


def test_send_is_thin():
    """`everlog send` to the embedded model loads neither openai nor lancedb nor ray."""
    probe = (
        "import sys, everlog.interfaces.talk.send, everlog.interfaces.output.terminal_output\n"
        "import everlog.actors.agent.local_system;"
        "print(*(n for n in ('openai', 'lancedb', 'wordllama', 'ray') if n in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not run.stdout.strip()


@pytest.mark.parametrize(
    "argv",
    [
        ["nonsense"],
        ["--json"],
        ["--json", "chat", "sam"],
        ["--log", "loud", "agents"],
        ["help", "nonsense"],
        ["help", "log", "nonsense"],
        ["completion"],
        ["completion", "csh"],
        ["export", "sam"],
        ["export", "--all"],
        ["export", "--all", "a", "b"],
        ["send", "sam"],
        ["send", "sam", "  "],
        ["send", "sam", "hi", "--id", "not-an-id"],
        ["search", "sam"],
        ["search", "sam", "x", "--queries", "y"],
        ["search", "sam", "x", "--page", "-1"],
        ["search", "sam", "x", "--page", "0"],
        ["search", "sam", "x", "--page", "1000001"],
        ["search", "sam", "x", "--page", "9" * 30],
        ["events", "sam", "--from", "9" * 30],
        ["events", "sam", "--to", "9" * 5000],
        ["create", "bob", "--window", "0"],
        ["create", "bob", "--window", "-5"],
        ["create", "bob", "--window", "100000001"],
        ["create", "bob", "--zone", ""],
        ["create", "bob", "--model", " "],
        ["verify"],
        ["verify", "sam", "--all"],
        ["events", "sam", "--from", "0"],
        ["create", "sam", "--block", "notes"],
        ["delete"],
        ["log"],
        ["log", "check"],
        ["log", "seal", "sam", "--all"],
        ["log", "stats", "sam", "--deep"],
        ["erase", "sam", "--from", "0", "--yes"],
        ["erase", "sam"],
        ["load", "sam"],
        ["attach", "sam"],
        ["sources", "sam", "--source", "x"],
    ],
    ids=lambda argv: " ".join(argv)[:60],
)
def test_bad_usage_exits_2(argv, cli: Line):
    """A command line that cannot be parsed exits 2 and shows the usage of the command."""
    cli.ok("create", "sam")
    code, _, err = cli(*argv)
    assert code == 2
    assert "usage: everlog" in err


def test_store_can_be_named_before_and_after(cli: Line, tmp_path, capsys, monkeypatch):
    """--store is accepted before the command and after it; without --store, EVERLOG_STORE names the store."""
    cli.ok("create", "sam")
    store = str(cli.root)
    assert main(["--store", store, "agents", "--json"], world=cli.world) == 0
    assert main(["agents", "--json", "--store", store], world=cli.world) == 0
    monkeypatch.setenv("EVERLOG_STORE", store)
    assert main(["agents", "--json"], world=cli.world) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1
