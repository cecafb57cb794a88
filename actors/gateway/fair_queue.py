"""A queue in which everybody has a queue of their own, and is served in rounds: who brings much waits for it alone."""

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """What waits, by whose it is. Adding, taking and withdrawing cost the same however much waits."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, whose: str, item: T, *, first: bool = False) -> None:
        """`first`: before what else waits of the same; who is new comes last in the round all the same."""
        line = self._lines.setdefault(whose, OrderedDict())
        line[item] = None
        if first:
            line.move_to_end(item, last=False)
        self._count += 1

    def peek(self) -> T | None:
        """Whose turn it is, or None."""
        return next(iter(next(iter(self._lines.values()))), None) if self._lines else None

    def take(self) -> T:
        """The one whose turn it is. Raises KeyError if nobody waits."""
        whose, line = self._lines.popitem(last=False)
        item, _ = line.popitem(last=False)
        if line:
            self._lines[whose] = line
        self._count -= 1
        return item

    def withdraw(self, whose: str, item: T) -> None:
        """Wait no more. Nothing happens if it does not wait."""
        line = self._lines.get(whose)
        if line is not None and item in line:
            del line[item]
            self._count -= 1
            if not line:
                del self._lines[whose]

    def clear(self) -> list[T]:
        """Everything that waits, in the order of its turns; nothing waits then."""
        return [self.take() for _ in range(self._count)]
