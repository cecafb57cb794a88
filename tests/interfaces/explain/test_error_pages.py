"""Pages about errors: their examples run, their files are made from the pages, and `everlog explain` prints them."""

import argparse
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import make_errors
from everlog.actors.cluster.shared_block_actor import _NoAnswer
from everlog.actors.cluster.start_queue import StartQueueFull
from everlog.events import EverlogError, StoreError, UnknownAgent
from everlog.interfaces.cli.command_parser import COMMANDS, parser
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.error_output import MORE, complain
from everlog.interfaces.explain.explain_command import PAGES, messages, page_of
from tests.support.cli.command_line import Line

ROOT = Path(__file__).resolve().parents[3]
NAMES = {command.name for command in COMMANDS}
CODES = [page.code for page in PAGES]
MAKE = "run `python -m docs.make_errors`"


@pytest.mark.parametrize("page", PAGES, ids=CODES)
def test_the_example_raises_the_error(page) -> None:
    """The example ends with an error of the page's own type, and the page shows the error's message."""
    code, message = make_errors.raised_by(page)
    assert code == page.code or not page.parent
    assert message == messages()[page.code], MAKE


def test_the_pages_are_made_from_the_code() -> None:
    """docs/reference/errors equals the output of `python -m docs.make_errors`, without another file."""
    folder = ROOT / make_errors.FOLDER
    found = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert found == make_errors.pages(), MAKE
    assert set(messages()) == set(CODES), MAKE


@pytest.mark.parametrize("page", PAGES, ids=CODES)
def test_a_page_explains(page) -> None:
    """A page says in sentences what failed, why it failed and what to do."""
    for text in (page.what, *page.why, *page.fix):
        assert text[-1] == "."
        assert text[0].isupper() or text[0] in "`e-"
    assert page.why and page.fix


def options() -> set[str]:
    """Yield every option of every command."""
    whole = argparse.ArgumentParser(conflict_handler="resolve")
    whole.add_argument("--store")
    for command in COMMANDS:
        for add in command.arguments:
            add(whole)
    return set(whole._option_string_actions)


@pytest.mark.parametrize("page", PAGES, ids=CODES)
def test_a_page_names_commands_that_exist(page) -> None:
    """Every command and option that a page recommends is accepted by the parser."""
    for text in (page.what, *page.why, *page.fix):
        for command in re.findall(r"`everlog ([^`]+)`", text):
            words = [re.sub(r"^[A-Z]+$", "5000", word) for word in command.split()]
            assert " ".join(words) in NAMES or parser(words).parse_args(words).handler, command
        for option in re.findall(r"`(--[a-z-]+)", text):
            assert option in options(), option


def test_codes_are_names_of_types() -> None:
    """A public type has a code of its own, on the class and on its errors; a private type has the code of its
    parent.
    """
    assert (EverlogError.code, UnknownAgent.code, StartQueueFull.code) == (
        "everlog-error",
        "unknown-agent",
        "start-queue-full",
    )
    assert _NoAnswer.code == StoreError.code
    assert UnknownAgent("No such agent.").code == "unknown-agent"
    assert str(UnknownAgent("No such agent.")) == "No such agent."


def test_a_page_in_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`everlog explain CODE` prints the whole page within 80 columns; the name of the type works as CODE too."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["explain", "partition-busy"]) == 0
    out = capsys.readouterr().out
    assert main(["explain", "PartitionBusy"]) == 0
    assert capsys.readouterr().out == out
    flat = " ".join(out.replace("- ", "").split())
    page = page_of("partition-busy")
    for text in (page.code, page.what, *page.why, *page.fix, messages()[page.code]):
        assert " ".join(text.replace("- ", "").split()) in flat
    assert max(map(len, out.splitlines())) <= 80


def test_all_pages_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Without CODE the command lists all errors; --all prints every page; CODE together with --all is refused."""
    assert main(["explain"]) == 0
    assert {line.strip() for line in capsys.readouterr().out.splitlines()} >= set(CODES)
    assert main(["explain", "--all"]) == 0
    assert capsys.readouterr().out.count("How to fix it") == len(CODES)
    assert main(["explain", "busy", "--all"]) == 2


def test_an_unknown_code_is_answered_with_similar_ones(cli: Line) -> None:
    """The message names similar codes, and the command that lists all codes."""
    assert "Did you mean partition-busy?" in cli.fails("explain", "partition-bus")
    assert "Did you mean" not in cli.fails("explain", "zzzzz")


def test_explain_is_light() -> None:
    """`everlog explain CODE` loads neither DuckDB nor an agent."""
    heavy = ("duckdb", "lancedb", "openai", "ray", "everlog.actors.agent.agent")
    probe = "import sys; from everlog.interfaces.cli.main import main; main(['explain', 'busy'])"
    probe += f"; print(*(name for name in {heavy} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == ""


def test_an_error_ends_with_the_address_of_its_page(cli: Line) -> None:
    """The last line of an error that a command prints names a page; so does the last line for an abandoned turn."""
    cli.ok("create", "sam")
    _, _, err = cli("memory", "ann")
    assert err.splitlines()[-1] == f"{MORE}unknown-agent"
    cli.real = True
    _, _, err = cli("send", "sam", "Hello", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--day-tokens", "9")
    assert err.splitlines()[-1] == f"{MORE}over-budget"


@pytest.mark.parametrize(
    ("variable", "value", "dim"), [("TERM", "xterm", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)]
)
def test_the_address_is_dim_on_a_terminal(variable: str, value: str, dim: bool, monkeypatch) -> None:
    """Escape sequences are written only to a terminal that shows colours. A warning has no page."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr("sys.stderr", said := io.StringIO())
    said.isatty = lambda: True
    complain(UnknownAgent("No such agent."))
    complain("warning: no error.")
    more = f"{MORE}unknown-agent"
    shown = f"\x1b[2m{more}\x1b[0m" if dim else more
    assert said.getvalue() == f"everlog: No such agent.\n{shown}\neverlog: warning: no error.\n"
