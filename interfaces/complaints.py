"""What goes to stderr: one paragraph, always beginning with `everlog: `. Imports nothing heavy."""

import shutil
import sys
import textwrap


def complain(said: object) -> None:
    """Say an error or a warning: one line for a program, wrapped between words on a terminal."""
    text = "everlog: " + " ".join(str(said).split())
    if sys.stderr.isatty():
        text = textwrap.fill(text, shutil.get_terminal_size().columns - 1, break_on_hyphens=False)
    print(text, file=sys.stderr, flush=True)
