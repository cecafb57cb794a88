"""Write a count with its noun for people. Imports nothing heavy.

Used by all code that prints counts for people.
"""


def plural(count: int, singular: str, plural: str = "") -> str:
    """Return `count` and the noun that agrees with it: "1 agent", "2 agents", "1,204 agents".

    `plural` is the form for every count but 1; without it, `singular` gets an "s".
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
