"""Define what a check of `everlog doctor` or `everlog store check` returns, and print it. Imports nothing heavy.

Used by the files of checks of this folder and by the two commands. Programs read the levels from the JSON.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural

FindingLevel = Literal["ok", "warn", "fail"]
COLOURS: Mapping[FindingLevel, str] = {"ok": "32", "warn": "33", "fail": "31"}


class Finding(NamedTuple):
    """Result of one check."""

    check: str
    """Name of the check, one word or two."""
    level: FindingLevel
    said: str
    """The fact that was found."""
    cure: str = ""
    """Thing to do; empty if nothing has to be done."""


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings, one a line with its cure below it, and their counts."""
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for one in findings:
        level = f"{one.level:4}"
        print(f"\x1b[{COLOURS[one.level]}m{level}\x1b[0m" if colours else level, end="  ")
        print(sanitize(f"{one.check}: {one.said}"))
        if one.cure:
            print(sanitize(f"      -> {one.cure}"))
    counts = {level: sum(one.level == level for one in findings) for level in ("warn", "fail")}
    print(f"{plural(counts['fail'], 'failure')}, {plural(counts['warn'], 'warning')}.")
