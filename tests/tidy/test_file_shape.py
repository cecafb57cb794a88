"""Sizes, docstrings, excepts and exports, so that every file stays readable."""

import pytest

from tests.tidy import house_rules
from tests.tidy.parsed_source import everything, report, sources

pytestmark = pytest.mark.xdist_group("tidy")  # the sources are read and parsed once in a process


def test_files_are_short() -> None:
    """A file has under 400 lines."""
    report(
        list(house_rules.long_files(everything())),
        "find the second responsibility and give it a file with its own name",
    )


def test_functions_are_short() -> None:
    """A function has under 70 lines."""
    report(list(house_rules.long_functions(everything())), "name the steps and make each a function")


def test_most_functions_are_very_short() -> None:
    """The median function of the rooms has under 10 lines."""
    report(list(house_rules.median_too_long(sources())), "name the steps and make each a function")


def test_nothing_catches_everything() -> None:
    """An unexpected exception is a bug of everlog and must propagate."""
    cure = "catch the types that can be answered here; let the others end the work, or use try/finally to clean up"
    report(list(house_rules.broad_excepts(sources())), cure)


def test_files_say_what_may_live_in_them() -> None:
    """Every source file begins with a docstring."""
    report(
        list(house_rules.without_docstring(everything())), "open the file with what may live in it and what it promises"
    )


def test_exports_exist_and_are_sorted() -> None:
    """Every name in an `__all__` is defined, occurs once, and is in the linter's order."""
    report(list(house_rules.bad_exports(sources())), "define or import the name; `ruff check --fix` sorts the list")
