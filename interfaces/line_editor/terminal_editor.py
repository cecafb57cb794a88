"""Editor of one entry at a time on a terminal: the only file that imports prompt_toolkit.

Used by the prompts of `everlog chat` and `everlog sql`, which import this file only if a person sits at a terminal: its
library takes a tenth of a second to import. While an entry is edited the terminal is the editor's, so output of other
threads must go through `print_above`; between two entries the terminal is free.
"""

import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from everlog.events import StoreError
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.line_editor.completion import Suggest
from everlog.store import keep_typed, typed_before

AcceptRule = Callable[[str], bool]
"""Function that returns True if Enter ends an entry of this text, and False if it begins another line."""


class TerminalEditor:
    """Editor with line breaks, history and completion.

    Enter ends an entry; Alt-Enter, Ctrl-J, or Enter after a backslash begin another line in it, and a paste keeps its
    lines. Ctrl-C clears a typed text. On an empty one it prints `hint`, and a second Ctrl-C in a row raises
    KeyboardInterrupt.
    """

    def __init__(
        self,
        prompt: str,
        *,
        history: Path,
        hint: str,
        show: Callable[[str], None],
        suggest: Suggest = lambda _: (),
        ends: AcceptRule = lambda _: True,
        colours: bool = True,
    ) -> None:
        """`history`: file of entries, see `typed_history`. `hint`: how to leave. `show` prints it, and must end the
        line.
        """
        self._history = _read(history)
        self._file: Path | None = history
        self._hint = hint
        self._show = show
        self._ends = ends
        self._lock = threading.Lock()
        self._editing = False
        self._loop: AbstractEventLoop | None = None
        """Event loop of the editor, while it reads keys."""
        self._above: deque[Callable[[], None]] = deque()
        """Output that waits until the editor has given the terminal up for a moment."""
        self._session: PromptSession[str] = PromptSession(
            FormattedText([("bold ansigreen", prompt)]),
            multiline=True,
            prompt_continuation=" " * len(prompt),
            history=InMemoryHistory(self._history),
            completer=_SuggestCompleter(suggest),
            complete_while_typing=False,
            key_bindings=self._keys(),
            color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            enable_suspend=True,
        )

    def read(self) -> str:
        """Return the next entry. Raises EOFError for Ctrl-D, and KeyboardInterrupt for the second Ctrl-C in a row."""
        interrupted = False
        while True:
            try:
                text = self._edit()
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                self._show(self._hint)
                continue
            if not text.strip():
                interrupted = False
                continue
            self._keep(text.rstrip())
            return text

    def print_above(self, work: Callable[[], None]) -> None:
        """Run `work`, which prints, above the entry that is being edited. May be called from any thread."""
        with self._lock:
            if not self._editing:
                work()
                return
            self._above.append(work)
            self._wake()

    def _edit(self) -> str:
        with self._lock:
            self._editing = True
        try:
            return self._session.prompt(pre_run=self._began)
        finally:
            with self._lock:
                self._editing, self._loop = False, None
                self._run_waiting()

    def _began(self) -> None:
        self._session.default_buffer.load_history_if_not_yet_loaded()  # before the first key, which may be an arrow
        with self._lock:
            self._loop = get_app().loop
            if self._above:
                self._wake()

    def _wake(self) -> None:
        if self._loop is None:  # the editor takes the output when it begins
            return
        try:
            self._loop.call_soon_threadsafe(lambda: run_in_terminal(self._print_waiting))
        except RuntimeError:  # the loop has just ended, and `_edit` prints what waits
            return

    def _print_waiting(self) -> None:
        with self._lock:
            self._run_waiting()

    def _run_waiting(self) -> None:
        while self._above:
            self._above.popleft()()

    def _keep(self, text: str) -> None:
        """Add an entry to the history. If its file cannot be written, say so once: the entry itself is not lost."""
        if self._history[-1:] == [text]:
            return
        self._history.append(text)
        if self._file is None:
            return
        try:
            keep_typed(self._file, text)
        except StoreError as error:
            self._file = None
            complain(f"warning: the history of this prompt is not kept: {error}")

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        editing = has_focus(DEFAULT_BUFFER)  # and not a search with Ctrl-R, which has its own Enter and Ctrl-C

        @keys.add("escape", "enter", filter=editing)
        @keys.add("c-j", filter=editing)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("enter", filter=editing)
        def _(event: KeyPressEvent) -> None:
            self._enter(event.current_buffer)

        @keys.add("c-c", filter=editing)
        @keys.add("<sigint>", filter=editing)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if not buffer.text:
                event.app.exit(exception=KeyboardInterrupt())
                return
            buffer.save_to_undo_stack()  # Ctrl-_ brings the text back
            buffer.text = ""

        return keys

    def _enter(self, buffer: Buffer) -> None:
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:  # Enter takes the suggestion that is chosen
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\") and not buffer.document.text_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif self._ends(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")


class _SuggestCompleter(Completer):
    """Completer of prompt_toolkit that shows the suggestions of a function."""

    def __init__(self, suggest: Suggest) -> None:
        self._suggest = suggest

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what may follow the text before the cursor."""
        for found in self._suggest(document.text_before_cursor):
            yield Completion(found.text, start_position=-found.replaced, display_meta=found.about or None)


def _read(history: Path) -> list[str]:
    """Return the entries of a history; none, and a warning, if it cannot be read."""
    try:
        return typed_before(history)
    except StoreError as error:
        complain(f"warning: the history of this prompt cannot be read: {error}")
        return []
