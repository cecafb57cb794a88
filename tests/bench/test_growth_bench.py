"""The benchmark of growth measures the search by words and meaning that an agent has."""

import asyncio
from pathlib import Path

from bench.growth.recall_growth import KEYS, figures, lines, prepare, said, search_costs


def test_each_size_has_all_figures(tmp_path: Path) -> None:
    """Two agents are made and searched, by meaning too; the floors are those of the smaller one."""
    found = {}
    for size in (4, 12):
        asyncio.run(prepare(tmp_path / f"{size}", size))
        found[size] = asyncio.run(search_costs(tmp_path / f"{size}", searches=4))
    assert [one.key for one in figures(found)] == list(KEYS)
    assert [one.floor for one in figures(found)] == [getattr(found[4], key) for key in KEYS]
    assert len(lines(found)) == 2 * len(KEYS)
    assert min(one.search_ms for one in found.values()) > 0


def test_messages_do_not_depend_on_how_many_are_made() -> None:
    """A larger agent begins with the messages of a smaller one, so sizes can be compared."""
    assert said(1, 10)[4:6] == said(1, 2, first=4)
    assert said(1, 4) != said(2, 4)
