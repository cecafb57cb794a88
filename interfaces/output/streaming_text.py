"""Print text that is still streamed: word by word, wrapped, and only once although it is passed again when it is
durable.

Used by `terminal_output`. All text passes `sanitize` before it is printed.
"""

import re
from collections.abc import Callable

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from everlog.actors.formats.reply_preview import PreviewKind
from everlog.interfaces.common.error_output import sanitize

WIDTH_MIN = 20
_TOKENS = re.compile(r"\n|[^\S\n]+|\S+")

LabelFunction = Callable[[PreviewKind], tuple[Text, str]]
"""Return the label of a text and the style of its words."""


class _Text:
    """One thought or message that is being streamed."""

    def __init__(self, kind: PreviewKind) -> None:
        self.kind = kind
        self.parts: list[str] = []
        self.whole = False
        """True after the text has ended."""

    @property
    def text(self) -> str:
        return "".join(self.parts)


class StreamingText:
    """Streamed texts on the terminal, until each is durable or dropped."""

    def __init__(self, out: Console, label: LabelFunction, *, wrap: bool) -> None:
        self._out = out
        self._label = label
        self._wrap = wrap
        self._texts: list[_Text] = []
        """Texts that are not durable yet, in the order of their arrival."""
        self._open: _Text | None = None
        """Text whose line is not finished."""
        self._style, self._indent, self._column = "", 0, 0
        self._word = self._space = ""
        """Letters of the last word that arrived, and the white space before it. Both are held back until the word is
        complete, because only then it is known on which line it fits.
        """

    @property
    def open(self) -> bool:
        """True if a line is not finished."""
        return self._open is not None

    def add(self, kind: PreviewKind, text: str) -> None:
        """Add a chunk to the current thought or message, or begin a new one."""
        last = self._texts[-1] if self._texts else None
        if last is None or last.whole or last.kind != kind:
            last = _Text(kind)
            self._texts.append(last)
        if self._open is not last:
            self.finish()
            self._begin(last)
        last.parts.append(text)
        self._show(text)

    def end(self) -> None:
        """Mark the current text as complete."""
        if self._texts:
            self._texts[-1].whole = True

    def final(self, kind: PreviewKind, text: str) -> bool:
        """Settle a durable text. Return False if the caller has to print it: it was not streamed, or differs from what
        was.
        """
        preview = next((one for one in self._texts if one.kind == kind), None)
        if preview is None:
            self.finish()
            return False
        self._texts.remove(preview)
        shown = preview.text
        if self._open is preview and text.startswith(shown):
            self._show(text[len(shown) :])
            shown = text
        same = shown.strip() == text.strip()
        if self._open is preview or not same:
            self.finish()
        return same

    def finish(self) -> None:
        """Finish the current line, because other output follows."""
        if self._open is not None:
            self._print_word()
            self._out.print()
        self._open = None

    def drop(self) -> bool:
        """Discard streamed text that is not durable. Return True if there was any."""
        self.finish()
        had, self._texts = bool(self._texts), []
        return had

    def _begin(self, preview: _Text) -> None:
        label, self._style = self._label(preview.kind)
        self._open = preview
        self._indent = self._column = label.cell_len
        self._word = self._space = ""
        self._out.print(label, end="", soft_wrap=True)
        if preview.parts:  # other output came in between, so the beginning is printed again
            self._show(preview.text)

    def _show(self, text: str) -> None:
        for token in _TOKENS.findall(sanitize(text)):
            if token == "\n":
                self._print_word()
                self._break()
            elif token.isspace():
                self._print_word()
                self._space += token
            else:
                self._word += token

    def _print_word(self) -> None:
        """Print the word, which is complete, on the next line if it does not fit on this one."""
        if self._word:
            width = max(self._out.width - self._indent - 1, WIDTH_MIN) + self._indent
            cells = cell_len(self._space) + cell_len(self._word)
            if self._wrap and self._column > self._indent and self._column + cells > width:
                self._break()
            self._out.print(Text(self._space + self._word, self._style), end="", soft_wrap=True)
            self._column += cell_len(self._space + self._word)
            self._word = self._space = ""

    def _break(self) -> None:
        self._out.print("\n" + " " * self._indent, end="", soft_wrap=True)
        self._column, self._space = self._indent, ""
