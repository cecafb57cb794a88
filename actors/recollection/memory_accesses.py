"""Compute when memories were last retrieved, from the results of searches that are in the log. Pure.

A search keeps no counter and writes nothing: its result is a `function_result` like any other, so the last access of a
memory can be computed as of every moment. A result names a message by its time and its words, so two messages of the
same day with the same words count as one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from everlog.actors.models.offline import hits
from everlog.actors.models.offline.request import CallResult
from everlog.actors.prompt.message_format import day
from everlog.actors.recollection.memory_items import MemoryItem
from everlog.store.embedding.best_passage import MARK

SEARCH_FUNCTIONS = frozenset(
    {"conversation_search", "conversation_search_date", "archival_memory_search", "memories_search"}
)
"""Functions whose results are memories."""


def last_accesses(
    calls: Iterable[Mapping[str, Any]], items: Sequence[MemoryItem], zone: str, now: int
) -> dict[tuple[int, int], int]:
    """Return the time of the last access of each item by its key: when a search found it, else when it was said.

    `calls`: rows of the projection `function_calls`. `zone`: zone of the results' times. `now`: microseconds UTC; later
    searches do not count.
    """
    found = {item.key: item.at for item in items}
    places: dict[tuple[str, str], list[MemoryItem]] = defaultdict(list)
    for item in items:
        places[day(item.at, zone), " ".join(item.text.split())].append(item)
    for at, hit in _hits(calls, now):
        text = " ".join(hit.text.split())
        same = places.get((hit.day, text)) or [
            item
            for (on, whole), some in places.items()
            if on == hit.day and MARK in text and text.strip(f"{MARK} ") in whole
            for item in some
        ]
        for item in same:
            found[item.key] = max(found[item.key], at)
    return found


def _hits(calls: Iterable[Mapping[str, Any]], now: int) -> Iterator[tuple[int, hits.SearchHit]]:
    for call in calls:
        if call["name"] in SEARCH_FUNCTIONS and call["outcome"] == "ok" and call["ended_at"] <= now:
            for hit in hits.hits(CallResult(call["name"], {}, ok=True, text=call["result"] or "")):
                yield call["ended_at"], hit
