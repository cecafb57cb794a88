"""Effects under real kills: a process is killed at every point around a call, and its outside effects are counted."""

import random
from pathlib import Path

import pytest

from tests.soak.effects_audit import ROWS, Books, Broken, Zygote, matrix, table
from tests.soak.killed_effects import GUARDS
from tests.support.seeds import pick, seeds, split

KILLS, ANYWHERE_KILLS, MANY = 1, 1, 150
"""Kills at each point of a row and at random moments in the ordinary suite, and the number of each in the deep
suite.
"""
CAUGHT = {
    "the intent is durable first": ("at_most_once", "dispatched", "0 intents"),
    "an intent is committed before its effect": ("at_most_once", "before intent", "its call came to '2'"),
    "what may have happened is not run again": ("at_most_once", "dispatched", "its call came to '2'"),
    "the same call has the same key": ("idempotent", "dispatched", "2 effects"),
    "the model is told": ("at_most_once", "before dispatch", "the model was told"),
    "a turn goes on where it was": ("idempotent", "before dispatch", "2 intents"),
    "a call waits for its approval": ("approved", "before intent", "would now be approval_requested"),
}
"""Row and point at which a missing guard is noticed, and the fault."""


def test_a_kill_at_every_point_around_a_call(tmp_path: Path) -> None:
    """For an effect class and a SIGKILL at each point, calls happen at most once, exactly once or at least once, and
    unknown outcomes are reported.
    """
    rows = pick(ROWS, 1, label="kinds of calls")
    counted = matrix(tmp_path, KILLS, ANYWHERE_KILLS, seed=seeds(1, label="a kill at every point")[0], rows=rows)
    print(f"\n{table(counted)}")
    assert list(counted) == rows


@pytest.mark.long
@pytest.mark.effects
def test_many_kills_at_every_point_around_a_call(tmp_path: Path) -> None:
    """The same holds for every effect class with 150 kills at each point."""
    counted = matrix(tmp_path, MANY, MANY, seed=seeds(1, label="many kills at every point")[0])
    print(f"\n{table(counted)}")
    assert list(counted) == list(ROWS)


@pytest.mark.parametrize("guard", split([*GUARDS], 1, label="guards of effects", part="effects"))
def test_the_matrix_detects_a_missing_guard(tmp_path: Path, guard: str) -> None:
    """Without any one guard of the agent, a single kill at the right point breaks a promise."""
    row, point, said = CAUGHT[guard]
    zygote = Zygote(guard)
    try:
        with pytest.raises(Broken, match=said):
            Books(tmp_path, row, "sam").live(zygote, [point], random.Random(1))
    finally:
        zygote.close()
