"""Compute BM25, the one formula by which every search here ranks words (decision 7). Works on numbers and on arrays.

Used by `archive.hybrid_search`, `projections/search/features.py` and `projections/archival_memory.py`: a change of the
constants reorders the results of all three.
"""

import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np

K1 = 0.9
"""Saturation: how soon further occurrences of a word stop counting."""
B = 0.4
"""Influence of the length of a text, from 0 to 1."""

Numbers = TypeVar("Numbers", float, "np.ndarray")


def rarity(count: int, having: int) -> float:
    """Return the weight of a word (its inverse document frequency) that `having` of `count` texts contain."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def weight(length: Numbers, average: float) -> Numbers:
    """Return the damping of a text of `length` words; `average` is the mean length, above 0."""
    return K1 * (1 - B + B * length / average)


def score(rarity: float, times: Numbers, weight: Numbers) -> Numbers:
    """Return the score that a word of that `rarity` adds to a text of that `weight` which contains the word `times`
    times.
    """
    return rarity * times * (K1 + 1) / (times + weight)
