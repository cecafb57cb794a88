"""The table of files in docs/explanation/durability.md is complete."""

from pathlib import Path

from tests.damage.store_table import files_of, kind_of, kinds


def test_every_file_of_a_store_has_a_row_and_every_row_a_file(whole: Path) -> None:
    """Each file of a store with everything in it matches one row, and each pattern that is not marked as passing
    matches a file.
    """
    rows, files = kinds(), files_of(whole)
    for file in files:
        kind_of(file, rows)
    patterns = [pattern for row in rows for pattern in row.patterns]
    unused = [p.text for p in patterns if p.at_rest and not any(p.matches(file) for file in files)]
    assert not unused, f"no file of the store matches {unused}: mark them with †, or make such a file in whole_store.py"
    assert all(len(row.cells) == 5 and all(row.cells) for row in rows)
