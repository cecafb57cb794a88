"""The screen of the tour: paragraphs, commands and headings, at most 80 columns wide, even on a wider terminal.

Used by `tour_command` and `tour_runner`.
"""

import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.tour.tour_shell import COLUMNS
from everlog.interfaces.tour.tour_steps import NEXT, STEPS, TourQuestion, TourStep

HELP = (
    ("Enter, next", "run the command that is shown; go on if the step is done"),
    ("everlog ...", "run what you typed: the command of the step, or any command that only reads"),
    ("back", "show the step before this one"),
    ("skip", "go to the next step"),
    ("list", "list all steps"),
    ("quit", "leave the tour; Ctrl-C and Ctrl-D leave it too"),
)
"""Words for the prompt, each with a note."""

_CODE = re.compile(r"`([^`]+)`")


class TourScreen:
    """Prints to a console, in colour where the console has colours."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._width = min(COLUMNS, out.width)

    def text(self, words: str, style: str = "") -> None:
        """Print a paragraph. Backquoted parts are code."""
        self._print(self._marked(words, style))

    def blank(self) -> None:
        """Print an empty line."""
        self._out.print()

    def note(self, words: str) -> None:
        """Print an answer of the tour to something that was typed."""
        self._out.print()
        self.text(words, "yellow")

    def welcome(self) -> None:
        """Print what the tour is."""
        self._rule("everlog tour", "bold")
        self._out.print()
        self.text(
            f"Ten minutes, {len(STEPS)} steps. Each step explains something, shows a command, and waits until you type "
            "the command. Enter runs the command for you; `help` lists what else you can type. The tour has a store of "
            "its own, so it touches nothing of yours."
        )

    def step(self, number: int) -> None:
        """Print the heading and the explanation of a step. `number` counts from 0."""
        step = STEPS[number]
        self._out.print()
        self._rule(f"{number + 1} of {len(STEPS)} · {step.lesson}", "bold cyan")
        self._out.print()
        self.text(step.text)

    def command(self, step: TourStep) -> None:
        """Print the command of a step on lines of its own, broken between words."""
        self._out.print()
        self._print(Text(step.command, "bold green"), indent=4)
        self._out.print()

    def typed(self, command: str) -> None:
        """Print a command as if it had been typed at the prompt."""
        self._out.print()
        self._out.print(Text(f"$ {command}"), soft_wrap=True)

    def look(self, step: TourStep) -> None:
        """Print where to look in the output."""
        self._out.print()
        self._print(Text("Look: ", "bold yellow") + self._marked(step.look))

    def question(self, question: TourQuestion) -> None:
        """Print a question."""
        self._out.print()
        self._print(
            Text("Question: ", "bold magenta") + self._marked(question.text) + Text(" Enter shows the answer.", "dim")
        )

    def list_steps(self, done: Sequence[int] = ()) -> None:
        """Print the number, name, lesson and command of every step."""
        lesson = ""
        for number, step in enumerate(STEPS):
            if step.lesson != lesson:
                lesson = step.lesson
                self._out.print()
                self._out.print(Text(lesson, "bold cyan"))
            mark = "✓" if number in done else " "
            head = f"{mark}{number + 1:>3}  {step.name:<7} "
            line = Text(head) + Text(step.command, "dim")
            line.truncate(self._width, overflow="ellipsis")
            self._out.print(line, no_wrap=True)

    def help(self) -> None:
        """Print what can be typed."""
        self._out.print()
        self._pairs(HELP)

    def end(self, *, playing: bool) -> None:
        """Print what to try next. `playing`: the reader can type more commands."""
        self._out.print()
        self._rule("The end", "bold cyan")
        self._out.print()
        self.text(
            "One idea carries all of this: an agent is its log. What you saw is computed from that log. Try these with "
            "a store of your own:"
        )
        self._out.print()
        self._pairs(NEXT)
        if playing:
            self._out.print()
            self.text(
                "The store of the tour is yours until you leave: type any everlog command, `everlog chat sam` for "
                "example. `quit` leaves."
            )

    def _pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Print two columns, or each note below its words on a narrow terminal."""
        wide = max(len(words) for words, _ in pairs) + 2
        for words, note in pairs:
            if self._width >= COLUMNS:
                rest = Text(note).wrap(self._out, self._width - wide - 2)
                for line in rest:
                    line.rstrip()
                lines = Text(f"\n{' ' * (wide + 2)}").join(rest)
                self._out.print(Text("  ") + Text(f"{words:<{wide}}", "green") + lines, soft_wrap=True)
            else:
                self._print(Text(words, "green"), indent=2)
                self._print(Text(note), indent=4)

    def _rule(self, title: str, style: str) -> None:
        line = Text("── ", "dim") + Text(title, style) + Text(" ")
        self._out.print(line + Text("─" * max(0, self._width - line.cell_len), "dim"), no_wrap=True)

    def _print(self, words: Text, indent: int = 0) -> None:
        for line in words.wrap(self._out, self._width - indent):
            line.rstrip()
            self._out.print(Text(" " * indent) + line, soft_wrap=True)

    def _marked(self, words: str, style: str = "") -> Text:
        """Return a text whose backquoted parts are coloured. Without colours the backquotes stay."""
        quote = "" if self._out.is_terminal and not self._out.no_color else "`"
        text = Text()
        for number, part in enumerate(_CODE.split(sanitize(words))):
            text.append(f"{quote}{part}{quote}" if number % 2 else part, "green" if number % 2 else style)
        return text
