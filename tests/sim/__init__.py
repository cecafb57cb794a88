"""Simulation: disk, clock, processes and troubles from one seed, in one process; a failing seed reproduces.

    sim_disk.py          the hardware: page cache and platter, torn sectors, names that were not synced, lost pages
    sim_store_world.py   one seed: processes that take turns at every call of the disk, and their troubles
    trouble_mix.py       the probability of each trouble in a world
    sim_processes.py     the processes: writers, readers
    checkers.py          the judge, which knows all requests and answers, and uses no line of the store
    simulation.py        a whole run: troubles, calm, judgement
    bit_rot.py           bits that change after a run
    scenarios.py         kinds of worlds for cases that the mixture rarely reaches
    counting_deriver.py  states that can be judged
    broken_guards.py, write_guards.py, read_guards.py, mutations.py
                         every guard of the store, broken once, and the seed that detects it

`python -m tests.sim [SCENARIO] SEED` shows the calls in the world of a seed.
"""
