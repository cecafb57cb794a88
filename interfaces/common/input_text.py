"""Text that a person gives to a command: typed, read from stdin, or in a file. What is no text is refused."""

import sys
from argparse import Namespace

from everlog.events import BadInput
from everlog.interfaces.common.bootstrap import text_of


def check_text(text: str) -> str:
    """Return `text` if it can be written. Raise BadInput, which names the first byte that was no text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code, place = ord(text[error.start]), error.start + 1
        what = f"the byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else "half of a character"
        raise BadInput(
            f"The text is not UTF-8: it holds {what} in the place of character {place}. It was not taken."
        ) from error
    return text


def given_text(args: Namespace) -> str | None:
    """Return the TEXT that was typed, or read from stdin for `-`, or that of --file; None where neither was given."""
    if args.text is not None and args.file is not None:
        args.fail("give either a TEXT or --file FILE")
    if args.file is not None:
        return check_text(text_of(args.file))
    if args.text is None:
        return None
    return check_text(sys.stdin.read().rstrip("\r\n") if args.text == "-" else args.text)


def needed_text(args: Namespace) -> str:
    """Return the text as `given_text` does. Bad usage where none was given."""
    text = given_text(args)
    if text is None:
        args.fail("give either a TEXT or --file FILE")
    return str(text)
