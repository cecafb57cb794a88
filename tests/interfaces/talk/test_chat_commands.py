"""Slash commands of a chat: the word that is meant, completion, and /edit, /file, /save."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from everlog.events import BadInput, ModelError
from everlog.interfaces.cli.command_parser import COMMANDS as EVERLOG
from everlog.interfaces.talk.chat_commands import COMMANDS, command_of, help_text, suggestions, unknown_command
from everlog.interfaces.talk.chat_terminal import chat_words
from everlog.interfaces.talk.written_text import edited_text
from everlog.store import typed_before, typed_path
from tests.support.cli.command_line import Line, says

Talk = Callable[..., tuple[int, str, str]]


@pytest.fixture
def chat(cli: Line, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Chat with lines on stdin, which is not a terminal."""

    def talk(*lines: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return cli("chat", "sam")

    return talk


def test_a_beginning_that_fits_one_command_is_that_command() -> None:
    """A unique beginning runs the command; one that fits several, a lone slash, and a typing error run none."""
    assert command_of("/press") == "/pressure"
    assert command_of("/memory") == "/memory"
    assert command_of("/quit") == "/exit"
    assert [command_of(word) for word in ("/mem", "/e", "/", "/memroy")] == [""] * 4


def test_a_mistyped_command_is_answered_with_the_command_that_was_meant() -> None:
    """The answer names what the word begins, or what it resembles; else /help."""
    assert unknown_command("/mem").endswith("Did you mean /memory or /memorywarning?")
    assert unknown_command("/memroy").endswith("Did you mean /memory?")
    assert "/help lists the commands" in unknown_command("/xyzzy")


def test_memgpts_other_commands_are_answered_with_what_does_it_here() -> None:
    """Each chat command of MemGPT is a command here, or its answer names commands that exist; the help names them."""
    memgpts = [
        *("exit", "save", "savechat", "attach", "dump", "dumpraw", "memory", "model", "pop", "retry", "rethink"),
        *("rewrite", "summarize", "heartbeat", "memorywarning", "systemswap", "wipe", "load", "help"),
    ]
    known = {one.name for one in COMMANDS}
    for name in memgpts:
        word = f"/{name}"
        if word not in known:
            answer = unknown_command(word)
            assert answer.startswith(f"{word}: ") and word in help_text()
            named = re.findall(r"`everlog ((?:[a-z]+))", answer)
            assert set(named) <= {command.name.split()[0] for command in EVERLOG}
            assert named or any(one in answer for one in known)


def test_the_help_is_no_wider_than_a_narrow_column_needs() -> None:
    """Each command has its own line, and its description begins in one column."""
    lines = help_text().splitlines()[: len(COMMANDS)]
    assert [line.split()[0] for line in lines] == [one.name for one in COMMANDS]
    assert {line.index(one.about) for line, one in zip(lines, COMMANDS, strict=True)} == {18}


def test_tab_suggests_commands_and_their_arguments(tmp_path: Path) -> None:
    """A slash suggests commands, and an argument what exists; a message and a doubled slash suggest nothing."""
    (tmp_path / "talk.md").write_text("x")
    known = {"block": ["human", "persona"], "model": ["offline"]}

    def texts(before: str) -> list[str]:
        return [found.text for found in suggestions(before, known.__getitem__)]

    assert texts("/mem") == ["/memory", "/memorywarning"]
    assert len(texts("/")) == len(COMMANDS)
    assert texts("/memory p") == ["persona"]
    assert texts("/model ") == ["offline"]
    assert texts("/context f") == ["full"]
    assert texts(f"/file {tmp_path}/t") == ["talk.md"]
    assert texts("hello") == texts("//mem") == texts("/mem\n") == texts("/nothing x") == texts("/search x") == []


def test_one_memory_block_is_shown(chat: Talk) -> None:
    """/memory LABEL shows that block alone; an unknown label is answered with the labels."""
    code, out, _ = chat("/memory human")
    assert code == 0
    assert "human" in out and "persona" not in out
    code, out, _ = chat("/memory nothing")
    assert code == 1
    assert "The blocks are persona, human." in out


def test_a_file_is_said(cli: Line, chat: Talk, tmp_path: Path) -> None:
    """/file sends the text of a file with its lines, also one that begins with a slash; errors send nothing."""
    (tmp_path / "mail.txt").write_text("/dear sam,\n\n  indented\n")
    (tmp_path / "empty.txt").write_text("\n")
    assert chat(f"/file {tmp_path}/mail.txt")[0] == 0
    said = [one["text"] for one in cli.lines("events", "sam") if one["type"] == "user_message"]
    assert said == ["/dear sam,\n\n  indented"]
    for line in ("/file", f"/file {tmp_path}/none.txt", f"/file {tmp_path}/empty.txt"):
        assert chat(line)[0] == 1
    assert len(cli.script.asked) == 1


@pytest.mark.beside_store("a client cannot tell a file in the store of its server")
def test_a_conversation_is_saved(cli: Line, chat: Talk, tmp_path: Path) -> None:
    """/save writes Markdown, or plain text into a .txt file; no file is replaced, and none is made in the store."""
    cli.script.answers = [says("Hello *Chad*.")]
    code, out, _ = chat("I am Chad", f"/save {tmp_path}/talk.md", f"/save {tmp_path}/talk.txt")
    assert code == 0
    assert f"Saved 2 messages to {tmp_path}/talk.md." in " ".join(out.split())
    assert "> Hello *Chad*." in (tmp_path / "talk.md").read_text()
    assert "\n  Hello *Chad*.\n" in (tmp_path / "talk.txt").read_text()
    assert (tmp_path / "talk.md").stat().st_mode & 0o777 == 0o600
    for line in ("/save", f"/save {tmp_path}/talk.md", f"/save {cli.root}/talk.md", f"/save {tmp_path}/none/talk.md"):
        assert chat(line)[0] == 1
    assert not (cli.root / "talk.md").exists()


def test_a_message_is_written_in_the_editor_of_the_user(tmp_path: Path) -> None:
    """VISUAL comes before EDITOR; the text begins with the argument; without an editor, or if it fails, the reason is
    named.
    """
    editor = tmp_path / "edit"
    editor.write_text('#!/bin/sh\nprintf "two\\n  lines\\n\\n" >> "$1"\n')
    editor.chmod(0o755)
    assert edited_text("one", {"VISUAL": str(editor), "EDITOR": "false"}) == "one\ntwo\n  lines"
    assert edited_text("", {"EDITOR": "true"}) == ""
    for environ, words in (
        ({}, "Neither VISUAL nor EDITOR"),
        ({"EDITOR": "false"}, "ended with exit code 1"),
        ({"EDITOR": "/no/such/editor"}, "could not be started"),
        ({"EDITOR": "an 'open quotation"}, "could not be started"),
    ):
        with pytest.raises(BadInput, match=words):
            edited_text("one", environ)


def test_edit_needs_a_terminal(chat: Talk) -> None:
    """A script cannot open an editor."""
    code, out, _ = chat("/edit")
    assert (code, "/edit needs a terminal" in out) == (1, True)


def test_errors_in_a_chat_name_slash_commands(cli: Line, chat: Talk) -> None:
    """The chat's own command stands in place of the option of another command; other options stay as they are."""
    assert chat_words("Without either, use --model offline.") == "Without either, use /model offline."
    others = "`everlog send --model=x`, --models and --base-url"
    assert chat_words(others) == others
    cli.script.answers = [ModelError("It failed: use --model offline.", kind="unreachable")]
    _, out, err = chat("hello")
    assert "use /model offline" in err
    assert "--model" not in out + err


@pytest.mark.beside_store("lines typed to a server are not kept")
def test_a_chat_at_a_terminal_edits_its_lines(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A paste is one message, /edit sends what was written, Ctrl-D says goodbye, and the entries are kept."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("EDITOR", "sh -c 'echo from the editor > $0'")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text("\x1b[200~two\r\n  lines\x1b[201~\r/edit\r\x04")
        code, out, err = cli("chat", "sam")
    assert (code, err) == (0, "")
    assert "Goodbye. The conversation is in the log." in out
    said = [one["text"] for one in cli.lines("events", "sam") if one["type"] == "user_message"]
    assert said == ["two\n  lines", "from the editor"]
    assert typed_before(typed_path(cli.root, "sam")) == ["two\n  lines", "/edit"]
