"""Moves of an agent from one partition to another, and forks: the records that say so, and how to tell them. Pure.

    in the old partition  ...  n-1   n: moved to      the last, until it comes back
    in the new one                      n+1: moved from   n+2  ...

Each names the other partition, and the seq and the chain value of the record before it: so the stream and its chain go
on over the gap, and a gap without such a record is damage. A fork is the same: its first record, `agent_forked`, names
the parent, the seq of the cut and the chain value there.

What was restored from an export has both records of a move one after the other in one partition: there is no gap.
"""

import hashlib
import re

import msgspec

from everlog.events import AgentForked, AgentMoved, Draft, Record, draft, event_of, uuid7
from everlog.events.ids import RANDOM_BITS
from everlog.store.base.contract import Append, Head

_IS_CHAIN = re.compile(r"[0-9a-f]{64}").fullmatch
TO = "to"
FROM = "from"


def move_in(facts: Record | Draft) -> AgentMoved | None:
    """The move that a record or draft is of; None if it is another event."""
    if facts.type != AgentMoved.kind:
        return None
    try:
        event = event_of(facts)
    except msgspec.MsgspecError:
        return None
    return event if isinstance(event, AgentMoved) and _IS_CHAIN(event.chain) else None


def is_departure(facts: Record | Draft) -> bool:
    """Whether the stream goes on in another partition after it."""
    move = move_in(facts)
    return move is not None and move.direction == TO


def fork_in(facts: Record | Draft) -> AgentForked | None:
    """The fork that a record or draft begins; None if it is another event."""
    if facts.type != AgentForked.kind:
        return None
    try:
        event = event_of(facts)
    except msgspec.MsgspecError:
        return None
    return event if isinstance(event, AgentForked) and _IS_CHAIN(event.chain) else None


def begins_later(facts: Record | Draft) -> bool:
    """Whether a stream can go on with it though what came before is not in this partition."""
    move = move_in(facts)
    return (move is not None and move.direction == FROM) or fork_in(facts) is not None


def chain_before(facts: Record | Draft, seq: int, head: Head) -> bytes | None:
    """The chain value before an arrival or a fork with that seq, where the stream ended at `head`; else None."""
    move, fork = move_in(facts), fork_in(facts)
    if move is not None and move.direction == FROM and move.seq == seq - 1:
        chain = bytes.fromhex(move.chain)
        went_and_came = move.seq == head.seq and head.away and chain == head.chain
        if move.seq > head.seq or went_and_came:
            return chain
    if fork is not None and fork.parent_seq == seq - 1 and not head.seq:
        return bytes.fromhex(fork.chain)
    return None


def departure(agent_id: str, head: Head, to: str, epoch: int, now: int) -> Append:
    """The append after `head` that lets an agent go to the partition `to`, by its assignment number `epoch`."""
    return _append(agent_id, head, TO, to, epoch, now)


def arrival(agent_id: str, head: Head, before: str, epoch: int, now: int) -> Append:
    """The append that takes an agent in, whose stream ends at `head` in the partition `before`."""
    return _append(agent_id, head, FROM, before, epoch, now)


def _append(agent_id: str, head: Head, direction: str, partition: str, epoch: int, now: int) -> Append:
    fields = {"direction": direction, "partition": partition, "seq": head.seq, "chain": head.chain.hex()}
    event = msgspec.convert({**fields, "epoch": epoch}, AgentMoved)
    seed = hashlib.sha256(f"{agent_id}\0{head.seq}\0{direction}".encode()).digest()
    event_id = uuid7(now, int.from_bytes(seed, "big") % 2**RANDOM_BITS)
    return Append(agent_id, head.seq, [draft(event, event_id=event_id, recorded_at=now, turn=0, step=0)])
