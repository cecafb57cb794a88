"""Check that the partitions of a store agree with each other: about moved agents, and about forks and their parents.

Used by `everlog log check`. Reads only.
"""

from collections.abc import Collection, Iterator
from itertools import pairwise

from everlog.events import GENESIS, AgentForked, AgentMoved, EverlogError, Record, event_of, extend
from everlog.store.base.move_records import FROM, TO, is_departure, move_in
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.stores.file_store import FileStore
from everlog.store.streams.register_file import Assignment


def check_moves(store: FileStore) -> list[str]:
    """Return the faults in the streams of agents that moved; empty if there are none. Reads all records of each of
    them.

    Of a fork only its own records are checked: those before the fork point are checked with its ancestors.
    """
    errors: list[str] = []
    for assignment in _newest(store):
        if assignment.epoch > 1:
            try:
                errors += _move_errors(store, assignment)
            except EverlogError as error:
                errors.append(str(error))
    return errors


def _newest(store: FileStore) -> list[Assignment]:
    """Return the assignment of each stream whose files of the register are sound; `check_register` reports the rest."""
    return [route[-1] for route in store.register_files.scan().routes.values()]


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
            yield f"{name!r}: seq {seq} is in none of the partitions of the agent, or in two: {', '.join(route)}"
            return
        move = move_in(record)
        if move is not None:
            epoch = epoch if seq in over else move.epoch
            if (move.seq, move.chain) != (seq - 1, chain.hex()):
                yield f"{name!r} seq {seq}: the chain value in this record of a move does not match"
        yield from _move_mismatches(record, before, move, [] if seq in over else route)
        before = move
        chain = extend(chain, record)
    if epoch and epoch < assignment.epoch:
        yield f"{name!r} is in {assignment.partition} according to the register, but its log has no record of that move"


def _over(store: FileStore, name: str, route: list[str]) -> set[int]:
    """Return the seqs of moves whose two records are in one partition: they come from an export, and name other
    partitions.
    """
    over: set[int] = set()
    for place in set(route):
        for before, record in pairwise(PartitionReader(store.partition(place)).read(name)):
            if is_departure(before) and record.seq == before.seq + 1:
                over.update((before.seq, record.seq))
    return over


def _move_mismatches(
    record: Record, before: AgentMoved | None, move: AgentMoved | None, route: list[str]
) -> Iterator[str]:
    """Yield the mismatches between a record and the one before; `before` and `move` are their moves, or None."""
    where = f"{record.agent_id!r} seq {record.seq}"
    went = before is not None and before.direction == TO
    came = move is not None and move.direction == FROM
    if went != came:
        yield f"{where}: {'no arrival after a departure' if went else 'an arrival without a departure'}"
    if move is not None:
        place = move.epoch - (1 if move.direction == TO else 2)
        if place < len(route) and route[place] != move.partition:
            yield f"{where}: this record of a move names {move.partition}, but the register {route[place]}"


def check_forks(store: FileStore, names: Collection[str] | None = None) -> list[str]:
    """Return the faults in the beginnings of forks, of those in `names` or of all; empty if there are none."""
    errors: list[str] = []
    for assignment in _newest(store):
        if assignment.parent and (names is None or assignment.agent_id in names):
            try:
                errors += _fork_errors(store, assignment)
            except EverlogError as error:
                errors.append(f"{assignment.agent_id!r}, a fork of {assignment.parent!r}: {error}")
    return errors


def _fork_errors(store: FileStore, assignment: Assignment) -> Iterator[str]:
    name, parent, cut = assignment.agent_id, assignment.parent, assignment.parent_seq
    reader = store.reader(name)
    if not reader.head(name).seq:  # an unfinished fork does not exist yet
        return
    first = next(reader.read(name, cut + 1, cut + 1), None)
    event = None if first is None else event_of(first)
    if first is None or first.agent_id != name or not isinstance(event, AgentForked):
        yield f"{name!r} seq {cut + 1}: the register has a fork of {parent!r} at seq {cut}, but the log does not"
        return
    if event.parent_seq != cut:  # not compared by parent: a restored fork may name an ancestor further back
        yield (
            f"{name!r} seq {cut + 1}: forked from {event.parent!r} at seq {event.parent_seq} according to the log, but "
            f"from {parent!r} at seq {cut} according to the register"
        )
        return
    head = store.reader(parent).head(parent).seq
    if head < cut:
        yield f"{name!r} was forked from {parent!r} at seq {cut}, which ends at seq {head}: records are missing"
    elif store.reader(parent).chain(parent, cut).hex() != event.chain:
        yield (
            f"{name!r} seq {cut + 1}: the chain of {parent!r} at seq {cut} is not what it was at the time of the fork: "
            "records up to there have changed"
        )
