"""Rules for changes of archival memory, the same for the agent's functions and for people. Pure.

A refusal is a FunctionError, in words for the model; a person gets the same words as BadInput. Used by
`memgpt_functions.py` and `core_memory.py` for agents, and by `hosting/edit_memories.py` for people.
"""

from collections.abc import Sequence

import msgspec

from everlog.actors.ports.agent_constants import ARCHIVAL_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX
from everlog.actors.ports.effects import Hit
from everlog.events import ArchivalDeleted, ArchivalInserted, ArchivalUpdated, FunctionError

ArchivalChange = ArchivalInserted | ArchivalUpdated | ArchivalDeleted


def inserted_event(text: str, tags: Sequence[str] | None) -> ArchivalInserted:
    """Return the event of a new memory; white space around text and tags is removed. Raise FunctionError."""
    return ArchivalInserted(text=_text(text), tags=_tags(tags or ()))


def updated_event(before: Hit, text: str, tags: Sequence[str] | None) -> ArchivalUpdated | None:
    """Return the event that changes a memory; None if nothing changes. `tags` None: the tags stay.

    Raises FunctionError.
    """
    event = ArchivalUpdated(
        memory_id=before.ref, text=_text(text), tags=list(before.tags) if tags is None else _tags(tags)
    )
    return None if (event.text, event.tags) == (before.text, list(before.tags)) else event


def id_of(memory_id: str) -> str:
    """Return the id of a memory; a part of it ("<id>/2") means the whole."""
    return memory_id.strip().partition("/")[0].lower()


def unknown(memory_id: str) -> FunctionError:
    """Return the error for an id that belongs to no memory."""
    return FunctionError(
        f"There is no memory with the id {memory_id.strip()[:80]!r} to change: it never was, it was deleted, or it is "
        "a document's. A search of archival memory shows the id of each memory that it finds; copy it exactly."
    )


def _text(text: str) -> str:
    text = text.strip()
    if not text:
        raise FunctionError("There is nothing to keep: the content is empty.")
    if len(text) > ARCHIVAL_CHARS_MAX:
        raise FunctionError(
            f"A memory holds {ARCHIVAL_CHARS_MAX:,} characters at most, and this text has {len(text):,}. Keep it in "
            "several memories, or have it loaded as a document. Nothing was kept."
        )
    return _check_whole(text)


def _tags(tags: Sequence[str]) -> list[str]:
    """Return each tag once, in the given order. Raise FunctionError."""
    found = list(dict.fromkeys(tag.strip() for tag in tags))
    if len(found) > TAGS_MAX or not all(0 < len(tag) <= TAG_CHARS_MAX for tag in found):
        raise FunctionError(
            f"A memory has {TAGS_MAX} tags at most, each a word or a few of up to {TAG_CHARS_MAX} characters, and none "
            f"empty; these are {len(found)}: {', '.join(repr(tag[:TAG_CHARS_MAX]) for tag in found[:TAGS_MAX])}."
        )
    return [_check_whole(tag) for tag in found]


def _check_whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FunctionError(f"Half a character (at {error.start}) cannot be written down. Nothing was kept.") from error
    return text


class ArchivalChanges:
    """Changes of archival memory by the calls of one step: no index and no projection has them yet."""

    def __init__(self) -> None:
        self._fresh: list[str] = []
        self._changed: dict[str, ArchivalUpdated | ArchivalDeleted] = {}

    def add(self, event: ArchivalChange) -> None:
        """Record a change by a call."""
        if isinstance(event, ArchivalInserted):
            self._fresh.append(event.text)
        else:
            self._changed[event.memory_id] = event

    def was_just_stored(self, text: str) -> bool:
        """Return True if a preceding call stored exactly this text: its id is not known yet."""
        return text in self._fresh

    def holding(self, text: str) -> str:
        """Return the id of a memory that was changed into this text; empty if there is none."""
        return next((key for key, event in self._changed.items() if _holds(event, text)), "")

    def is_changed(self, memory_id: str) -> bool:
        """Return True if the memory differs from the log."""
        return memory_id in self._changed

    def applied(self, memory: Hit) -> Hit | None:
        """Return the memory after the changes; None if it was deleted."""
        event = self._changed.get(memory.ref)
        if isinstance(event, ArchivalUpdated):
            return msgspec.structs.replace(memory, text=event.text, tags=event.tags)
        return memory if event is None else None


def _holds(event: ArchivalUpdated | ArchivalDeleted, text: str) -> bool:
    return isinstance(event, ArchivalUpdated) and event.text == text
