"""Read from the partitions of a store where each stream is, and where it came from: what the register should say.

Used by the repair of the register (`repair_plan`). One pass over all records, a file at a time; reads only.
"""

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from everlog.events import AgentForked, AgentMoved, StoreError
from everlog.store.base.arrow_schema import records_of
from everlog.store.base.arrow_values import text_array
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.move_records import FROM, TO, fork_in, move_in
from everlog.store.log.log_follower import CommitRewritten, LogFollower
from everlog.store.partition.partition import Partition
from everlog.store.stores.file_store import FileStore
from everlog.store.streams.register_file import Assignment

StreamPieces = Mapping[str, "StreamPiece"]
"""Pieces of one stream, by the partition that holds each."""


class StreamPiece(msgspec.Struct):
    """Records of one stream in one partition."""

    first: int
    last: int
    count: int
    moves: dict[int, AgentMoved] = {}
    """Departures and arrivals, by their seq; without those of an agent from an export, which are in one partition."""
    fork: AgentForked | None = None
    """Fork that begins with the first of the records."""


class StoreFacts(msgspec.Struct):
    """Streams of a store, by the records in its partitions."""

    streams: dict[str, dict[str, StreamPiece]] = {}
    """Pieces of each stream, by name and partition."""
    read: set[str] = set()
    """Partitions that were read."""
    unread: dict[str, str] = {}
    """Reasons why other partitions cannot be read."""


def facts_of(store: FileStore) -> StoreFacts:
    """Read all partitions of a store; one that is damaged is left out, with the reason."""
    found = StoreFacts()
    for name in store.partitions():
        try:
            pieces = _pieces_in(store.partition(name))
        except StoreError as error:
            found.unread[name] = str(error)
            continue
        found.read.add(name)
        for agent_id, piece in pieces.items():
            found.streams.setdefault(agent_id, {})[name] = piece
    return found


def _pieces_in(partition: Partition) -> dict[str, StreamPiece]:
    while True:
        pieces: dict[str, StreamPiece] = {}
        try:
            for table in LogFollower(partition).since(0):
                _take(pieces, table)
        except CommitRewritten:  # unacknowledged commits were lost in a crash
            continue
        for piece in pieces.values():
            _drop_moves_of_exports(piece)
        return pieces


def _take(pieces: dict[str, StreamPiece], table: pa.Table) -> None:
    """Add a table of records, in commit order, to the pieces of its streams."""
    bare = table.select(["agent_id", "seq"])
    sums = bare.group_by("agent_id").aggregate([("seq", "min"), ("seq", "max"), ("seq", "count")])
    for row in sums.to_pylist():
        piece = pieces.setdefault(row["agent_id"], StreamPiece(row["seq_min"], 0, 0))
        piece.last, piece.count = row["seq_max"], piece.count + row["seq_count"]
    kinds = text_array([AgentMoved.kind, AgentForked.kind])
    for record in records_of(table.filter(pc.is_in(table.column("type"), kinds))):
        piece, move, fork = pieces[record.agent_id], move_in(record), fork_in(record)
        if move is not None:
            piece.moves[record.seq] = move
        elif fork is not None and record.seq == piece.first == fork.parent_seq + 1:
            piece.fork = fork


def _drop_moves_of_exports(piece: StreamPiece) -> None:
    """Drop departures that the arrival follows in the same partition: they name partitions of another store."""
    for seq, move in list(piece.moves.items()):
        after = piece.moves.get(seq + 1)
        if move.direction == TO and after is not None and after.direction == FROM:
            del piece.moves[seq], piece.moves[seq + 1]


def fork_of(pieces: StreamPieces) -> AgentForked | None:
    """Return the fork that a stream begins with; None for a stream that begins by itself."""
    return next((piece.fork for piece in pieces.values() if piece.fork is not None), None)


def broken(name: str, pieces: StreamPieces) -> str:
    """Return the reason why the pieces of a stream are not one stream; empty if they are."""
    first, last = min(p.first for p in pieces.values()), max(p.last for p in pieces.values())
    said = " and ".join(f"{p.first} to {p.last} in log/{place}" for place, p in sorted(pieces.items()))
    if sum(piece.count for piece in pieces.values()) != last - first + 1:
        return f"{name!r} has the records {said}: no records of moves connect them"
    if first > 1 and fork_of(pieces) is None:
        return f"{name!r} has the records {said}: those before are missing"
    moves = moves_of(pieces)
    for place, piece in pieces.items():
        begins = piece.moves.get(piece.first)
        if piece.first > first and (begins is None or begins.direction != FROM):
            return f"{name!r} has the records {said}: the first in log/{place} is not an arrival"
    for seq, (move, _) in moves.items():
        other = moves.get(seq + 1 if move.direction == TO else seq - 1)
        if seq != last and (other is None or other[0].direction == move.direction):
            return f"{name!r} seq {seq}: this record of a move has no counterpart in another log"
    return ""


def moves_of(pieces: StreamPieces) -> dict[int, tuple[AgentMoved, str]]:
    """Return the moves of a stream by seq, ascending, each with the partition that holds its record."""
    found = {seq: (move, place) for place, piece in pieces.items() for seq, move in piece.moves.items()}
    return dict(sorted(found.items()))


def numbered_places(pieces: StreamPieces) -> dict[int, str]:
    """Return the partitions that the records of a stream name, by the epoch of the assignment, from 1 on."""
    start = min(pieces, key=lambda place: pieces[place].first)
    known = {1: start}
    for move, place in moves_of(pieces).values():
        known[move.epoch] = move.partition if move.direction == TO else place
    return known


def route_of(name: str, pieces: StreamPieces, parent: str, cut: int) -> list[Assignment]:
    """Return the assignments of a stream that its records say, one for each epoch."""
    known = numbered_places(pieces)
    route: list[Assignment] = []
    for epoch in range(1, max(known) + 1):
        place = known.get(epoch) or route[-1].partition
        route.append(Assignment(name, place, epoch, parent, cut))
    return route


def agrees(route: list[Assignment], pieces: StreamPieces) -> bool:
    """Return True if the register's assignments of a stream, one for each epoch, are what its records say."""
    known = numbered_places(pieces)
    begins = known.pop(1)
    places = {assignment.epoch: assignment.partition for assignment in route}
    moves = moves_of(pieces)
    last = max(piece.last for piece in pieces.values())
    final = next(place for place, piece in pieces.items() if piece.last == last)
    leaving = leaving_in(pieces)
    if leaving is not None and len(route) == leaving.epoch - 1:  # the move was interrupted: opening finishes it
        del known[leaving.epoch]
    elif leaving is not None:
        final = leaving.partition
    # Before its first record an agent may have moved, which no record says.
    first_move = min((move.epoch for move, _ in moves.values()), default=len(route) + 1)
    start = [assignment.partition for assignment in route if assignment.epoch < first_move]
    return (
        route[-1].partition == final
        and set(pieces) <= set(places.values())
        and all(places.get(epoch) == place for epoch, place in known.items())
        and start[-1:] == [begins]
    )


def leaving_in(pieces: StreamPieces) -> AgentMoved | None:
    """Return the departure that a stream ends with; None if it does not end so."""
    move = moves_of(pieces).get(max(piece.last for piece in pieces.values()))
    return move[0] if move is not None and move[0].direction == TO else None
