"""Say how far the reader of a run's stream has come, in one number: the field `seq_id` of Letta's streams. Pure.

A cursor is made of the log and of the text that was sent, so any server continues at it. It says the seq of the last
record that the reader has whole, and the number of characters that it has of the reply that comes after that record,
with a checksum of these. A reply that is written again, after a failure, may have other words: then the checksum
differs, and the reader gets the reply whole.
"""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from everlog.actors.formats.reply_preview import reported_beginning

AGAIN = 1 << 15
"""Number from which `chars` counts messages instead: the reader had other words before, and gets the reply whole."""
CHARS_MAX = AGAIN - 1
"""Characters of a reply that a cursor can count: those after them are sent when the reply is in the log."""
_CHECK_BITS = 9


class StreamCursor(NamedTuple):
    """Position of a reader."""

    seq: int
    chars: int = 0
    """Characters of the next reply that the reader has; from `AGAIN` on, messages of it."""
    check: int = 0
    """Checksum of the characters."""
    tokens: bool = False
    """True if the reader gets words while the model writes them."""

    @property
    def number(self) -> int:
        """The cursor as a number, which rises in a stream; below 2**53 for 134 million records."""
        return ((self.seq << 16 | self.chars) << _CHECK_BITS | self.check) << 1 | self.tokens


START = StreamCursor(0)


def cursor_of(number: int) -> StreamCursor:
    """Return the cursor that a number is."""
    tokens, number = bool(number & 1), number >> 1
    check, number = number & ((1 << _CHECK_BITS) - 1), number >> _CHECK_BITS
    return StreamCursor(number >> 16, number & (AGAIN | CHARS_MAX), check, tokens)


def checksum(text: str, before: int = 0) -> int:
    """Return the checksum, in 32 bits, of a text; `before` is that of the text before it."""
    return crc32(text.encode("utf-8", "surrogatepass"), before)


def check_of(sum_of_text: int) -> int:
    """Return the part of a checksum that a cursor holds."""
    return sum_of_text & ((1 << _CHECK_BITS) - 1)


def characters_sent(texts: Sequence[str], cursor: StreamCursor) -> list[int] | None:
    """Return how many characters of each text of a reply a reader has; None: it has other words, so it gets all again.

    `texts`: the thought, which may be empty, then the messages. Before the messages begin, a thought may have been
    reported only up to its first sign that could have begun a call.
    """
    for thought in dict.fromkeys((texts[0], reported_beginning(texts[0]))):
        reported = [thought, *texts[1:]]
        whole = "".join(reported)
        if cursor.chars <= len(whole) and check_of(checksum(whole[: cursor.chars])) == cursor.check:
            left, sent = cursor.chars, []
            for text in reported:
                sent.append(min(left, len(text)))
                left -= sent[-1]
            return sent
    return None
