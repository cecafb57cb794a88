"""Tell apart the agents that had the same name one after the other. Pure.

The first agent of a name has a stream of that name. When it is deleted, a fork may take the name: it becomes the next
generation, with a stream, a partition and a file in the register of its own, all named NAME@genN. So no record of the
deleted agent is touched, and whatever holds for streams of other names holds for both.

Used by `names`, by `streams.routes` to find the newest generation, and by what makes new names. The ending is in stored
names, so it never changes.
"""

import re
from typing import NamedTuple

from everlog.events import BadInput

_GENERATION = re.compile(r"(.+)@gen([1-9][0-9]{0,5})", re.DOTALL).fullmatch


class Generation(NamedTuple):
    """One of the agents that had a name one after the other."""

    name: str
    """Name that they share."""
    number: int
    """1 for the first of them."""

    @property
    def stream(self) -> str:
        """Name of its stream. The ending may make it longer than a name can be: no stream has it then."""
        return self.name if self.number == 1 else f"{self.name}@gen{self.number}"

    @property
    def earlier(self) -> list[str]:
        """Names by which the earlier agents of the name are found, oldest first: NAME@gen1 and so on."""
        return [f"{self.name}@gen{number}" for number in range(1, self.number)]

    @property
    def next(self) -> "Generation":
        """Generation after this one."""
        return Generation(self.name, self.number + 1)


def generation_of(name: str) -> Generation:
    """Return the generation that a name (already NFC) means: the first one, unless it ends with @genN."""
    match = _GENERATION(name)
    return Generation(match[1], int(match[2])) if match else Generation(name, 1)


def bare_name(name: str) -> str:
    """Return a name (already NFC) without the ending of a generation."""
    return generation_of(name).name


def names_generation(name: str) -> bool:
    """Return True if a name (already NFC) ends with @genN."""
    return _GENERATION(name) is not None


def not_alone_error(later: str, name: str) -> BadInput:
    """Return the error for a name whose next generation cannot begin, because a still `later` one came from another
    store.
    """
    return BadInput(
        f"A fork cannot be called {name!r}: {later!r} came from another store, and would then be the newest agent of "
        "that name. Choose another name."
    )
