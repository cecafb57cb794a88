"""Words on a terminal while they are still coming: word by word, wrapped, and told once when they are final."""

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
"""What stands before a text, and the style of its words."""


class _Text:
    """One thought or message that is coming."""

    def __init__(self, kind: PreviewKind) -> None:
        self.kind = kind
        self.parts: list[str] = []
        self.whole = False
        """It has ended."""

    @property
    def text(self) -> str:
        return "".join(self.parts)


class StreamingText:
    """Where coming words stand on the terminal."""

    def __init__(self, out: Console, label: LabelFunction, *, wrap: bool) -> None:
        self._out = out
        self._label = label
        self._wrap = wrap
        self._texts: list[_Text] = []
        """Those that are not final yet, in the order in which they came."""
        self._open: _Text | None = None
        """The one whose line is not finished."""
        self._style, self._indent, self._column = "", 0, 0
        self._word = self._space = ""
        """What came of a word, and the white space before it: neither is shown before it is known where it goes."""

    @property
    def open(self) -> bool:
        """Whether a line is not finished."""
        return self._open is not None

    def add(self, kind: PreviewKind, text: str) -> None:
        """A thought or message goes on, or begins."""
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
        """What came last is whole."""
        if self._texts:
            self._texts[-1].whole = True

    def final(self, kind: PreviewKind, text: str) -> bool:
        """A text is durable: its line is finished. False if it has to be shown: it stands nowhere, or otherwise."""
        told = next((one for one in self._texts if one.kind == kind), None)
        if told is None:
            self.finish()
            return False
        self._texts.remove(told)
        shown = told.text
        if self._open is told and text.startswith(shown):
            self._show(text[len(shown) :])
            shown = text
        same = shown.strip() == text.strip()
        if self._open is told or not same:
            self.finish()
        return same

    def finish(self) -> None:
        """Something else is to be shown: leave the line."""
        if self._open is not None:
            self._put_word()
            self._out.print()
        self._open = None

    def drop(self) -> bool:
        """What was told and is not final counts for nothing; whether there was any."""
        self.finish()
        had, self._texts = bool(self._texts), []
        return had

    def _begin(self, told: _Text) -> None:
        label, self._style = self._label(told.kind)
        self._open = told
        self._indent = self._column = label.cell_len
        self._word = self._space = ""
        self._out.print(label, end="", soft_wrap=True)
        if told.parts:  # something came in between
            self._show(told.text)

    def _show(self, text: str) -> None:
        for token in _TOKENS.findall(sanitize(text)):
            if token == "\n":
                self._put_word()
                self._break()
            elif token.isspace():
                self._put_word()
                self._space += token
            else:
                self._word += token

    def _put_word(self) -> None:
        """The word is whole: it is shown, in the next line where it does not fit."""
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
