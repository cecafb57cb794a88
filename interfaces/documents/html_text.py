"""Extract the visible text of an HTML page, line by line, with the parser of the standard library.

Imported by `extract_text` for the first such file. Another text for the same file makes a loaded document count as
changed.
"""

import re
from html.parser import HTMLParser
from pathlib import Path

from everlog.interfaces.documents.file_kinds import ExtractedText
from everlog.interfaces.documents.plain_text import text_of

_INVISIBLE = frozenset({"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select"})
_LINES = frozenset(
    {
        "address", "article", "aside", "blockquote", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
        "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tr", "ul",
    }
)  # fmt: skip
"""Elements that begin and end a line."""
_PARAGRAPHS = frozenset({"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "table", "ul", "ol", "dl"})
_LINE, _PARAGRAPH = "\x01", "\x02"
"""Placeholders for the end of a line and of a paragraph. Several in a row are one end."""
_BREAKS = re.compile(r"(?<! ) *[\x01\x02][\x01\x02 ]*")
_CELLS = re.compile(r"(?<! ) *\t *")
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
CHARSET_BYTES = 4096
"""Bytes at the beginning of a page in which its charset is looked for."""


def read(path: Path) -> ExtractedText:
    """Return the visible text of a page, and its title. Raise BadInput if the file is not text."""
    with path.open("rb") as file:
        named = _CHARSET.search(file.read(CHARSET_BYTES))
    page = _Page()
    page.feed(text_of(path, named[1].decode("ascii") if named else "utf-8"))
    page.close()
    return ExtractedText(page.text(), page.title)


class _Page(HTMLParser):
    """Parser that collects the visible text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._parts: list[str] = []
        self._invisible_depth = 0
        """Depth of invisible elements."""
        self._kept = 0
        """Depth of elements that keep their spaces."""
        self._titled = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Handle an opening tag."""
        if tag in _INVISIBLE:
            self._invisible_depth += 1
        elif tag == "title":
            self._titled = not self.title
        elif tag in ("td", "th"):
            self._parts.append("\t")
        self._kept += tag == "pre"
        self._break(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Handle a self-closing tag."""
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        """Handle a closing tag."""
        if tag in _INVISIBLE:
            self._invisible_depth = max(self._invisible_depth - 1, 0)
        elif tag == "title":
            self._titled = False
        elif tag == "pre":
            self._kept = max(self._kept - 1, 0)
        self._break(tag)

    def _break(self, tag: str) -> None:
        if tag == "br":
            self._parts.append("\n")
        elif tag in _LINES:
            self._parts.append(_PARAGRAPH if tag in _PARAGRAPHS else _LINE)

    def handle_data(self, data: str) -> None:
        """Handle text between tags."""
        if self._titled:
            self.title += data
        elif not self._invisible_depth:
            self._parts.append(data if self._kept else re.sub(r"\s+", " ", data))

    def text(self) -> str:
        """Return all visible text: cells of a row separated by " | ", paragraphs by one blank line."""
        text = _BREAKS.sub(lambda found: "\n\n" if _PARAGRAPH in found[0] else "\n", "".join(self._parts))
        return _CELLS.sub(" | ", re.sub(r"(?m)^\t+", "", text))
