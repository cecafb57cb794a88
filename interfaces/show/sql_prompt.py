"""Prompt of `everlog sql`: queries of several lines, with history and completion, over views that follow the logs.

Called by `sql_command` on a terminal. The views are opened once, and opened again only if a log has changed since: an
answer always covers what was written before its query.
"""

import sys
from argparse import Namespace
from contextlib import ExitStack
from typing import Self

from rich.text import Text

from everlog.events import BadInput, EverlogError
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.line_editor.completion import Suggestion
from everlog.interfaces.output.terminal_output import console
from everlog.interfaces.show.sql_answer import (
    complain_with_place,
    open_views,
    print_position,
    reopened_views,
    write_answer,
)
from everlog.interfaces.show.sql_completion import COMMANDS, suggestions
from everlog.interfaces.show.sql_text import is_ended, queries_of
from everlog.projections.fleet_views import FleetViews
from everlog.store import Snapshot, snapshot, typed_path

PROMPT = "sql> "
LEAVE_HINT = "(Ctrl-D or \\q leaves; so does Ctrl-C again)"
WELCOME = "A semicolon ends a query. \\d lists the views, Tab completes names, \\q leaves."
CANCELLED = "(the query was cancelled)"
_LEAVE = ("\\q", "exit", "quit")


def talk(args: Namespace, world: CommandEnvironment, form: str) -> int:
    """Read queries from a person, and answer them, until the person leaves. Return the exit code."""
    from everlog.interfaces.line_editor.terminal_editor import TerminalEditor

    out = console()
    with LiveViews(args, world) as live:
        prompt = SqlPrompt(args, world, form, live)
        editor = TerminalEditor(
            PROMPT,
            history=typed_path(root_of(args), None),
            hint=LEAVE_HINT,
            show=lambda text: out.print(Text(text, "dim")),
            suggest=prompt.suggest,
            ends=ends_entry,
            colours=out.color_system is not None,
        )
        out.print(Text(WELCOME, "dim"))
        while True:
            try:
                entry = editor.read()
            except (EOFError, KeyboardInterrupt):
                return 0
            if _command(entry) in _LEAVE:
                return 0
            try:
                with interruptible():
                    prompt.answer(entry)
            except KeyboardInterrupt:
                out.print(Text(CANCELLED, "yellow"))


def ends_entry(text: str) -> bool:
    """Return True if Enter ends the entry: after a semicolon, after a command of the prompt, and on an empty one."""
    return not text.strip() or text.lstrip().startswith("\\") or _command(text) in _LEAVE or is_ended(text)


def _command(text: str) -> str:
    return text.strip().removesuffix(";").strip().lower()


class LiveViews:
    """Views of the fleet that are opened again when a log has changed."""

    def __init__(self, args: Namespace, world: CommandEnvironment) -> None:
        self._args = args
        self._world = world
        self._opened = ExitStack()
        self._views: tuple[FleetViews, Snapshot] | None = None
        self.openings = 0
        """Number of times that the views were opened."""

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _open(self) -> tuple[FleetViews, Snapshot]:
        opening = reopened_views if self.openings else open_views
        self._views = None
        self._opened.close()
        self._views = self._opened.enter_context(opening(self._args, self._world))
        self.openings += 1
        return self._views

    def current(self) -> tuple[FleetViews, Snapshot]:
        """Return the views, with the position of the logs that they show: everything that is written by now. Raises
        CorruptLog, StoreError.
        """
        if self._views is None:  # the last opening failed
            return self._open()
        _, position = self._views
        with snapshot(store_of(self._args, self._world), skip_damaged=self._args.skip_damaged) as now:
            is_same = now.parts == position.parts and now.left_out == position.left_out
        return self._views if is_same else self._open()


class SqlPrompt:
    """Answers to the entries of a prompt."""

    def __init__(self, args: Namespace, world: CommandEnvironment, form: str, live: LiveViews) -> None:
        self._args = args
        self._world = world
        self._form = form
        self._live = live
        self._columns = live.current()[0].columns()

    def suggest(self, before: str) -> list[Suggestion]:
        """Return what Tab suggests."""
        return suggestions(before, self._columns)

    def answer(self, entry: str) -> None:
        """Answer a command of the prompt, or each query of the entry; an error is printed, and ends the entry."""
        if entry.lstrip().startswith("\\"):
            self._run_command(entry.split())
            return
        for query in queries_of(entry):
            try:
                views, position = self._live.current()
            except EverlogError as error:
                complain(error)
                return
            if not self._answer_query(views, position, query):
                return

    def _answer_query(self, views: FleetViews, position: Snapshot, query: str) -> bool:
        """Answer one query. Return False if it failed."""
        told = position.covered(self._world.clock.now())
        try:
            write_answer(self._args, self._form, views, told, query)
            position.check_unchanged()
        except BadInput as error:
            complain_with_place(error, views, query)
            return False
        except EverlogError as error:
            complain(error)
            return False
        if self._form != "json":
            print_position(told, every=self._args.position)
        return True

    def _run_command(self, words: list[str]) -> None:
        match words:
            case ["\\d"]:
                width = max(map(len, self._columns))
                for view, columns in self._columns.items():
                    print(f"{view:<{width}}  {', '.join(name for name, _ in columns)}")
            case ["\\d", view] if view.removesuffix(";") in self._columns:
                columns = self._columns[view.removesuffix(";")]
                width = max(len(name) for name, _ in columns)
                for name, kind in columns:
                    print(f"{name:<{width}}  {kind}")
            case ["\\d", view]:
                complain(f"\\d {view}: there is no such view. \\d lists them.")
            case _:
                if words[0] != "\\?":
                    complain(f"There is no command {sanitize(words[0])}.")
                for name, about in COMMANDS:
                    print(f"{name:<4}{about}")
        sys.stdout.flush()
