"""No damage of any file of a store is silent: it is noticed, or every answer stays the same."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.damage.damages import Damage, damages_of
from tests.damage.judge import Judge
from tests.damage.matrix import by_kind, judged, text_of
from tests.damage.store_table import files_of, kind_of, kinds
from tests.support.seeds import chance, few_and_all, pick

ROWS = [row for row in kinds() if any(pattern.at_rest for pattern in row.patterns)]
OF_PEOPLE = "people"
"""Writer of files that hold what they hold: nothing can tell a changed letter from one that a person typed."""
CHECKED = [row for row in ROWS if row.cells[0] != OF_PEOPLE]
DAMAGES_A_FILE = 24
"""Number of damages of a file in the deep suite, apart from the bits of its header."""
HEADERS = 2
"""Number of files of a kind of which every bit of the header is flipped in the deep suite."""


@pytest.fixture(scope="module")
def judge(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    found = Judge(whole, tmp_path_factory.mktemp("damaged"))
    yield found
    found.assert_untouched()


def damages(whole: Path, files: list[str], draw: random.Random, *, all_bits: bool) -> list[Damage]:
    """Return damages of files of one kind. `all_bits`: with every bit of the header of some of them."""
    headers = draw.sample(files, min(HEADERS, len(files))) if all_bits else []
    return [
        damage
        for file in files
        for damage in damages_of(whole, file, draw, body_bits=DAMAGES_A_FILE if all_bits else 4,
                                 header_bits=None if file in headers else 8)
    ]  # fmt: skip


@pytest.mark.parametrize("row", CHECKED, ids=[row.name for row in CHECKED])
@pytest.mark.parametrize("count", few_and_all(1, part="damage"))
def test_no_damage_of_a_file_is_silent(whole: Path, judge: Judge, row, count: int | None) -> None:
    """Deleted, cut, zeroed, or with a flipped bit: a check, a read or a search says so, or all answers are the same."""
    draw = chance(f"damage {row.name}")
    all_of = damages(whole, by_kind(whole)[row], draw, all_bits=count is None)
    matrix, silent = judged(judge, pick(all_of, count, label=row.name), whole)
    print(text_of(matrix))
    assert not silent, "\n".join(f"{damage}: {opinion.why}" for damage, opinion in silent)


def told_by_the_mark(one: Damage, other: Damage) -> bool:
    """Return True for the loss of a mark together with that of the end which only the mark tells of."""
    closed = [damage for damage in (one, other) if "/closed-" in damage.file]
    return bool(closed) and Path(one.file).parent == Path(other.file).parent


@pytest.mark.parametrize("count", few_and_all(2, part="damage"))
def test_no_two_damages_at_once_are_silent(whole: Path, judge: Judge, count: int | None) -> None:
    """Two damaged files are noticed as one is: no damage hides another, apart from that of a mark and its file."""
    draw = chance("two damages")
    files = [file for row, some in by_kind(whole).items() if row in CHECKED for file in some]
    every = [damage for file in files for damage in damages_of(whole, file, draw, body_bits=1, header_bits=1)]
    silent = []
    for _ in range(count or 400):
        one, other = draw.sample(every, 2)
        if one.file == other.file or told_by_the_mark(one, other):
            continue
        opinion = judge.of(one, other)
        if opinion.verdict == "silent":
            silent.append(f"{one} and {other}: {opinion.why}")
    assert not silent, "\n".join(silent)


def test_a_kind_of_every_file_is_damaged(whole: Path) -> None:
    """The matrix has a row for each kind of file that lies in a store at rest."""
    assert set(by_kind(whole)) == set(ROWS)
    assert all(kind_of(file, ROWS) for file in files_of(whole))
