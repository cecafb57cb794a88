"""Make two tests of each law: a few examples in the ordinary suite, many in the deep one."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.support.seeds import chance

Test = Callable[..., None]


def law(*strategies: SearchStrategy[Any], few: int, many: int) -> Callable[[Test], Test]:
    """Make a test of a law: `few` examples of the strategies, always the same ones unless EVERLOG_SEED draws others.

    A second test of `many` examples is added, in the part `laws` of the deep suite. Its name ends with `_at_length`.
    """

    def made(holds: Test) -> Test:
        name = holds.__name__
        deep: Any = settings(max_examples=many, deadline=None)(given(*strategies)(holds))
        deep.__name__ = deep.__qualname__ = f"{name}_at_length"
        holds.__globals__[deep.__name__] = pytest.mark.laws(pytest.mark.long(deep))
        drawn = seed(chance(f"law {name}").getrandbits(64))
        ordinary: Test = drawn(settings(max_examples=few, deadline=None)(given(*strategies)(holds)))
        return ordinary

    return made
