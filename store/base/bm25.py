"""BM25, the one formula by which every search here ranks words (decision 7). Numbers, or arrays of them."""

import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np

K1 = 0.9
"""How soon a repeated word stops counting."""
B = 0.4
"""How much the length of a text matters."""

Numbers = TypeVar("Numbers", float, "np.ndarray")


def rarity(count: int, having: int) -> float:
    """Return what a word is worth that `having` of `count` texts have."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def weight(length: Numbers, average: float) -> Numbers:
    """Return how much a text of that length dampens its words; `average` is the mean length, above 0."""
    return K1 * (1 - B + B * length / average)


def score(rarity: float, times: Numbers, weight: Numbers) -> Numbers:
    """Return what a word of that rarity adds to a text of that weight which has it so many times."""
    return rarity * times * (K1 + 1) / (times + weight)
