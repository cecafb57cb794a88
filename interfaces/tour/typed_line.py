"""Judge what a reader of the tour has typed: the command of the step, another command, or a mistake. Pure.

Used by `tour_runner`. Only commands that write no record belong in `READING`.
"""

import contextlib
import difflib
import io
from typing import Literal, NamedTuple

from everlog.interfaces.cli.command_parser import COMMANDS
from everlog.interfaces.cli.command_run import parse
from everlog.interfaces.tour.tour_shell import words_of
from everlog.interfaces.tour.tour_steps import TourStep

Verdict = Literal["step", "other", "mistake"]

READING = frozenset(
    {
        "agents", "archive list", "archive status", "context", "cost", "diff", "events", "explain", "log check",
        "log stats", "memory", "models", "pressure", "prompt show", "replay", "search", "sources", "sql", "timers",
        "verify",
    }
)  # fmt: skip
"""Commands that may be typed at any step, because they write no record."""

NEVER = frozenset({"cluster status", "down", "tour", "up"})
"""Commands that would leave the tour's store and process."""

ALMOST = 0.75
"""Similarity, from 0 to 1, from which a line counts as a misspelled command of the step."""


class TypedLine(NamedTuple):
    """Verdict on a line. `text`: for "other" the command to run, for "mistake" the answer to the reader."""

    verdict: Verdict
    text: str = ""


def judge(line: str, step: TourStep | None) -> TypedLine:
    """Return what `line` is at `step`, or after the last step if `step` is None: then every command may write."""
    try:
        words = words_of(line)
    except ValueError:
        return TypedLine("mistake", f"A quotation mark is not closed: {line}")
    if step is not None and words == words_of(step.command):
        return TypedLine("step")
    name = _command_in(words)
    if not name:
        return TypedLine("mistake", _unknown(line, words, step))
    if any(word.split("=")[0] == "--store" for word in words):
        return TypedLine("mistake", "The tour uses a store of its own: leave `--store` away.")
    if name in NEVER:
        return TypedLine("mistake", f"`everlog {name}` does not work inside the tour. Try it after the tour.")
    if words[-1] == "&":
        return TypedLine("mistake", "The tour runs only the command of the step `crash` in the background.")
    if step is not None and name not in READING:
        return TypedLine("mistake", _writes(line, name, step))
    if fault := _fault(words):
        return TypedLine("mistake", f"{fault[0].upper()}{fault[1:]}.")
    return TypedLine("other", line)


def _command_in(words: list[str]) -> str:
    """Return the name of the command that the words begin with; empty if there is none."""
    found = (command.name for command in COMMANDS if command.name.split() == words[: command.name.count(" ") + 1])
    return next(found, "")


def _fault(words: list[str]) -> str:
    """Return why the parser refuses the words; empty if the parser accepts the words or prints help for them."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            parse(words)
    except SystemExit as error:
        reason = said.getvalue().partition("\nusage: ")[0].removeprefix("everlog: ")
        return reason.strip() if error.code else ""
    return ""


def _unknown(line: str, words: list[str], step: TourStep | None) -> str:
    if step is not None and _alike(line, step) >= ALMOST:
        return _almost(words, step)
    known = sorted({command.name.split()[0] for command in COMMANDS})
    near = difflib.get_close_matches(words[0], known, 1) if words else []
    maybe = f" Did you mean `everlog {near[0]}`?" if near else " `help` lists what you can type."
    first = words[0] if words else line
    return f"There is no command `{first}`.{maybe}"


def _writes(line: str, name: str, step: TourStep) -> str:
    if _alike(line, step) >= ALMOST:
        return _almost(words_of(line), step)
    return (
        f"`everlog {name}` would write to the log and change the numbers of the events in later steps. After the last "
        f"step you can run any command."
    )


def _alike(line: str, step: TourStep) -> float:
    return difflib.SequenceMatcher(None, " ".join(words_of(line)), " ".join(words_of(step.command))).ratio()


def _almost(words: list[str], step: TourStep) -> str:
    """Return the answer to a misspelled command: the first word that differs, and the one that was expected."""
    wanted = words_of(step.command)
    place = next((n for n, pair in enumerate(zip(words, wanted, strict=False)) if pair[0] != pair[1]), None)
    if place is None:
        missing, extra = wanted[len(words) :], words[len(wanted) :]
        where = f"`{' '.join(missing)}` is missing at the end" if missing else f"`{' '.join(extra)}` is too much"
    else:
        where = f"you typed `{words[place]}` where `{wanted[place]}` is expected"
    return f"Almost: {where}. Type the line again, or press Enter."
