"""Checking what the partitions of a store say of each other: of agents that moved, and of forks and their parents."""

from collections.abc import Collection, Iterator
from itertools import pairwise

from everlog.events import GENESIS, AgentForked, AgentMoved, EverlogError, Record, event_of, extend
from everlog.store.base.move_records import FROM, TO, is_departure, move_in
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.stores.file_store import FileStore
from everlog.store.streams.register import Assignment


def check_moves(store: FileStore) -> list[str]:
    """What is wrong with the streams of agents that moved; empty if nothing is. Reads all records of each of them.

    Of a fork, its own: those before the cut went with its ancestors.
    """
    errors: list[str] = []
    for assignment in store.assignments():
        if assignment.epoch > 1:
            try:
                errors += _move_errors(store, assignment)
            except EverlogError as error:
                errors.append(str(error))
    return errors


def _move_errors(store: FileStore, assignment: Assignment) -> Iterator[str]:
    name = assignment.agent_id
    route = store.route(name)
    over = _over(store, name, route)
    reader, cut = store.reader(name), assignment.parent_seq
    chain = reader.chain(name, cut) if cut else GENESIS
    before: AgentMoved | None = None
    epoch = 0
    for seq, record in enumerate(reader.read(name, cut + 1), cut + 1):
        if record.seq != seq:
            yield f"{name!r}: seq {seq} is in none of the partitions that it was in, or in two: {', '.join(route)}"
            return
        move = move_in(record)
        if move is not None:
            epoch = epoch if seq in over else move.epoch
            if (move.seq, move.chain) != (seq - 1, chain.hex()):
                yield f"{name!r} seq {seq}: the chain before it is not what this record of a move says"
        yield from _unlike(record, before, move, [] if seq in over else route)
        before = move
        chain = extend(chain, record)
    if epoch and epoch < assignment.epoch:
        yield f"{name!r} is in {assignment.partition} by the register, but its log does not say that it went there"


def _over(store: FileStore, name: str, route: list[str]) -> set[int]:
    """Seqs of moves of which both records are in one partition: it was restored, and they were between others."""
    over: set[int] = set()
    for place in set(route):
        for before, record in pairwise(PartitionReader(store.partition(place)).read(name)):
            if is_departure(before) and record.seq == before.seq + 1:
                over.update((before.seq, record.seq))
    return over


def _unlike(record: Record, before: AgentMoved | None, move: AgentMoved | None, route: list[str]) -> Iterator[str]:
    """How a record is not what follows the one before it; each is a move, or None."""
    where = f"{record.agent_id!r} seq {record.seq}"
    went = before is not None and before.direction == TO
    came = move is not None and move.direction == FROM
    if went != came:
        yield f"{where}: it {'went away before that and did not come' if went else 'came without having gone'}"
    if move is not None:
        place = move.epoch - (1 if move.direction == TO else 2)
        if place < len(route) and route[place] != move.partition:
            yield f"{where}: this record of a move names {move.partition}, and the register {route[place]}"


def check_forks(store: FileStore, names: Collection[str] | None = None) -> list[str]:
    """What is wrong with where forks begin, of those named or of all; empty if nothing is."""
    errors: list[str] = []
    for assignment in store.assignments():
        if assignment.parent and (names is None or assignment.agent_id in names):
            try:
                errors += _fork_errors(store, assignment)
            except EverlogError as error:
                errors.append(f"{assignment.agent_id!r}, a fork of {assignment.parent!r}: {error}")
    return errors


def _fork_errors(store: FileStore, assignment: Assignment) -> Iterator[str]:
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
