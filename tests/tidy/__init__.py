"""The house rules, checked by tests.

Each rule reads the source, changes nothing, and fails with a message that names the cure. A rule about files that do
not exist yet passes.

    parsed_source.py         the code as the rules see it: files, imports, dotted names, functions
    house_rules.py           the rules, as functions from sources to problems
    house.py                 the rules of the layout
    prose_rules.py           the rules of prose
    test_imports.py          rooms import one way; pure modules stay pure; heavy libraries have one file each
    test_pure_time.py        only actors/ports/real_clock.py reads the wall clock, makes ids or draws random numbers
    test_file_shape.py       sizes, docstrings, excepts, exports
    test_wheel.py            the content of the wheel, the claims of the README, the commands of .ci/run
    test_rules_bite.py       every rule detects a small offender
    test_guards_of_tests.py  the guards of tests/conftest.py refuse what they should

Rooms: events <- store <- projections <- actors <- interfaces. An arrow points at the room that may be imported.
"""
