"""Read pages of an agent's messages from its log, from either end, without reading the rest. Run it in a thread.

Cursors count in the order of the list, as Letta's server counts them. A page holds whole records, so it never ends
between two messages that share an id.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from everlog.events import INPUTS, AgentCreated, ModelReply, Record
from everlog.interfaces.http.core.routes import not_found
from everlog.interfaces.http.letta.letta_calls import LettaPageQuery, page_size
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, LettaPlace, place_in
from everlog.interfaces.http.letta.translation.letta_messages import LettaMessage, messages_of
from everlog.store import LogReader

ListedRecord = tuple[Record, Sequence[LettaMessage]]
"""A record, and the messages of it that are listed."""
WINDOW = 256
"""Records that are read at once."""
_NEAR = 64
PAGE = 100


def read_messages(
    reader: LogReader,
    stream: str,
    query: LettaPageQuery,
    wanted: Callable[[Record, LettaMessage], bool],
    born: int = 1,
) -> Sequence[LettaMessage]:
    """Return one page of messages. `born`: seq of the first record of the agent's life.

    `wanted`: returns True for a message that is listed. Raises the refusal of a cursor that is no message of the agent.
    """
    head, size = reader.head(stream).seq, page_size(query, PAGE)
    rising = query.order == "asc"
    if query.before and not query.after:  # the items before a cursor: read from it against the order, then turn around
        found = _collected(_records(reader, stream, born, head, query.before, rising=not rising), stream, wanted, size)
        page: Sequence[ListedRecord] = found[::-1]
    else:
        page = _collected(_records(reader, stream, born, head, query.after, rising=rising), stream, wanted, size)
        if query.before:
            page = _until(page, query.before)
    runs = _Runs(reader, stream)
    return [
        msgspec.structs.replace(message, run_id=runs.of(record))
        for record, group in page
        for message in (group if rising else reversed(group))
    ]


class _Runs:
    """Ids of the runs of an agent, by their turns: each is looked up once, behind the first record that asks."""

    def __init__(self, reader: LogReader, stream: str) -> None:
        self._reader, self._stream, self._ids = reader, stream, LettaIds(stream)
        self._known: dict[int, str] = {}

    def of(self, record: Record) -> str | None:
        """Return the run that a record belongs to; None if it belongs to none."""
        if record.turn and record.turn not in self._known:
            seq = input_of_turn(self._reader, self._stream, record.seq, record.turn)
            self._known[record.turn] = self._ids.run(seq) if seq else ""
        return self._known.get(record.turn) or None


def input_of_turn(reader: LogReader, stream: str, seq: int, turn: int) -> int:
    """Return the seq of the input that opened a turn, of which the record `seq` is one; 0 if its type is unknown."""
    while seq >= 1:
        for one in reversed(list(reader.read(stream, max(1, seq - _NEAR), seq))):
            if one.turn == turn and one.step == 0 and one.type in INPUTS:
                return one.seq
        seq -= _NEAR + 1
    return 0


def _until(page: Sequence[ListedRecord], before: str) -> Sequence[ListedRecord]:
    ids = [group[0].id for _, group in page]
    return page[: ids.index(before)] if before in ids else page


def _collected(
    records: Iterator[Record], stream: str, wanted: Callable[[Record, LettaMessage], bool], size: int
) -> list[ListedRecord]:
    """Return records with their messages, in their order, until there are enough that have some."""
    ids = LettaIds(stream)
    found: list[ListedRecord] = []
    for record in records:
        group = [message for message in messages_of(record, ids) if wanted(record, message)]
        if group:
            found.append((record, group))
        if len(found) == size:
            break
    return found


def _records(
    reader: LogReader, stream: str, born: int, head: int, cursor: str | None, *, rising: bool
) -> Iterator[Record]:
    """Yield the records of an agent beyond a cursor, in windows; against the order, until its life begins."""
    at = seq_of_message(reader, stream, cursor) if cursor else 0
    if rising:
        first = at + 1 if cursor else born
        while first <= head:
            yield from reader.read(stream, first, min(head, first + WINDOW - 1))
            first += WINDOW
        return
    last = at - 1 if cursor else head
    while last >= born:
        for record in reversed(list(reader.read(stream, max(born, last - WINDOW + 1), last))):
            if record.type == AgentCreated.kind:
                return
            yield record
        last -= WINDOW


def seq_of_message(reader: LogReader, stream: str, message_id: str) -> int:
    """Return the seq of the record that has the messages of an id. Raises the refusal of an unknown one."""
    place = place_in("message", message_id)
    if place is not None and LettaIds(stream).agent.replace("-", "")[5:].startswith(place.digest):
        seq = seq_of_place(reader, stream, place)
        if seq:
            return seq
    raise not_found(f"message {message_id[:80]!r}")


def seq_of_place(reader: LogReader, stream: str, place: LettaPlace) -> int:
    """Return the seq of the record that a place means; 0: there is none."""
    head = reader.head(stream).seq
    if place.seq:
        return place.seq if place.seq <= head else 0
    return _seq_of_reply(reader, stream, head, place.step)


def _seq_of_reply(reader: LogReader, stream: str, head: int, wanted: tuple[int, int]) -> int:
    """Return the seq of the reply of a turn and step; 0: there is none. The turns of replies rise with their seqs."""
    low, high = 1, head
    while low <= high:
        middle = (low + high) // 2
        near = next((one for one in _forward(reader, stream, middle, high) if one.step), None)
        if near is None or (near.turn, near.step) > wanted:
            high = middle - 1
        elif (near.turn, near.step) < wanted:
            low = near.seq + 1
        else:
            return _reply_near(reader, stream, near.seq, head, wanted)
    return 0


def _reply_near(reader: LogReader, stream: str, seq: int, head: int, wanted: tuple[int, int]) -> int:
    """Return the seq of the reply of a step, of which a record is known; 0: the step has no reply."""
    last = min(head, seq + _NEAR)
    while last >= 1:
        for record in reversed(list(reader.read(stream, max(1, last - _NEAR), last))):
            if (record.turn, record.step) == wanted and record.type == ModelReply.kind:
                return record.seq
            if record.step and (record.turn, record.step) < wanted:
                return 0
        last -= _NEAR + 1
    return 0


def _forward(reader: LogReader, stream: str, first: int, last: int) -> Iterator[Record]:
    while first <= last:
        yield from reader.read(stream, first, min(last, first + _NEAR))
        first += _NEAR + 1
