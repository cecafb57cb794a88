"""`bench.console` computes its figures as it states, and its agent really edits its memory."""

import asyncio
from pathlib import Path

from bench import as_of, console
from bench.support import harness
from everlog.interfaces.http.console.agent_life import LifeCache


def test_figures_are_medians_over_the_page_that_reads_no_log() -> None:
    """One slow page moves no figure, and each has the floor of the server that answered it."""
    wall = {key: [place, 2.0 + place, 900.0] for place, key in enumerate(console.KEYS)}
    wall |= {"floor": [1.0, 1.5, 80.0], "agents_floor": [3.0], "agents_again_ms": [4.0]}
    seen = console.Seen(harness.Noise(1, 1, 1, 1), wall, wall)
    found = console.figures(seen)
    assert [(one.key, one.value) for one in found] == [(key, 2.0 + place) for place, key in enumerate(console.KEYS)]
    assert [one.floor for one in found] == [1.5, 1.5, 1.5, 1.5, 3.0]
    assert len(console.lines(seen, found, console.QUICK)) == 2 * len(found) + 2


def test_the_agent_edits_its_memory_without_a_failure(tmp_path: Path) -> None:
    """Two replies of three edit the block, none of the calls fails, and each moment that is looked at is an edit."""
    store = as_of.store_in(tmp_path)
    asyncio.run(as_of.talk(store, as_of.Plan(turns=36), console.Rememberer))
    life = LifeCache().life(store.reader("template"), "template")
    edits = [*life.points["edit"]]
    assert len(edits) >= 24 and not life.points["failure"]
    moments = [path.partition("as_of=")[2] for key, path in console.pages_of(edits, 9, 1) if key == "moment_ms"]
    assert len(moments) == 9 and {int(moment) for moment in moments} <= {*edits}
