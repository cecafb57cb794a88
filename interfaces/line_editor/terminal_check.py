"""Find out whether this process has a terminal that an editor can use. Imports nothing heavy.

Used by the prompts of `everlog chat` and `everlog sql`, before they import the editor.
"""

import os
import sys

_PLAIN_TERMINALS = ("", "dumb", "unknown")
"""Values of TERM of terminals that cannot move their cursor."""


def has_editor_terminal() -> bool:
    """Return True if a person has a terminal at both ends, whose cursor can be moved."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in _PLAIN_TERMINALS
