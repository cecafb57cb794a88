"""Print errors and warnings to stderr: one paragraph that begins with `everlog: `, and the address of its page.

Imports nothing heavy.

Text from outside must not control the terminal. Everything that is printed for people goes through `sanitize`, names,
labels and errors included.

Used by `interfaces/cli` for errors, and by commands that print text of logs, models or users.
"""

import os
import re
import shutil
import sys
import textwrap

from everlog.events import EverlogError

MORE = "more: everlog explain "
"""Beginning of the last line of an error; the code of the error follows."""

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"

_BUCKET = re.compile(r"/[^\s'\":]*?/everlog-buckets/(s3|gs|az)/")
"""The folder of a bucket in the cache, see `store/base/names.py`: a person knows the store by its address."""
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"  # what controls a terminal
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\u3164\ufeff"
    r"\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f]"  # what no reader sees
    # Joiners belong to emoji, and to words of Persian and of languages of India. After or before ASCII they only hide.
    r"|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)


def sanitize(text: str) -> str:
    """Return `text` with every control character and every invisible one escaped, except line feeds and tabs: it cannot
    control a terminal, and two texts that look alike are alike.
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def escape_line(text: str) -> str:
    """Return `text` as `sanitize` does, and with line feeds and tabs escaped too: for sentences of one line with names,
    which may hold any character.
    """
    return sanitize(text).replace("\n", "\\n").replace("\t", "\\t")


def _with_addresses(text: str) -> str:
    """Return `text` with the addresses of buckets in place of the folders that stand for them."""
    return _BUCKET.sub(r"\1://", text)


def complain(said: object, code: str = "") -> None:
    """Print an error or a warning on stderr: one line for a program, wrapped between words on a terminal.

    An EverlogError is followed by a line that names its page; `code` names the page of an error that comes as text.
    """
    text = "everlog: " + sanitize(" ".join(_with_addresses(str(said)).split()))
    terminal = sys.stderr.isatty()
    if terminal:
        text = textwrap.fill(text, shutil.get_terminal_size().columns - 1, break_on_hyphens=False)
    print(text, file=sys.stderr, flush=True)
    page = said.code if isinstance(said, EverlogError) else code
    if page:
        more = f"{MORE}{page}"
        styled = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        print(f"{_DIM}{more}{_PLAIN}" if styled else more, file=sys.stderr, flush=True)
