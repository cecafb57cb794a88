"""The whole tour, without a reader and with a reader who mistypes."""

import io
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.events import BadInput
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output.terminal_output import console
from everlog.interfaces.tour.tour_command import step_number
from everlog.interfaces.tour.tour_runner import TourRunner
from everlog.interfaces.tour.tour_screen import TourScreen
from everlog.interfaces.tour.tour_shell import TourShell, isolated
from everlog.interfaces.tour.tour_steps import NAMES, STEPS
from everlog.store import FileStore

pytestmark = pytest.mark.xdist_group("tour")  # the transcript of the whole tour is made once in a process

Play = Callable[..., str]


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output of `everlog tour` without a reader. The tour must not touch a user's store."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVERLOG_STORE", str(home / "store"))
        patch.setenv("OPENAI_API_KEY", "not for the tour")
        patch.delenv("COLUMNS", raising=False)
        patch.setattr("sys.stdin", io.StringIO())
        patch.setattr("sys.stdout", said := io.StringIO())
        before = dict(os.environ), Path.cwd()
        assert main(["tour", "--keep", str(home / "kept")]) == 0
        assert (dict(os.environ), Path.cwd()) == before
    assert [path.name for path in home.iterdir()] == ["kept"]
    assert FileStore(home / "kept" / "store", lambda: 0).agents() == ["sam", "sam-then", "what-if"]
    return said.getvalue()


@pytest.fixture
def play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Play:
    """Play the tour with the lines that a reader types. Return its output."""

    def played(*lines: str, start: int = 0) -> str:
        typed = list(lines)

        def ask(prompt: str) -> str:
            if not typed:
                raise EOFError
            print(f"{prompt}{typed[0]}")
            return typed.pop(0)

        with isolated(tmp_path, interactive=False):
            shell = TourShell(tmp_path, ask)
            try:
                TourRunner(shell, TourScreen(console()), ask).play(start)
            finally:
                shell.close()
        return "".join(capsys.readouterr())

    return played


def outputs(text: str) -> list[str]:
    """Return the output of each step: the text between its command and its `Look:`."""
    found = [re.split(rf"^\$ {re.escape(step.command)}\n", text, flags=re.MULTILINE) for step in STEPS]
    return [part[1].split("\nLook: ")[0] if len(part) > 1 else "" for part in found]


def test_the_whole_tour_shows_what_its_texts_say(transcript: str) -> None:
    """Each step's output holds the text that the step points at, and the answers to its questions."""
    for step, output in zip(STEPS, outputs(transcript), strict=True):
        flat = " ".join(output.split())
        assert [words for words in step.shows if " ".join(words.split()) not in flat] == [], step.name
        assert step.question is None or f"seq {step.question.answer}" in flat


def test_the_tour_fits_the_screen(transcript: str) -> None:
    """No line of the tour's own text is wider than 80 columns, and nothing is coloured where there is no terminal."""
    own = re.sub(
        r"^(\$| {4}everlog|Hello! I am|  ƒ|Erased|Earlier copies|.*kept: try).*\n", "", transcript, flags=re.MULTILINE
    )
    assert max(map(len, own.splitlines())) <= 80
    assert "\x1b" not in transcript


def test_a_reader_who_types_everything_sees_the_same(transcript: str, play: Play) -> None:
    """For typed commands, for Enter, and after mistakes and questions, the outputs equal those without a reader."""
    lines: list[str] = []
    for number, step in enumerate(STEPS):
        lines.append(step.command if number % 2 else step.command.removeprefix("everlog "))
        lines += [] if step.question is None else ["what?", "help", step.question.answer]
    text = play(*lines, "everlog agents", "everlog tour", "everlog send ann Hello", "nonsense", "quit")
    shown = re.sub(r"^\$ (?!everlog|kill|quit)", "$ everlog ", text, flags=re.MULTILINE)
    assert outputs(shown) == outputs(transcript)
    assert text.count("Right.") == text.count("Not quite.") == 2
    end = " ".join(text.split("The end")[1].split())
    assert "fork of sam at 31" in end
    assert "`everlog tour` does not work inside the tour" in end
    assert "Hello! I am everlog's offline stand-in" in end
    assert "There is no command `nonsense`" in end


