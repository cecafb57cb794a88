"""The editor of a prompt, with keys from a pipe and no terminal."""

import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from everlog.events import StoreError
from everlog.interfaces.line_editor import terminal_editor
from everlog.interfaces.line_editor.completion import Suggestion, beginning_with
from everlog.interfaces.line_editor.held_keys import keys_held
from everlog.interfaces.line_editor.paths import path_suggestions
from everlog.interfaces.line_editor.terminal_editor import TerminalEditor
from everlog.store import keep_typed, typed_before, typed_path

CTRL_C, CTRL_D, CTRL_J, CTRL_R, TAB, UP, ALT_ENTER = "\x03", "\x04", "\n", "\x12", "\t", "\x1b[A", "\x1b\r"


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    """Yield the keyboard of the editors that a test makes."""
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return typed_path(tmp_path, "sam")


def editor(history: Path, said: list[str] | None = None, **options: object) -> TerminalEditor:
    show = (said if said is not None else []).append
    return TerminalEditor("you  ", history=history, hint="(Ctrl-D leaves)", show=show, **options)  # type: ignore[arg-type]


def test_enter_sends_and_other_keys_break_the_line(keys: PipeInput, history: Path) -> None:
    """Enter ends an entry; Alt-Enter, Ctrl-J, and Enter after a backslash begin another line of it."""
    keys.send_text(f"a{ALT_ENTER}b{CTRL_J}c\\\rd\r")
    assert editor(history).read() == "a\nb\nc\nd"


def test_a_paste_of_forty_lines_is_one_entry(keys: PipeInput, history: Path) -> None:
    """A bracketed paste keeps its lines and their indentation, and sends nothing."""
    lines = "\n".join(f"  line {number}" for number in range(40))
    pasted = lines.replace("\n", "\r\n")
    keys.send_text(f"\x1b[200~{pasted}\x1b[201~ end\r")
    assert editor(history).read() == f"{lines} end"


def test_an_empty_entry_is_not_sent(keys: PipeInput, history: Path) -> None:
    """Enter on an empty line asks again."""
    keys.send_text("\r  \rhello\r")
    assert editor(history).read() == "hello"


def test_ctrl_c_clears_a_typed_line(keys: PipeInput, history: Path) -> None:
    """Ctrl-C with text typed removes the text and nothing else: no hint is printed, and the prompt stays."""
    said: list[str] = []
    keys.send_text(f"half a line{CTRL_C}hello\r")
    assert (editor(history, said).read(), said) == ("hello", [])


def test_ctrl_c_on_an_empty_line_says_how_to_leave_and_a_second_one_leaves(keys: PipeInput, history: Path) -> None:
    """The first Ctrl-C prints the hint; an entry in between begins the count again."""
    said: list[str] = []
    keys.send_text(f"{CTRL_C}hello\r{CTRL_C}{CTRL_C}")
    typing = editor(history, said)
    assert (typing.read(), said) == ("hello", ["(Ctrl-D leaves)"])
    with pytest.raises(KeyboardInterrupt):
        typing.read()
    assert said == ["(Ctrl-D leaves)"] * 2


def test_ctrl_d_ends_the_input_on_an_empty_line_only(keys: PipeInput, history: Path) -> None:
    """Ctrl-D with text typed does not leave."""
    keys.send_text(f"hi{CTRL_D}\r{CTRL_D}")
    typing = editor(history)
    assert typing.read() == "hi"
    with pytest.raises(EOFError):
        typing.read()


def test_the_history_lasts_over_sessions(keys: PipeInput, history: Path) -> None:
    """Entries of an earlier session come back with the arrow and with Ctrl-R; repeated ones are kept once."""
    keys.send_text("first words\rsecond\rsecond\r")
    before = editor(history)
    assert [before.read() for _ in range(3)] == ["first words", "second", "second"]
    assert typed_before(history) == ["first words", "second"]
    after = editor(history)
    keys.send_text(f"{UP}!\r")
    assert after.read() == "second!"
    keys.send_text(f"{CTRL_R}first\r\r")
    assert after.read() == "first words"


