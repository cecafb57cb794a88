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

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def sanitize(text: str) -> str:
    """Return `text` with every control character escaped, except line feeds and tabs: it cannot control a terminal."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text.replace("\r\n", "\n"))


def complain(said: object, code: str = "") -> None:
    """Print an error or a warning on stderr: one line for a program, wrapped between words on a terminal.

    An EverlogError is followed by a line that names its page; `code` names the page of an error that comes as text.
    """
    text = "everlog: " + sanitize(" ".join(str(said).split()))
    terminal = sys.stderr.isatty()
    if terminal:
        text = textwrap.fill(text, shutil.get_terminal_size().columns - 1, break_on_hyphens=False)
    print(text, file=sys.stderr, flush=True)
    page = said.code if isinstance(said, EverlogError) else code
    if page:
        more = f"{MORE}{page}"
        styled = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        print(f"{_DIM}{more}{_PLAIN}" if styled else more, file=sys.stderr, flush=True)
