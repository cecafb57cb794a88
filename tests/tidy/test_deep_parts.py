"""The deep suite is divided into parts, and the seeds of the ordinary suite are the same in all processes of a run."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import parts, seeds
from tests.tidy.parsed_source import ROOT

DRAWS = "from tests.support.seeds import seeds, pick; print(seeds(5, label='a'), pick(range(99), 3, label='b'))"


def drawn(origin: str, hashes: str = "0") -> str:
    """Return the seeds that a process draws from an origin, with its own hash seed."""
    environment = {**os.environ, seeds.VARIABLE: origin, "PYTHONHASHSEED": hashes, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", DRAWS], env=environment, capture_output=True, text=True, check=True)
    return run.stdout


def test_all_processes_of_a_run_draw_the_same_and_another_text_draws_others() -> None:
    """With any hash seed the draw is the same, because it is part of test names, which xdist compares."""
    assert drawn("one", "1") == drawn("one", "2")
    assert drawn("one") != drawn("two")


def test_what_is_drawn_is_different_in_order_and_as_much_as_was_asked_for() -> None:
    """Two labels draw different seeds; all cases are returned for None, or if there are no more than the count."""
    some = seeds.seeds(20, label="one", below=100)
    assert some == sorted(set(some)) and len(some) == 20 and some[0] >= 0 and some[-1] < 100
    assert some != seeds.seeds(20, label="two", below=100)
    assert seeds.pick("abcdef", None, label="x") == seeds.pick("abcdef", 6, label="x") == list("abcdef")
    assert len(set(seeds.pick("abcdef", 3, label="x"))) == 3


def test_what_is_not_drawn_is_of_the_deep_suite() -> None:
    """Every case is a parameter once: the drawn ones unmarked, the others marked with a part of the deep suite."""
    cases: list[Any] = seeds.split(range(30), 4, label="x", part="laws")
    deep = [case for case in cases if not isinstance(case, int)]
    assert len(cases) == 30 and len(deep) == 26
    assert all({mark.name for mark in case.marks} == {"long", "laws"} for case in deep)
    assert [case if isinstance(case, int) else case.values[0] for case in cases] == [*range(30)]


@pytest.mark.parametrize("names", [["long"], ["laws"], ["long", "laws", "soak"]])
def test_a_deep_test_of_no_part_or_of_two_is_refused(names: list[str]) -> None:
    """An ordinary test with a part of the deep suite is refused too."""
    marks = {name: getattr(pytest.mark, name).mark for name in names}
    item: Any = SimpleNamespace(nodeid="test", iter_markers=marks.values, get_closest_marker=marks.get)
    with pytest.raises(pytest.UsageError, match="is of one part, any other of none"):
        parts.check(item)


def test_the_parts_and_their_times_are_in_the_handbook() -> None:
    """CONTRIBUTING.md has a row for each part, in the order of the code, and none takes more than 20 minutes."""
    table = re.findall(r"^\| `(\w+)` \|.*\| (\d+) min", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert [name for name, _ in table] == list(parts.PARTS)
    assert all(int(minutes) <= 20 for _, minutes in table)