def test_a_history_that_cannot_be_kept_is_reported_once(
    keys: PipeInput, history: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full disk costs no entry: each is sent, and one warning names the reason."""

    def full(path: Path, text: str) -> None:
        raise StoreError("No space left.")

    monkeypatch.setattr(terminal_editor, "keep_typed", full)
    keys.send_text("one\rtwo\r")
    typing = editor(history)
    assert [typing.read(), typing.read()] == ["one", "two"]
    assert capsys.readouterr().err.count("the history of this prompt is not kept: No space left.") == 1


def test_tab_completes(keys: PipeInput, history: Path) -> None:
    """The only suggestion is inserted at once; of several Tab chooses one, and Enter takes it without sending."""
    rest: list[str] = []

    def suggest(before: str) -> list[Suggestion]:
        keys.send_text(rest.pop(0))  # a person sees the suggestions before the next key
        return beginning_with(before, [("/memory", "show"), ("/memorywarning", ""), ("/pressure", "")])

    typing = editor(history, suggest=suggest)
    rest.append("\r")
    keys.send_text(f"/pre{TAB}")
    assert typing.read() == "/pressure"
    rest.append(f"{TAB}{TAB}\r now\r")
    keys.send_text(f"/mem{TAB}")
    assert typing.read() == "/memorywarning now"


def test_a_rule_decides_where_an_entry_ends(keys: PipeInput, history: Path) -> None:
    """Enter begins another line until the rule is content."""
    keys.send_text("select\r1;\r")
    assert editor(history, ends=lambda text: text.endswith(";")).read() == "select\n1;"


def test_output_of_another_thread_is_printed_while_a_line_is_typed(keys: PipeInput, history: Path) -> None:
    """Output above the line is printed once and in order, and the typed text survives it."""
    printed: list[int] = []
    typing = editor(history)
    done = threading.Event()

    def suggest(before: str) -> list[Suggestion]:  # runs while the line is edited
        def other() -> None:
            for number in range(3):
                typing.print_above(lambda number=number: printed.append(number))  # type: ignore[misc]
            done.set()

        threading.Thread(target=other).start()
        assert done.wait(10)
        return []

    typing = editor(history, suggest=suggest)
    keys.send_text(f"hel{TAB}lo\r")
    assert typing.read() == "hello"
    assert printed == [0, 1, 2]
    typing.print_above(lambda: printed.append(3))
    assert printed == [0, 1, 2, 3]


def test_without_a_terminal_no_keys_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stdin that is no terminal, or no file at all, is left alone."""
    passed = 0
    with Path("/dev/null").open() as nothing:
        for stdin in (io.StringIO("x"), nothing):
            monkeypatch.setattr("sys.stdin", stdin)
            with keys_held():
                passed += 1
    assert passed == 2


def test_paths_are_suggested(tmp_path: Path) -> None:
    """Folders end in a slash, hidden files need a dot, and a folder that is not there suggests nothing."""
    (tmp_path / "notes").mkdir()
    for name in ("note.txt", ".hidden"):
        (tmp_path / name).write_text("x")

    def texts(typed: str) -> list[str]:
        return [found.text for found in path_suggestions(typed)]

    assert texts(f"{tmp_path}/no") == ["note.txt", "notes/"]
    assert texts(f"{tmp_path}/") == ["note.txt", "notes/"]
    assert texts(f"{tmp_path}/.h") == [".hidden"]
    assert texts(f"{tmp_path}/nowhere/x") == []


def test_the_history_of_the_editor_is_that_of_the_store(keys: PipeInput, history: Path) -> None:
    """An entry that another process kept is there in the next session."""
    keep_typed(history, "from elsewhere")
    keys.send_text(f"{UP}\r")
    assert editor(history).read() == "from elsewhere"