def test_mistakes_are_answered_kindly(play: Play) -> None:
    """A mistyped line gets an answer with the mistake and the expected command; nothing runs."""
    text = play(
        'everlog send sam "Hi, my name is Chat and I sail"',
        "everlog sned sam",
        'everlog send sam "Hi',
        "everlog events sam --frm 3",
        "everlog send ann Hello",
        "everlog agents --store /elsewhere",
        "everlog up",
        "everlog agents &",
        "rubbish",
        "back",
        "help",
        "everlog agents",
        "quit",
    )
    for answer in (
        "Almost: you typed `Hi, my name is Chat and I sail` where `Hi, my name is Chad and I",
        "There is no command `sned`. Did you mean `everlog send`?",
        "A quotation mark is not closed",
        "Unrecognized arguments: --frm 3.",
        "`everlog send` would write to the log",
        "leave `--store` away",
        "`everlog up` does not work inside the tour.",
        "only the command of the step `crash` in the background",
        "There is no command `rubbish`. `help` lists what you can type.",
        "This is the first step.",
        "show the step before this one",
        "That was a command of your own.",
    ):
        assert answer in " ".join(text.split()), answer
    assert "Nice to meet you" not in text
    assert text.count(STEPS[0].command) >= 8


def test_steps_can_be_left_out_and_come_again(play: Play) -> None:
    """`skip` runs the commands that later steps need, `back` returns to a step, and a command that writes runs once."""
    text = play("skip", "skip", "", "18", "back", "back", "back", "", "quit")
    assert "Nice to meet you" not in text
    assert "My boat is called Heron" in text
    assert "Right." in text
    assert "This command has run already." in text
    assert f"2 of {len(STEPS)}" in text.split("has run already.")[1]


def test_the_tour_begins_where_the_reader_wants(play: Play, transcript: str) -> None:
    """`--from` takes a name or a number; the outputs equal those of the whole tour."""
    text = play("", start=step_number("events"))
    assert outputs(text)[3] == outputs(transcript)[3]
    assert not any(outputs(text)[:3])
    assert step_number(str(len(STEPS))) == step_number(NAMES[-1]) == len(STEPS) - 1


@pytest.mark.parametrize("name", ["0", "21", "hallo", "9" * 9])
def test_a_step_that_does_not_exist_is_refused(name: str) -> None:
    """The error of `--from` names similar steps, or the number of steps."""
    with pytest.raises(BadInput, match=f"no step '{name}'.*1 to {len(STEPS)}"):
        step_number(name)


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    """Ctrl-C at a prompt, while a process runs in the background, exits with 130 and leaves neither folder nor
    process.
    """
    lines = iter(["next"])
    jobs = []
    start = TourShell._start
    monkeypatch.setattr(TourShell, "_start", lambda self, words: (start(self, words), jobs.append(self._job))[0])

    def ask(_prompt: str) -> str:
        if (line := next(lines, None)) is None:
            raise KeyboardInterrupt
        return line

    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    monkeypatch.setattr("everlog.interfaces.tour.tour_command.tempfile.mkdtemp", lambda **_: _made(tmp_path / "tour"))
    assert main(["tour", "--from", "crash"], CommandEnvironment(ask=ask)) == 130
    assert "`everlog tour --from kill` continues" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "tour").exists()
    assert jobs[0].returncode == -9


def _made(folder: Path) -> str:
    folder.mkdir()
    return str(folder)


def test_the_list_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` names every step, runs nothing, and fits 80 columns."""
    assert main(["tour", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out for name in NAMES)
    assert max(map(len, out.splitlines())) <= 80


def test_a_folder_that_is_used_is_not_kept_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--keep` refuses a folder that is not empty."""
    (tmp_path / "file").touch()
    assert main(["tour", "--plain", "--keep", str(tmp_path)]) == 1
    assert "the folder is not empty" in capsys.readouterr().err
