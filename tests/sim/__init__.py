"""Simulation: disk, clock, processes and troubles from one seed, in one process; a failing seed reproduces.

    disk.py            the hardware: page cache and platter, torn sectors, names that were not synced, lost pages
    world.py           one seed: processes that take turns at every call of the disk, and what befalls them
    habits.py          how likely each trouble is in a world
    lives.py           what processes do: writers, readers
    checkers.py        the judge, who knows what was sent and what was answered, and no line of the store
    simulation.py      a whole run: troubles, calm, judgement
    rot.py             bits that change by themselves, after a run
    scenarios.py       kinds of worlds that look where a mixture seldom does
    counting.py        a derivation of states that can be judged
    breaking.py, guards.py, guards_reading.py, mutations.py
                       every guard of the store, broken once, and the seed that finds out

`python -m tests.sim [SCENARIO] SEED` shows what happens in the world of a seed.
"""
