"""The log of the program: what is written at which level, where, and what never gets into it."""

import json
import logging
from pathlib import Path

import pytest

from everlog.events import ModelError
from tests.support.cli.command_line import Line, says

SECRET = "the treasure lies under the old oak"


def lines(text: str) -> list[dict[str, str]]:
    """Return the lines of JSON of a text, without lines for people."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_commands_and_commits_are_logged_at_info(cli: Line) -> None:
    """A command's begin and end, and the types and seqs that an agent wrote, on stderr with the keys of every note."""
    cli.script.answers = [says("Hello.")]
    _, out, err = cli("--log", "info", "send", "sam", "Hi")
    found = lines(err)
    assert {frozenset(line) for line in found} == {frozenset(("time", "level", "place", "node", "what"))}
    said = [(line["place"], line["what"]) for line in found]
    assert said[0][0] == "cli" and said[0][1].startswith("everlog send begins, process ")
    assert ("agent", "'sam' wrote seq 8 to 8: user_message") in said
    assert said[-1] == ("cli", "everlog send ended with exit code 0")
    assert out.strip() == "Hello."
    assert cli("send", "sam", "Hi again")[2] == ""


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_no_line_quotes_what_was_said(cli: Line, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages, replies, memories and keys are in no line, at any level, and not in that of a failure."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-many-letters")
    cli.script.answers = [says(SECRET), ModelError(f"Bad request: {SECRET}", kind="rejected")]
    logged = cli("send", "sam", SECRET, "--log", level)[2] + cli("send", "sam", SECRET, "--log", level)[2]
    logged += cli("archive", "insert", "sam", SECRET, "--log", level)[2]
    found = lines(logged)
    assert SECRET not in json.dumps(found) and "key-of-many-letters" not in json.dumps(found)
    assert bool([line for line in found if line["level"] == "info"]) is (level in ("debug", "info"))


def test_a_failed_call_is_logged_with_its_kind(cli: Line) -> None:
    """A failed call of a model is a warning that names model, agent and kind, and not the text of the server."""
    cli.ok("create", "sam", "--model", "gpt-4o")
    cli.script.answers = [ModelError("The server said no.", kind="rejected")]
    found = lines(cli("--log", "warning", "send", "sam", "Hi")[2])
    failed = [line["what"] for line in found if line["place"] == "gateway"]
    assert len(failed) == 1
    assert failed[0].startswith("call failed (rejected) after 1 tries: 'gpt-4o' at the default endpoint, for 'sam', ")


def test_a_file_gets_the_log_and_is_private(cli: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EVERLOG_LOG_FILE is appended to, command after command, and only its owner may read it."""
    file = tmp_path / "everlog.log"
    monkeypatch.setenv("EVERLOG_LOG", "info")
    monkeypatch.setenv("EVERLOG_LOG_FILE", str(file))
    assert cli("create", "sam")[2] == ""
    assert cli("agents")[2] == ""
    begun = [line["what"].split(" begins")[0] for line in lines(file.read_text()) if "begins" in line["what"]]
    assert begun == ["everlog create", "everlog agents"]
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("EVERLOG_LOG_FILE", str(tmp_path / "no" / "folder"))
    assert "The log of the program cannot be written to" in cli.fails("agents")


def test_an_unknown_level_is_refused(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt EVERLOG_LOG is an error and not silence."""
    monkeypatch.setenv("EVERLOG_LOG", "verbose")
    assert "There is no log level 'verbose'" in cli.fails("agents")


def test_an_error_is_logged_by_its_code(cli: Line) -> None:
    """The line of a failed command has the code of the error's page, and no text of it."""
    cli.ok("create", "sam")
    found = lines(cli("--log", "error", "events", "nobody")[2])
    assert [(line["level"], line["what"]) for line in found] == [("error", "everlog events failed: unknown-agent")]


def test_a_command_leaves_no_handler_behind(cli: Line) -> None:
    """A program that calls commands in its own process keeps its own logging."""
    logger = logging.getLogger("everlog")
    before = list(logger.handlers), logger.level, logger.propagate
    cli("--log", "debug", "agents")
    assert (list(logger.handlers), logger.level, logger.propagate) == before


def test_without_a_level_nothing_is_logged(cli: Line) -> None:
    """A handler that a library gives the root logger gets no line of everlog."""
    got: list[logging.LogRecord] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = got.append  # type: ignore[method-assign]
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        cli.script.answers = [says("Hello.")]
        cli("send", "sam", "Hi")
    finally:
        root.setLevel(before)
        root.removeHandler(handler)
    assert [record.name for record in got if record.name.startswith("everlog")] == []
