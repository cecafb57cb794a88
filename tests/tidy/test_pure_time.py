"""Time, ids and chance are arguments: only one file reads the real ones."""

import pytest

from tests.tidy import house_rules
from tests.tidy.parsed_source import report, sources

pytestmark = pytest.mark.xdist_group("tidy")  # the sources are read and parsed once in a process


def test_one_file_reads_the_wall_clock() -> None:
    """Only actors/ports/real_clock.py reads the wall clock, sleeps, makes ids or draws random numbers, so that all else
    can be replayed.
    """
    cure = "take a Clock, Ids or random.Random argument; actors/ports/real_clock.py holds the real ones"
    report(list(house_rules.chance(sources())), cure)


def test_no_test_sleeps() -> None:
    """A test waits for a condition, or moves the clock; a sleep is slow and unreliable."""
    cure = "give the code a clock of the test's own, or wait for the event, the file or the process itself"
    tests = [source for source in sources("tests") if source.path != "tests/conftest.py"]  # it refuses sleep by name
    report(list(house_rules.sleeping(tests)), cure)
