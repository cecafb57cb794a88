"""`everlog sql` without a query: the prompt, queries from a pipe, and parameters."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from everlog.events import BadInput
from everlog.interfaces.cli.main import main
from everlog.interfaces.show import sql_prompt
from everlog.interfaces.show.sql_completion import suggestions
from everlog.interfaces.show.sql_prompt import ends_entry
from everlog.interfaces.show.sql_text import is_ended, queries_of, with_parameters
from everlog.store import typed_before, typed_path
from tests.support.cli.command_line import Line

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(cli: Line, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Type at the prompt of `everlog sql`, over a store with the agent sam. Return exit code, stdout and stderr."""
    cli.ok("create", "sam")

    def run(keys: str, *argv: str) -> tuple[int, str, str]:
        with monkeypatch.context() as patch, create_pipe_input() as pipe:
            patch.setenv("TERM", "xterm")
            patch.setattr("sys.stdin.isatty", lambda: True, raising=False)
            patch.setattr("sys.stdout.isatty", lambda: True, raising=False)
            with create_app_session(input=pipe, output=DummyOutput()):
                pipe.send_text(keys)
                return cli("sql", *argv)

    return run


@pytest.mark.beside_store("lines typed to a server are not kept")
def test_a_query_ends_with_a_semicolon(typed: Typed, cli: Line) -> None:
    """A query may have several lines; its answer, and the next prompt, follow; the queries are in the history."""
    code, out, _ = typed("SELECT agent_id\r, 40 + 2 AS answer FROM agents;\rSELECT 7; SELECT 8;\r\\q\r")
    assert code == 0
    assert "sam" in out and "42" in out
    assert out.index("42") < out.index("7") < out.index("8")
    assert typed_before(typed_path(cli.root, None))[0] == "SELECT agent_id\n, 40 + 2 AS answer FROM agents;"


@pytest.mark.parametrize("keys", ["\\q\r", "exit\r", "quit;\r", "\x04", "\x03\x03", "half a query\x03\x04"])
def test_the_prompt_is_left_in_every_usual_way(typed: Typed, keys: str) -> None:
    r"""\q, exit, quit, Ctrl-D and a second Ctrl-C leave; a first Ctrl-C clears what is typed."""
    assert typed(keys)[0] == 0


def test_an_error_shows_the_line_and_the_place(typed: Typed) -> None:
    """DuckDB's line and caret point into the query as it was typed; what was typed after the error is not run."""
    _, out, err = typed("SELECT agent_id,\r  nobody FROM agents; SELECT 42;\rSELECT 43;\rselec 1;\r\x04")
    lines = err.splitlines()
    at = lines.index("LINE 2:   nobody FROM agents")
    assert lines[at + 1] == " " * len("LINE 2:   ") + "^"
    assert "everlog: The query failed: Binder Error" in err.replace("\n", " ")
    assert "LINE 1: selec 1\n        ^" in err
    assert "42" not in out and "43" in out


def test_the_place_in_a_tenth_line_is_right(typed: Typed) -> None:
    """The caret stands below the fault when the number of the line has more digits, or fewer, than DuckDB counted."""
    for before in (8, 9):
        _, _, err = typed("SELECT\r" + "1,\r" * before + "nobody FROM agents;\r\x04")
        head = f"LINE {before + 2}: "
        assert f"{head}nobody FROM agents\n{' ' * len(head)}^" in err


def test_the_views_are_described(typed: Typed) -> None:
    r"""\d lists all views with their columns, \d VIEW the types; an unknown view or command is answered."""
    _, out, err = typed("\\d\r\\d turns\r\\d nothing\r\\x\r\x04")
    listed = [line.split()[0] for line in out.splitlines() if line and not line.startswith(" ")]
    assert {"agents", "records", "prices"} <= set(listed)
    assert any(line.split() == ["tokens", "BIGINT"] for line in out.splitlines())
    assert "there is no such view" in err and "There is no command \\x" in err


@pytest.mark.beside_store("the agent is created beside the store, while the prompt is open")
def test_views_are_opened_again_only_if_a_log_has_changed(cli: Line, typed: Typed, monkeypatch) -> None:
    """Each answer covers what was written before its query, and an unchanged store costs no second opening."""
    openings: list[int] = []
    real = sql_prompt.write_answer
    opened: list[sql_prompt.LiveViews] = []
    begin = sql_prompt.LiveViews.__enter__

    def enter(self: sql_prompt.LiveViews) -> sql_prompt.LiveViews:
        opened.append(self)
        return begin(self)

    def answer(*args: object) -> None:
        real(*args)  # type: ignore[arg-type]
        openings.append(opened[0].openings)
        if len(openings) == 2:
            assert main(["--store", str(cli.root), "create", "ann"], world=cli.world) == 0

    monkeypatch.setattr(sql_prompt.LiveViews, "__enter__", enter)
    monkeypatch.setattr(sql_prompt, "write_answer", answer)
    query = "SELECT 'records ' || count(*) AS n FROM records;\r"
    _, out, _ = typed(query * 3 + "\x04")
    counts = [int(line.split()[1]) for line in out.splitlines() if line.startswith("records ")]
    assert openings == [1, 1, 2]
    assert counts[0] == counts[1] < counts[2]


