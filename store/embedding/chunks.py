"""Split long texts into parts at natural breaks. Pure and never changed: `CHUNKER` is the version of the rules.

Whole paragraphs stay together where they fit, then whole sentences, then words. A text without spaces is never split
inside a visible character: not before a combining mark, nor inside a joined emoji.

Used by `row_fold`, and for messages by `message_vectors` and `projections/search`.
"""

import re
import unicodedata
from collections.abc import Iterator

CHUNK_CHARS = 1_000
"""Length above which a text is split, and of each part, inclusive."""
PASSAGE_CHARS = 500
"""Length of a passage of a message, inclusive. Each passage is found by itself: the vector of a long text is near to
nothing.
"""
MESSAGE_CHARS_MAX = 100_000
"""Characters of a message that are searched, from its beginning: 200 passages and more."""
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？；])|\n")
_HEADING = re.compile(r"#{1,6} [^\n]*")
_SPACE = re.compile(r"\s+")
_BORDERS = (_PARAGRAPH, _SENTENCE, _SPACE)
_JOINER = "\u200d"
_TAIL = 16
"""Number of code points that one visible character may have: a family of emoji has seven."""


def chunks(text: str, chars_max: int = CHUNK_CHARS) -> list[str]:
    """Return the parts of `text`, each of at most `chars_max` characters, in order, without white space at the splits.

    A text that is short enough is one part, unchanged; there is always at least one part.
    """
    if len(text) <= chars_max:
        return [text]
    return [part for part in _pack_pieces(text.strip(), chars_max, 0) if part] or [""]


def passages(text: str) -> list[str]:
    """Return the passages of a message, in order: at least one, each of at most PASSAGE_CHARS characters.

    What a message has after MESSAGE_CHARS_MAX characters is left out.
    """
    return chunks(text[:MESSAGE_CHARS_MAX], PASSAGE_CHARS)


def _pack_pieces(text: str, chars_max: int, level: int) -> Iterator[str]:
    """Yield parts of as many pieces as fit, split at borders of that level; split a piece that is too long at finer
    borders.
    """
    if len(text) <= chars_max:
        yield text
        return
    if level == len(_BORDERS):
        yield from _split_by_length(text, chars_max)
        return
    start = end = 0
    for piece_start, piece_end in _pieces(text, _BORDERS[level]):
        if piece_end - start > chars_max:
            if end > start:
                yield text[start:end].strip()
            start = piece_start
        end = piece_end
        if end - start > chars_max:
            yield from _pack_pieces(text[start:end], chars_max, level + 1)
            start = end
    if end > start:
        yield text[start:end].strip()


def _pieces(text: str, border: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of the pieces between the borders; a border without its white space belongs to the piece
    before it.

    A heading is not a piece of its own: it begins the next piece.
    """
    start = 0
    for match in border.finditer(text):
        end = match.start() + len(match.group().rstrip())
        if end > start and _HEADING.fullmatch(text, start, end):
            continue
        if end > start:
            yield start, end
        start = match.end()
    if start < len(text):
        yield start, len(text)


def _split_by_length(text: str, chars_max: int) -> Iterator[str]:
    """Yield parts of a text without borders, split between visible characters."""
    start = 0
    while len(text) - start > chars_max:
        end = start + chars_max
        for place in range(end, max(end - _TAIL, start + 1), -1):
            if not _belongs(text, place):
                end = place
                break
        yield text[start:end]
        start = end
    yield text[start:]


def _belongs(text: str, place: int) -> bool:
    """Return True if the character at `place` is displayed as one with the character before it."""
    here, before = text[place], text[place - 1]
    if _JOINER in {here, before} or unicodedata.category(here) in {"Mn", "Me", "Mc"}:
        return True
    if 0x1F3FB <= ord(here) <= 0x1F3FF:  # a skin tone
        return True
    return _is_flag(here) and _is_flag(before)


def _is_flag(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF
