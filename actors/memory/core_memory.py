"""Core memory while functions run: the blocks as they were before the call, and the events of every edit since. Pure.

Limits are checked before an edit is recorded: a value that is too long is refused, and nothing changes. Used by
`decide.py` and `turn_runner.py`, and by `replay/reexecute.py`; users' functions get a `Memory`. The texts of errors
become recorded function results, which `verify` compares.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from everlog.actors.memory.archival_rules import ArchivalChange, ArchivalChanges
from everlog.actors.memory.shared_block_rules import append_line, remove_text
from everlog.actors.ports.effects import Searcher
from everlog.actors.prompt.context import MemoryBlock
from everlog.events import AgentMessageSent, Event, FunctionError, MemoryEdited, TimerCancelled, TimerSet

MemoryOperation = Literal["appended", "replaced", "removed", "set"]


class PendingEdit(msgspec.Struct, frozen=True):
    """Edit of a shared block that is not made yet: the block's own stream decides if it can be."""

    label: str
    block: MemoryBlock
    """The agent's copy before the edit."""
    operation: MemoryOperation
    content: str
    old: str


class Memory:
    """Blocks of one agent. An edit is one event with the whole new value; an edit of a shared block is pending."""

    def __init__(self, blocks: Sequence[MemoryBlock]) -> None:
        self._blocks = {block.label: block for block in blocks}
        self._events: list[Event] = []
        self._pending_edits: list[PendingEdit] = []

    @property
    def labels(self) -> list[str]:
        """Labels of all blocks."""
        return list(self._blocks)

    def value(self, label: str) -> str:
        """Return the text of a block. Raise FunctionError for an unknown block."""
        return self._block(label).value

    def append(self, label: str, content: str) -> None:
        """Add `content` on a line of its own."""
        self._edit(label, append_line(self._writable(label).value, content), "appended", content)

    def replace(self, label: str, old: str, new: str) -> None:
        """Replace every occurrence of `old` by `new`; an empty `new` deletes. `old` must occur exactly as given."""
        value = self._must_hold(label, old)
        emptied = not new and not self._block(label).origin
        self._edit(label, value.replace(old, new), "removed" if emptied else "replaced", new, old)

    def remove(self, label: str, old: str) -> None:
        """Delete every occurrence of `old`, and lines that this leaves empty."""
        value = self._must_hold(label, old)
        self._edit(label, remove_text(value, old), "removed", "", old)

    def set(self, label: str, value: str) -> None:
        """Rewrite the whole block."""
        self._edit(label, value, "set", value)

    def items(self, label: str) -> list[str]:
        """Return the items of a block: its lines that are not empty."""
        return [line for line in self.value(label).split("\n") if line.strip()]

    def add_item(self, label: str, item: str) -> None:
        """Add an item as the last line. Raise FunctionError for an item that is no line."""
        self.append(label, _item(item))

    def replace_item(self, label: str, item: str, new: str) -> None:
        """Replace the first line that is `item`. Raise FunctionError if no line is, or if `new` is no line."""
        items = self._items_with(label, item)
        items[items.index(item)] = _item(new)
        self._edit(label, "\n".join(items), "replaced", new, item)

    def remove_item(self, label: str, item: str) -> None:
        """Delete the first line that is `item`. Raise FunctionError if no line is."""
        items = self._items_with(label, item)
        items.remove(item)
        self._edit(label, "\n".join(items), "removed", "", item)

    def emit(self, event: Event) -> None:
        """Add an event that is not an edit, in order."""
        self._events.append(event)

    def taken(self) -> list[Event]:
        """Return the events since the last call of this method, in order."""
        events, self._events = self._events, []
        return events

    def restore(self, blocks: Sequence[MemoryBlock]) -> None:
        """Restore `blocks`, and drop the events since the last call of `taken`: the function failed."""
        self._blocks = {block.label: block for block in blocks}
        self._events, self._pending_edits = [], []

    def take_pending_edits(self) -> list[PendingEdit]:
        """Return the edits of shared blocks since the last call of this method, in order. None is made yet."""
        pending_edits, self._pending_edits = self._pending_edits, []
        return pending_edits

    def adopt(self, event: MemoryEdited) -> None:
        """Update a block from a recorded event, for the calls after this one."""
        block = self._block(event.label)
        self._blocks[event.label] = msgspec.structs.replace(
            block, value=event.text, limit=event.limit, description=event.description, read_only=event.read_only,
            origin=event.origin, origin_version=event.origin_version,
        )  # fmt: skip

    def blocks(self) -> list[MemoryBlock]:
        """Return the current blocks."""
        return list(self._blocks.values())

    def _block(self, label: str) -> MemoryBlock:
        try:
            return self._blocks[label]
        except KeyError:
            raise FunctionError(
                f"There is no memory block {label!r}; there are {', '.join(map(repr, self._blocks))}."
            ) from None

    def _writable(self, label: str) -> MemoryBlock:
        block = self._block(label)
        if block.read_only and not block.origin:  # the stream of a shared block decides itself
            raise FunctionError(
                f"The memory block {label!r} is read-only: only people change it. Nothing was changed; keep what you "
                "want to note in another block, or in archival memory."
            )
        return block

    def _must_hold(self, label: str, old: str) -> str:
        value = self._writable(label).value
        if not old:
            raise FunctionError("The old content must not be empty: say exactly what to replace.")
        if old not in value:
            raise FunctionError(f"Content not found in {label!r} (make sure to use the exact string).")
        return value

    def _items_with(self, label: str, item: str) -> list[str]:
        """Return the items of a block that has this one. Raise FunctionError if it has not, or is shared: others edit
        the text of a shared block meanwhile, and its lines may be parts of other lines.
        """
        if self._writable(label).origin:
            raise FunctionError(f"{label!r} is shared: edit its text with core_memory_replace. Nothing was changed.")
        items = self.items(label)
        if item not in items:
            raise FunctionError(f"Item not found in {label!r} (make sure to use the exact line).")
        return items

    def _edit(self, label: str, value: str, operation: MemoryOperation, content: str, old: str = "") -> None:
        block = self._writable(label)
        if not isinstance(value, str) or not _is_writable(value):
            raise FunctionError(f"A block holds text, not {type(value).__name__!r} or half a character.")
        if block.origin:
            self._pending_edits.append(PendingEdit(label, block, operation, content, old))
            self._blocks[label] = msgspec.structs.replace(block, value=value)
            return
        if len(value) > block.limit:
            raise FunctionError(
                f"Edit failed: Exceeds {block.limit} character limit (requested {len(value)}). Consider summarizing "
                "existing core memory and/or moving some of it to archival memory."
            )
        self._blocks[label] = msgspec.structs.replace(block, value=value)
        self._events.append(
            MemoryEdited(
                text=value,
                label=label,
                operation=operation,
                limit=block.limit,
                description=block.description,
            )
        )


