"""Serve the owners of queued items in rounds, so that an owner with many items delays only its own.

Used by `EndpointQueue`, with one owner for each agent.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Queue with one line for each owner. Adding, taking and withdrawing take constant time."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, whose: str, item: T, *, first: bool = False) -> None:
        """Add an item. `first`: before the owner's other items; a new owner is still served last in the round."""
        line = self._lines.setdefault(whose, OrderedDict())
        line[item] = None
        if first:
            line.move_to_end(item, last=False)
        self._count += 1

    def peek(self) -> T | None:
        """Return the next item; None if there is none."""
        return next(iter(next(iter(self._lines.values()))), None) if self._lines else None

    def take(self) -> T:
        """Remove and return the next item. Raises KeyError if the queue is empty."""
        whose, line = self._lines.popitem(last=False)
        item, _ = line.popitem(last=False)
        if line:
            self._lines[whose] = line
        self._count -= 1
        return item

    def withdraw(self, whose: str, item: T) -> None:
        """Remove an item, if it is in the queue."""
        line = self._lines.get(whose)
        if line is not None and item in line:
            del line[item]
            self._count -= 1
            if not line:
                del self._lines[whose]

    def clear(self) -> list[T]:
        """Remove and return all items, in the order in which they would be taken."""
        return [self.take() for _ in range(self._count)]
