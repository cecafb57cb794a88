"""What goes to stderr: one paragraph, always beginning with `everlog: `. Imports nothing heavy.

Words that came from outside are never trusted with the terminal: everything that is printed for people goes through
`sanitize`, names and labels and errors included.
"""

import re
import shutil
import sys
import textwrap

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def sanitize(text: str) -> str:
    """`text` without power over a terminal: line ends and tabs stay, every other control character is escaped."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text.replace("\r\n", "\n"))


def complain(said: object) -> None:
    """Say an error or a warning: one line for a program, wrapped between words on a terminal."""
    text = "everlog: " + sanitize(" ".join(str(said).split()))
    if sys.stderr.isatty():
        text = textwrap.fill(text, shutil.get_terminal_size().columns - 1, break_on_hyphens=False)
    print(text, file=sys.stderr, flush=True)
