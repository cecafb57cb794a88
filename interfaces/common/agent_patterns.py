"""Select agents by shell patterns such as `fleet-*`. Imports nothing heavy.

Used by `everlog agents` and `everlog delete`. Names may hold any character: a text that is the name of an agent always
means that agent, also if it has a `*`. A pattern that matches no agent is an error of the command line (exit code 2),
so that a misspelt pattern never passes for an empty fleet.
"""

import unicodedata
from argparse import Namespace
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from everlog.interfaces.common.plural import plural

GLOB = "*?["
"""Characters that make a text a pattern."""
NEAR_MAX, NEAR_CUTOFF = 3, 0.5
"""Most names that an error suggests, and how similar these must be, from 0 to 1."""
SHOWN = 3
"""Names of a selection that a question for confirmation shows."""


def is_pattern(text: str) -> bool:
    """Return True if a text has a character of a pattern."""
    return any(character in text for character in GLOB)


def select(args: Namespace, texts: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return those of `names` that the texts, names or patterns, select; each once, in the order of `names`. No text
    selects all.

    A text without a pattern is kept even if no agent has that name: the command reports it with an error of its own.
    Ends the command with exit code 2 if a pattern matches nothing.
    """
    wanted = [unicodedata.normalize("NFC", text) for text in texts]
    if not wanted:
        return list(names)
    known = set(names)
    found: set[str] = set()
    for text in wanted:
        if text in known or not is_pattern(text):
            found.add(text)
            continue
        matched = [name for name in names if fnmatchcase(name, text)]
        if not matched:
            args.fail(no_match(text, names))
        found.update(matched)
    return [*(name for name in names if name in found), *sorted(found - known)]


def selects_many(texts: Sequence[str], names: Collection[str]) -> bool:
    """Return True if the texts may select other than one agent: there are several, none, or one is a pattern and not
    the name of an agent.
    """
    return len(texts) != 1 or (is_pattern(texts[0]) and unicodedata.normalize("NFC", texts[0]) not in names)


def no_match(pattern: str, names: Sequence[str]) -> str:
    """Return the error for a pattern that matches none of `names`, with the most similar of these."""
    from difflib import get_close_matches

    bare = "".join(character for character in pattern if character not in f"{GLOB}]")
    near = get_close_matches(bare, names, NEAR_MAX, NEAR_CUTOFF)
    listed = "`everlog agents` lists them." if names else "The store has no agents yet."
    hint = f"Similar names: {', '.join(map(repr, near))}." if near else listed
    return f"no agent matches {pattern!r}. {hint}"


def summary(names: Sequence[str]) -> str:
    """Return a selection in words: "204 agents (fleet-00001, fleet-00002, fleet-00003, ...)"."""
    more = ", ..." if len(names) > SHOWN else ""
    return f"{plural(len(names), 'agent')} ({', '.join(names[:SHOWN])}{more})"
