"""Play the tour: step by step with a reader, or from beginning to end for a program.

Used by `tour_command`.
"""

from collections.abc import Callable

from everlog.interfaces.common.front_end import LineReader
from everlog.interfaces.tour.tour_screen import TourScreen
from everlog.interfaces.tour.tour_shell import TourShell
from everlog.interfaces.tour.tour_steps import STEPS, TourQuestion
from everlog.interfaces.tour.typed_line import judge

PROMPT = "$ "
ANSWER_PROMPT = "? "
TRIES = 2
"""Wrong answers to a question, before the tour gives the answer."""

_NEXT, _BACK, _SKIP = ("", "next", "n"), ("back", "b"), ("skip", "s")
_QUIT, _HELP, _LIST = ("quit", "q", "exit"), ("help", "h", "?"), ("list", "l")


class _ReaderLeft(Exception):
    """The reader leaves the tour."""


class TourRunner:
    """The place of a reader in the tour, and the steps whose commands have run."""

    def __init__(self, shell: TourShell, screen: TourScreen, ask: LineReader) -> None:
        self._shell = shell
        self._screen = screen
        self._ask = ask
        self._place = 0
        self._done: set[int] = set()

    @property
    def place(self) -> int:
        """Number of the step that the reader is at, from 0; `len(STEPS)` after the last one."""
        return self._place

    def play_through(self, start: int) -> None:
        """Run all steps from `start` without a reader, and print everything that a reader would see."""
        self._prepare(start)
        self._screen.welcome()
        while self._place < len(STEPS):
            step = STEPS[self._place]
            self._screen.step(self._place)
            self._screen.typed(step.command)
            self._run_step()
            if step.question is not None:
                self._screen.question(step.question)
                self._screen.text(f"The answer is {step.question.answer}.")
            self._place += 1
        self._screen.end(playing=False)

    def play(self, start: int) -> None:
        """Take the reader through the tour from step `start`, until the reader leaves."""
        self._prepare(start)
        self._screen.welcome()
        try:
            while self._place < len(STEPS):
                self._screen.step(self._place)
                self._screen.command(STEPS[self._place])
                self._at_step()
            self._screen.end(playing=True)
            self._after_the_end()
        except _ReaderLeft:
            return
        except EOFError:
            self._screen.blank()  # the prompt keeps its line

    def _prepare(self, start: int) -> None:
        """Run the writing commands before step `start` quietly, so that the step finds its records."""
        for number in range(start):
            self._catch_up(number)
        self._place = start

    def _catch_up(self, number: int) -> None:
        """Run a command that writes quietly, unless it has run. Time passes for every step, as if it had been typed."""
        if number not in self._done:
            if STEPS[number].writes:
                self._shell.run_quietly(STEPS[number].command)
            else:
                self._shell.wait()
        self._done.add(number)

    def _at_step(self) -> None:
        """Answer lines until the reader goes to another step."""
        before = self._place
        while self._place == before:
            line = self._line(PROMPT)
            if line in _BACK:
                self._back()
            elif line in _SKIP:
                self._catch_up(self._place)
                self._place += 1
            elif line in _NEXT:
                self._next()
            elif not self._understood(line):
                self._typed(line)

    def _back(self) -> None:
        if self._place == 0:
            self._screen.note("This is the first step.")
        else:
            self._place -= 1

    def _next(self) -> None:
        """Run the command of the step, as if the reader had typed it; a command that writes runs only once."""
        step = STEPS[self._place]
        if step.writes and self._place in self._done:
            self._screen.note(
                "This command has run already. It would write its events a second time, so the tour goes on."
            )
            self._place += 1
            return
        self._screen.typed(step.command)
        self._finish_step()

    def _typed(self, line: str) -> None:
        """Run what the reader typed, or answer a mistake."""
        judged = judge(line, STEPS[self._place])
        if judged.verdict == "mistake":
            self._screen.note(f"{judged.text} This step waits for:")
            self._screen.command(STEPS[self._place])
        elif judged.verdict == "other":
            self._shell.run(judged.text)
            self._screen.note("That was a command of your own. This step waits for:")
            self._screen.command(STEPS[self._place])
        elif STEPS[self._place].writes and self._place in self._done:
            self._next()
        else:
            self._finish_step()

    def _finish_step(self) -> None:
        question = STEPS[self._place].question
        self._run_step()
        if question is not None:
            self._examine(question)
        self._place += 1

    def _run_step(self) -> None:
        """Run the command of the step, and print where to look."""
        self._shell.run(STEPS[self._place].command)
        self._done.add(self._place)
        self._screen.look(STEPS[self._place])

    def _examine(self, question: TourQuestion) -> None:
        """Ask a question until the answer is right, the reader passes, or the tries are used up."""
        self._screen.question(question)
        tries = TRIES
        while tries:
            said = self._line(ANSWER_PROMPT).removeprefix("seq").strip()
            if said == question.answer:
                self._screen.text("Right.", "bold green")
                return
            if said in (*_NEXT, *_SKIP, *_BACK):
                break
            if not self._understood(said):
                tries -= 1
                self._screen.text(f"Not quite. {question.hint}", "yellow")
        self._screen.text(f"The answer is {question.answer}.")

    def _after_the_end(self) -> None:
        """Run whatever the reader types, until the reader leaves."""
        while True:
            line = self._line(PROMPT)
            if not line or self._understood(line):
                continue
            judged = judge(line, None)
            if judged.verdict == "mistake":
                self._screen.note(judged.text)
            else:
                self._shell.run(line)

    def _understood(self, line: str) -> bool:
        """Answer a word that is the same everywhere. Return False if the line is none."""
        answers: dict[tuple[str, ...], Callable[[], None]] = {
            _HELP: self._screen.help,
            _LIST: lambda: self._screen.list_steps(tuple(self._done)),
        }
        answer = next((act for words, act in answers.items() if line in words), None)
        if answer is not None:
            answer()
        return answer is not None

    def _line(self, prompt: str) -> str:
        """Return what the reader types. Raises _ReaderLeft if the reader leaves, EOFError at the end of stdin."""
        line = " ".join(self._ask(prompt).split())
        if line in _QUIT:
            raise _ReaderLeft
        return line
