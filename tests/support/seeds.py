"""Draw the seeds of a run: the same ones in every run and in every process of it.

A test that holds for a whole range of seeds tries a few of them in the ordinary suite, and all of them in the deep
suite. EVERLOG_SEED, any text, draws another few; a failing run prints the text at its end. By default the few do not
change from commit to commit: a commit is not to fail for what an earlier one did wrong.
"""

import hashlib
import os
import random
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
VARIABLE = "EVERLOG_SEED"
ORIGIN = "everlog"
"""Origin of the seeds if EVERLOG_SEED is not set."""
RANGE = 1_000_000
"""Exclusive limit of the seeds, unless a test gives another one."""


def origin() -> str:
    """Return the text that the seeds of this run are drawn from: EVERLOG_SEED, or else ORIGIN."""
    return os.environ.get(VARIABLE) or ORIGIN


def seeds(count: int, *, label: str, below: int = RANGE) -> list[int]:
    """Draw `count` different seeds below a number, in order. Tests with different labels get different seeds."""
    return sorted(chance(label).sample(range(below), count))


def chance(label: str) -> random.Random:
    """Return a generator whose seed depends on the origin and the label, for a test that draws more than seeds."""
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
