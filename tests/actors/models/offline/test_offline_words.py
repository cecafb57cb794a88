"""What the offline stand-in's rules skip for speed is what they could not match anyway."""

import re
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.actors.models.offline import rules, talk, turn, words
from everlog.actors.models.offline.words import Wording


def wordings(module: ModuleType) -> list[Wording]:
    """Every Wording of a module, those in its tables too."""
    found = [value for value in vars(module).values() if isinstance(value, Wording)]
    rows = [row for table in vars(module).values() if isinstance(table, tuple) for row in table]
    return found + [item for row in rows if isinstance(row, tuple) for item in row if isinstance(item, Wording)]


WORDINGS = [wording for module in (rules, talk, turn, words) for wording in wordings(module)]
TELLING = [
    *rules._NAMED, *(pattern for _, pattern in rules._PATTERNS), rules._CALLED, rules._NAME_OF, rules._MY,
    rules._MY_SHORT, rules._FIRST_PERSON,
]  # fmt: skip
"""Patterns of clauses in which somebody tells of themselves."""


def test_there_are_wordings() -> None:
    """The tables were found; a test over none would pass for nothing."""
    assert len(WORDINGS) > 15


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.pattern.pattern[:40])
@given(data=st.data())
def test_a_wording_is_found_in_all_that_its_pattern_matches(wording: Wording, data: st.DataObject) -> None:
    """What a wording needs stands in whatever its pattern matches, so looking for that first loses nothing."""
    text = data.draw(st.from_regex(wording.pattern))
    found, match = wording.search(text), wording.pattern.search(text)
    assert found is not None and match is not None and found.span() == match.span()
    assert wording.sub("#", text) == wording.pattern.sub("#", text)


def test_a_wording_is_not_found_where_its_pattern_does_not_match() -> None:
    """That a text holds what is needed is not enough."""
    assert Wording(r"\bsick\b", "sick").search("a sickle") is None
    assert Wording(r"\bsick\b", "sick").sub("well", "a sickle") == "a sickle"


@pytest.mark.parametrize("pattern", TELLING, ids=lambda pattern: pattern.pattern[:40])
@given(data=st.data())
def test_whoever_tells_of_themselves_begins_in_one_of_the_known_ways(
    pattern: re.Pattern[str], data: st.DataObject
) -> None:
    """A clause that any of the patterns matches is not passed over for how it begins."""
    clause = data.draw(st.from_regex(pattern))
    assert pattern.match(clause)
    assert rules._OWN.match(clause)
