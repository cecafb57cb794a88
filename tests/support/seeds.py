"""Draw the seeds of a run: different ones with every commit, the same ones in every process of a run.

A test that holds for a whole range of seeds tries a few of them in the ordinary suite, and all of them in the deep
suite. The commit decides which few. EVERLOG_SEED, any text, replaces the commit: with the text that a failing run
prints at its end, the same seeds are drawn again.
"""

import hashlib
import os
import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
VARIABLE = "EVERLOG_SEED"
NO_COMMIT = "no commit"
"""Origin of the seeds if EVERLOG_SEED is not set and the files are in no repository."""
RANGE = 1_000_000
"""Exclusive limit of the seeds, unless a test gives another one."""


@cache
def origin() -> str:
    """Return the text that the seeds of this run are drawn from: EVERLOG_SEED, or else the hash of the commit."""
    return os.environ.get(VARIABLE) or commit() or NO_COMMIT


def commit() -> str:
    """Return the hash of the commit that is checked out; empty without git or repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def seeds(count: int, *, label: str, below: int = RANGE) -> list[int]:
    """Draw `count` different seeds below a number, in order. Tests with different labels get different seeds."""
    return sorted(chance(label).sample(range(below), count))


def chance(label: str) -> random.Random:
    """Return a generator whose seed depends on the commit and the label, for a test that draws more than seeds."""
    digest = hashlib.sha256(f"{origin()}\n{label}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))


def pick(cases: Sequence[T], count: int | None, *, label: str) -> list[T]:
    """Draw `count` of the cases, in their order; return all cases for None, or if there are no more than `count`."""
    if count is None or count >= len(cases):
        return list(cases)
    return [cases[index] for index in seeds(count, label=label, below=len(cases))]


def few_and_all(count: int, *, part: str) -> list[Any]:
    """Return parameters for a test that gives `pick` its count: `count`, and None in a part of the deep suite."""
    return [count, pytest.param(None, id="all", marks=[pytest.mark.long, getattr(pytest.mark, part)])]


def split(cases: Sequence[T], count: int, *, label: str, part: str) -> list[Any]:
    """Return all cases as parameters of a test: `count` drawn ones are ordinary, the others belong to a part of the
    deep suite.
    """
    drawn = seeds(count, label=label, below=len(cases))
    deep = [pytest.mark.long, getattr(pytest.mark, part)]
    return [case if index in drawn else pytest.param(case, marks=deep) for index, case in enumerate(cases)]
