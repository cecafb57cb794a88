"""Print errors and warnings to stderr: one paragraph that begins with `everlog: `. Imports nothing heavy.

Text from outside must not control the terminal. Everything that is printed for people goes through `sanitize`, names,
labels and errors included.
"""

import re
import shutil
import sys
import textwrap

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def sanitize(text: str) -> str:
    """Return `text` with every control character escaped, except line feeds and tabs: it cannot control a terminal."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text.replace("\r\n", "\n"))


def complain(said: object) -> None:
    """Print an error or a warning to stderr: on one line if stderr is not a terminal, else wrapped between words."""
    text = "everlog: " + sanitize(" ".join(str(said).split()))
    if sys.stderr.isatty():
        text = textwrap.fill(text, shutil.get_terminal_size().columns - 1, break_on_hyphens=False)
    print(text, file=sys.stderr, flush=True)
