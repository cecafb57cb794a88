"""Decode the bytes of a terminal into keys. Pure.

Used by `terminal_screen`.
"""

import re

_NAMED = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left",
    "\x1b[1;2C": "shift-right", "\x1b[1;2D": "shift-left",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\x1b": "escape", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x04": "end of input",
}  # fmt: skip
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[@-~]|\x1b(?![\[O])|[^\x1b]", re.DOTALL)
"""A complete escape sequence of a key, or one character."""


def keys_of(sent: str, *, over: bool) -> tuple[list[str], str]:
    """Return the keys in the text that a terminal sent, and the rest if it may be the beginning of a key.

    `over`: True if no more text follows for now, so that a lone escape is the escape key. Unknown sequences are
    skipped.
    """
    keys, at = [], 0
    while at < len(sent) and (found := _KEY.match(sent, at)):
        if found[0] == "\x1b" and found.end() == len(sent) and not over:
            break
        keys.append(_NAMED.get(found[0], found[0]))
        at = found.end()
    left = sent[at:]
    if over and left:
        return [*(key for key in keys if not key.startswith("\x1b")), "escape", *left[1:]], ""
    return [key for key in keys if not key.startswith("\x1b")], left
