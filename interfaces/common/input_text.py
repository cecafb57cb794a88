"""Read text that a person gives to a command: typed, from stdin, or in a file. Text that is not UTF-8 is rejected.

Used by commands that take TEXT or --file. `check_text` runs before anything is written, as its error promises.
"""

import re
import sys
from argparse import ArgumentTypeError, Namespace

from everlog.events import BadInput
from everlog.interfaces.common import argument_values
from everlog.interfaces.common.open_store import text_of

_PAGE = re.compile(r"(.*?)\s*--page(?: +|=)(\S+)", re.DOTALL)


def check_text(text: str) -> str:
    """Return `text` if it can be encoded in UTF-8. Raise BadInput with the first byte that cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code, place = ord(text[error.start]), error.start + 1
        what = f"the byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else "half of a character"
        raise BadInput(f"The text is not UTF-8: character {place} is {what}. Nothing was written.") from error
    return text


def given_text(args: Namespace) -> str | None:
    """Return the TEXT that was typed, or read from stdin for `-`, or the text of --file; None if neither was given."""
    if args.text is not None and args.file is not None:
        args.fail("give either TEXT or --file FILE, not both")
    if args.file is not None:
        return check_text(text_of(args.file))
    if args.text is None:
        return None
    return check_text(sys.stdin.read().rstrip("\r\n") if args.text == "-" else args.text)


def required_text(args: Namespace) -> str:
    """Return the text as `given_text` does. Exit with a usage error if none was given."""
    text = given_text(args)
    if text is None:
        args.fail("give either TEXT or --file FILE")
    return str(text)


def query_and_page(text: str) -> tuple[str, int]:
    """Split "QUERY --page N", as it is typed in a chat; the page is 1 without --page. Raises BadInput for another N."""
    found = _PAGE.fullmatch(text)
    if found is None:
        return text, 1
    try:
        return found[1], argument_values.page(found[2])
    except ArgumentTypeError as error:
        raise BadInput(f"--page: {error}.") from error
