"""Say in words what an agent loses with the records that an erasure takes. Pure.

Used by `erasure_plan.py`. A user erases a message and means a message: a block of core memory, the configuration, or a
deletion that goes with it must be named on a line of its own, or the agent loses its persona without a word.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from everlog.actors.erasure.stream_scan import Identity, StreamScan
from everlog.events import ArchivalDeleted, DocumentRemoved, MemoryEdited


def losses(found: StreamScan, taken: AbstractSet[int]) -> Iterator[str]:
    """Yield one sentence for each block, configuration or deletion of a stream that is gone without the `taken`."""
    who, identity = found.stream, found.identity
    if lost := sorted(taken & set(identity.created)):
        yield f"this erases how {who!r} was created (seq {lost[-1]})"
    yield from _configuration(who, identity, taken)
    for label, changes in identity.blocks.items():
        seq, kind = changes[-1]
        if seq not in taken:
            continue
        left = [change for change in changes if change[0] not in taken]
        if left and left[-1][1] == MemoryEdited.kind:
            then = f"{who!r} has the block as of seq {left[-1][0]} again"
        else:
            then = f"{who!r} will have no {label}"
        if kind == MemoryEdited.kind:
            yield f"this erases the memory block {label!r} as of seq {seq}: {then}"
        elif left:
            yield f"this erases the removal of the memory block {label!r} at seq {seq}: {then}"
    yield from _undone(identity, taken)


def _configuration(who: str, identity: Identity, taken: AbstractSet[int]) -> Iterator[str]:
    if not identity.configured or identity.configured[-1] not in taken:
        return
    left = [seq for seq in identity.configured if seq not in taken]
    then = (
        f"{who!r} has the configuration of seq {left[-1]} again"
        if left
        else f"{who!r} will have no system prompt and no model until it is configured again"
    )
    yield f"this erases the configuration of {who!r} as of seq {identity.configured[-1]}: {then}"


def _undone(identity: Identity, taken: AbstractSet[int]) -> Iterator[str]:
    for seq, kind, stored in identity.undone:
        if seq not in taken or stored in taken:
            continue
        if kind == ArchivalDeleted.kind:
            yield f"this erases the deletion at seq {seq}: the memory of seq {stored} is found again"
        elif kind == DocumentRemoved.kind:
            yield f"this erases the removal of a document at seq {seq}: the document is found again"
        else:
            yield f"this erases the undo at seq {seq}: the context shows the hidden turns again"
