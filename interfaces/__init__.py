"""HOW PEOPLE REACH IT: the command line, and the protocols that it and any other front end are told through.

No decisions are made here: an interface turns what a person typed into a command, and what happened into words. What it
imports at start-up it makes everyone wait for, so ray, lancedb and openai stay out until they are used.

May import every other room; no room imports this one. Held by `tests/tidy`.
"""
