"""Write memories as one text within limits. Pure.

Which memories are taken is decided by their priority; the text always has them in the order of their times.
"""

from collections.abc import Callable, Sequence

from everlog.actors.models.daily_usage import BYTES_PER_TOKEN
from everlog.actors.recollection.memory_items import MemoryItem, size
from everlog.events import BadInput

MemoryFormatter = Callable[[MemoryItem], str]
"""Function that writes one memory."""


def formatted(
    items: Sequence[MemoryItem],
    priority: Sequence[int],
    formatter: MemoryFormatter,
    *,
    separator: str = "\n\n",
    item_limit: int | None = None,
    token_limit: int | None = None,
) -> str:
    """Return the items as one text, in the order given, with the separator between them.

    `priority`: numbers of items (from 0), the one to take first first. `item_limit`: most items; `token_limit`: most
    tokens of the whole text, separators included, as `memory_items.tokens` estimates them. None: no limit. An item that
    does not fit is left out, and a smaller one of lower priority may still be taken. Raises BadInput for a limit below
    0.
    """
    for name, limit in (("item_limit", item_limit), ("token_limit", token_limit)):
        if limit is not None and limit < 0:
            raise BadInput(f"{name} is 0 or more, not {limit}.")
    room = None if token_limit is None else token_limit * BYTES_PER_TOKEN
    between = size(separator)
    taken: dict[int, str] = {}
    for number in priority:
        if item_limit is not None and len(taken) >= item_limit:
            break
        text = formatter(items[number])
        if room is not None:
            cost = size(text) + (between if taken else 0)
            if cost > room:
                continue
            room -= cost
        taken[number] = text
    return separator.join(taken[number] for number in sorted(taken))
