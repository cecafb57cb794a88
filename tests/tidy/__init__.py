"""The house rules, held by tests.

Each rule reads the source, changes nothing, and fails with a message that names the cure. A rule about files that do
not exist yet simply holds.

    source.py            how the rules see the code: files, imports, dotted names, functions
    test_imports.py      rooms import one way; pure modules stay pure; heavy libraries have one file each
    test_chance.py       only actors/ports/real_clock.py reads the wall clock, makes ids or rolls dice
    test_shape.py        sizes, docstrings, excepts, exports, no sleeping
    test_package.py      what the wheel holds, what the README says, what .ci/run runs
    test_rules_bite.py   every rule is shown a small offender and must see it
    test_guards_of_tests.py       the guards of tests/conftest.py refuse what they should

Rooms: events <- store <- projections <- actors <- interfaces. An arrow points at what may be imported.
"""
