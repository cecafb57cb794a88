"""The text of a page in HTML: what a reader would see, line by line. With the parser of the standard library."""

import re
from html.parser import HTMLParser
from pathlib import Path

from everlog.interfaces.documents.file_kinds import ExtractedText
from everlog.interfaces.documents.plain_text import text_of

_UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select"})
_LINES = frozenset(
    {
        "address", "article", "aside", "blockquote", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
        "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tr", "ul",
    }
)  # fmt: skip
"""Elements that begin a line, and end one."""
_PARAGRAPHS = frozenset({"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "table", "ul", "ol", "dl"})
_LINE, _PARAGRAPH = "\x01", "\x02"
"""Stand for where a line ends, and where a paragraph does, however many elements end there."""
_BREAKS = re.compile(r"(?<! ) *[\x01\x02][\x01\x02 ]*")
_CELLS = re.compile(r"(?<! ) *\t *")
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
CHARSET_BYTES = 4096
"""Where a page says what it is written in, from its beginning."""


def read(path: Path) -> ExtractedText:
    """What is seen of a page, and its title. Raises BadInput where it is no text."""
    with path.open("rb") as file:
        named = _CHARSET.search(file.read(CHARSET_BYTES))
    page = _Page()
    page.feed(text_of(path, named[1].decode("ascii") if named else "utf-8"))
    page.close()
    return ExtractedText(page.text(), page.title)


class _Page(HTMLParser):
    """Hears the page tag by tag, and keeps what is seen."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._parts: list[str] = []
        self._unseen = 0
        """Depth in elements of which nothing is seen."""
        self._kept = 0
        """Depth in elements whose spaces count."""
        self._titled = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """A tag opens."""
        if tag in _UNSEEN:
            self._unseen += 1
        elif tag == "title":
            self._titled = not self.title
        elif tag in ("td", "th"):
            self._parts.append("\t")
        self._kept += tag == "pre"
        self._break(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """A tag that closes itself."""
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        """A tag closes."""
        if tag in _UNSEEN:
            self._unseen = max(self._unseen - 1, 0)
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
        """Words between tags."""
        if self._titled:
            self.title += data
        elif not self._unseen:
            self._parts.append(data if self._kept else re.sub(r"\s+", " ", data))

    def text(self) -> str:
        """All that is seen: cells of a row apart, one blank line between paragraphs."""
        text = _BREAKS.sub(lambda found: "\n\n" if _PARAGRAPH in found[0] else "\n", "".join(self._parts))
        return _CELLS.sub(" | ", re.sub(r"(?m)^\t+", "", text))