def _item(text: str) -> str:
    if not text.strip() or len(text.splitlines()) > 1:
        raise FunctionError("An item is one line of text. Nothing was changed.")
    return text


def _is_writable(text: str) -> bool:
    """Return True if the text can be stored: a lone half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class FunctionMemory(Memory):
    """Memory for MemGPT's own functions: core memory, and also time, zone, search, and the id of their call."""

    def __init__(self, blocks: Sequence[MemoryBlock], *, now: int, zone: str, searcher: Searcher | None = None) -> None:
        """`searcher` None: functions cannot search."""
        super().__init__(blocks)
        self.now = now
        """Time at which the reply arrived, microseconds UTC."""
        self.zone = zone
        self._searcher = searcher
        self.call_id = ""
        self.said_seq = 0
        """Seq of the newest message of a user in view, on which a memory rests that names no other source; 0: none."""
        self.changes = ArchivalChanges()
        """Changes of archival memory by the calls of this step."""
        self.turn = 0
        """Turn of the calls."""
        self.mail: list[AgentMessageSent] = []
        """Messages to other agents by the calls of this step."""
        self.timer_changes: list[TimerSet | TimerCancelled] = []
        """Changes of timers by the calls of this step, in order."""

    def archive(self, change: ArchivalChange) -> None:
        """Add an event about archival memory."""
        self.changes.add(change)
        self.emit(change)

    def change_timer(self, change: TimerSet | TimerCancelled) -> None:
        """Add an event about a timer."""
        self.timer_changes.append(change)
        self.emit(change)

    @property
    def searcher(self) -> Searcher:
        """Searcher for functions."""
        assert self._searcher is not None, "a search has a result in the log and is not made again"
        return self._searcher
