"""Define what a check of `everlog doctor` returns. Imports nothing heavy.

Used by the files of checks of this folder and by `doctor_command`. Programs read the levels from the JSON.
"""

from typing import Literal, NamedTuple

FindingLevel = Literal["ok", "warn", "fail"]


class Finding(NamedTuple):
    """Result of one check."""

    check: str
    """Name of the check, one word or two."""
    level: FindingLevel
    said: str
    """The fact that was found."""
    cure: str = ""
    """Thing to do; empty if nothing has to be done."""