def test_a_cancelled_query_leaves_the_prompt_open(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during a query ends the query alone."""
    real, calls = sql_prompt.write_answer, iter((True, False))

    def answer(*args: object) -> None:
        if next(calls):
            raise RuntimeError("Query interrupted")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(sql_prompt, "write_answer", answer)
    code, out, _ = typed("SELECT 1;\rSELECT 42;\r\x04")
    assert code == 0
    assert out.index("(the query was cancelled)") < out.index("42")


def test_the_prompt_needs_a_terminal_and_no_file(typed: Typed) -> None:
    """--out is refused, because each answer would replace the one before."""
    assert typed("\x04", "--out", "x.csv", "--format", "csv")[0] == 2


def test_queries_come_from_a_pipe(cli: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a query stdin is read: each query is answered; a file of answers takes one only."""
    cli.ok("create", "sam")
    text = "SELECT 41 + 1; -- a comment; with a semicolon\nSELECT ';' AS mark;\n"
    for argv in ((), ("-",)):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        out = cli.ok("sql", *argv)
        assert out.index("42") < out.index(";")
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert [one["rows"] for one in cli.lines("sql")] == [[[42]], [[";"]]]
    (tmp_path / "two.sql").write_text(text)
    assert "holds one answer, not 2" in cli.fails("sql", "--file", str(tmp_path / "two.sql"), "--format", "csv")


def test_parameters_are_values_and_nothing_else(cli: Line) -> None:
    """A value is compared as the type beside it, and cannot end the text that it stands in."""
    cli.ok("create", "sam")
    query = "SELECT agent_id FROM agents WHERE agent_id = $who AND events > $least"
    assert cli.json("sql", query, "--param", "who=sam", "--param", "least=2")["rows"] == [["sam"]]
    assert cli.json("sql", query, "--param", "who=x' OR true --", "--param", "least=2")["rows"] == []
    assert "--param least=VALUE" in cli.fails("sql", query, "--param", "who=sam")
    assert "no query names $which" in cli.fails("sql", "SELECT 1", "--param", "which=sam")
    assert cli("sql", query, "--param", "who")[0] == 2


def test_texts_and_comments_hide_semicolons_and_parameters() -> None:
    """A semicolon or a parameter in quotes or comments ends no query and takes no value."""
    hidden = """SELECT ';$a', "x;$a", $$ ;$a $$, $t$ ;$a $$ $t$, e'\\';$a' /* ;$a */ -- ;$a"""
    assert queries_of(f"{hidden}\n; SELECT 2;; -- end") == [hidden, "SELECT 2"]
    assert with_parameters(hidden, {}) == hidden
    assert with_parameters("$a+$b", {"a": "it's", "b": "$a"}) == "'it''s'+'$a'"
    with pytest.raises(BadInput, match=r"\$c, which has no value"):
        with_parameters("$c", {"a": "1"})


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("SELECT 1;", True), ("SELECT 1; -- done", True), ("SELECT 1;\n", True), ("SELECT 1", False),
        ("SELECT ';", False), ("SELECT 1; SELECT 2", False), ("SELECT $$;", False), ("/* ;", False), ("-- ;", False),
    ],
)  # fmt: skip
def test_an_entry_ends_after_a_semicolon(text: str, ended: bool) -> None:
    """A semicolon counts outside of texts and comments; nothing but a comment may follow it."""
    assert is_ended(text) is ended
    assert ends_entry(text) is ended


def test_tab_suggests_views_columns_and_words() -> None:
    """Views follow FROM, columns of the named views a letter, columns of one view its name or alias and a point."""
    columns = {"agents": [("agent_id", "VARCHAR"), ("events", "BIGINT")], "turns": [("tokens", "BIGINT")]}

    def texts(before: str) -> list[str]:
        return [found.text for found in suggestions(before, columns)]

    assert texts("SELECT 1 FROM ") == ["agents", "turns"]
    assert texts("select 1 from t") == ["turns"]
    assert texts("SELECT turns.") == ["tokens"]
    assert texts("SELECT 1 FROM agents a JOIN turns AS t ON t.to") == ["tokens"]
    assert texts("SELECT 1 FROM agents WHERE ev") == ["events"]
    assert texts("SELECT ev") == ["events"]
    assert texts("sel") == ["select"] and texts("SEL") == ["SELECT"]
    assert texts("\\") == ["\\d", "\\?", "\\q"] and texts("\\d t") == ["turns"]
    assert texts("SELECT ") == []
