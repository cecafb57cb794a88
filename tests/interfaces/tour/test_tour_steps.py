"""The steps of the tour as data: every command is real, and every text is short."""

import re
import shlex

import pytest

from everlog.interfaces.cli.command_parser import COMMANDS, parser
from everlog.interfaces.tour.tour_shell import words_of
from everlog.interfaces.tour.tour_steps import FILES, KILL, NAMES, NEXT, STEPS
from everlog.interfaces.tour.typed_line import NEVER, READING

EVERLOG = [step for step in STEPS if step.command != KILL]


@pytest.mark.parametrize("command", [*(step.command for step in EVERLOG), *(command for command, _ in NEXT)])
def test_every_command_shown_is_accepted_by_the_parser(command: str) -> None:
    """Every command and option that the tour shows exists."""
    name, *words = shlex.split(command.removesuffix("&"))
    assert name == "everlog"
    assert parser(words).parse_args(words).handler


def test_steps_have_names_of_their_own() -> None:
    """Step names are unique, so that `--from` can name each step."""
    assert len(set(NAMES)) == len(STEPS) == len(EVERLOG) + 1
    assert not any(name.isdecimal() for name in NAMES)


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_a_step_explains_in_a_few_sentences(step) -> None:
    """The text before a command has 2 to 5 sentences, and each step has something to look at."""
    sentences = re.findall(r"[.?](?: |$)", step.text)
    assert 2 <= len(sentences) <= 5
    assert len(step.text) < 420
    assert step.look
    assert step.shows


def test_what_writes_is_known() -> None:
    """A step whose command may be typed at any time writes nothing, and the command of every other step writes."""
    for step in EVERLOG:
        words = shlex.split(step.command)[1:]
        reading = words[0] in READING or " ".join(words[:2]) in READING
        assert reading != step.writes, step.name


def test_commands_that_may_be_typed_exist() -> None:
    """The commands that the tour allows and refuses exist."""
    assert {command.name for command in COMMANDS} >= READING | NEVER


def test_files_of_the_tour_are_used() -> None:
    """Each file that the tour makes is used by a step."""
    assert all(any(name in step.command for step in STEPS) for name in FILES)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('everlog send sam "Buy a rope"', ["send", "sam", "Buy a rope"]),
        ("send  sam 'Buy a rope'&", ["send", "sam", "Buy a rope", "&"]),
        ("everlog send sam \u201cBuy a rope\u201d &", ["send", "sam", "Buy a rope", "&"]),
        (KILL, ["kill", "-9", "%1"]),
        ("", []),
    ],
)
def test_a_line_is_read_as_in_a_shell(line: str, words: list[str]) -> None:
    """Quotation marks of every kind, a missing `everlog` and an & without a space are accepted."""
    assert words_of(line) == words
