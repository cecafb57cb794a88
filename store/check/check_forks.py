"""Checking that forks hang on to their parents: register, first record, and the parent's chain at the cut agree."""

from collections.abc import Collection, Iterator

from everlog.events import AgentForked, EverlogError, event_of
from everlog.store.stores.file_store import FileStore
from everlog.store.streams.register import Assignment


def check_forks(store: FileStore, names: Collection[str] | None = None) -> list[str]:
    """What is wrong with where forks begin, of those named or of all; empty if nothing is."""
    errors: list[str] = []
    for assignment in store.assignments():
        if assignment.parent and (names is None or assignment.agent_id in names):
            try:
                errors += _errors(store, assignment)
            except EverlogError as error:
                errors.append(f"{assignment.agent_id!r}, a fork of {assignment.parent!r}: {error}")
    return errors


def _errors(store: FileStore, assignment: Assignment) -> Iterator[str]:
    name, parent, cut = assignment.agent_id, assignment.parent, assignment.parent_seq
    reader = store.reader(name)
    if not reader.head(name).seq:  # it was begun, and not finished: there is no fork
        return
    first = next(reader.read(name, cut + 1, cut + 1), None)
    event = None if first is None else event_of(first)
    if first is None or first.agent_id != name or not isinstance(event, AgentForked):
        yield f"{name!r} seq {cut + 1}: the register has it as a fork of {parent!r} at seq {cut}, and its log does not"
        return
    if event.parent_seq != cut:  # a restored one may name an ancestor further back, whose chain there is the same
        yield (
            f"{name!r} seq {cut + 1}: it was forked from {event.parent!r} at seq {event.parent_seq} by its log, and "
            f"from {parent!r} at seq {cut} by the register"
        )
        return
    head = store.reader(parent).head(parent).seq
    if head < cut:
        yield f"{name!r} was forked from {parent!r} at seq {cut}, but that ends at seq {head}: it lacks records"
    elif store.reader(parent).chain(parent, cut).hex() != event.chain:
        yield (
            f"{name!r} seq {cut + 1}: the chain of {parent!r} at seq {cut} is not what it was when it was forked: "
            "records up to there are not the same"
        )
