"""Build and recognise the records of moves between partitions, and of forks. Pure.

    in the old partition  ...  n-1   n: moved to      the last, until it comes back
    in the new one                      n+1: moved from   n+2  ...

Each of the two records names the other partition, and the seq and the chain value of the record before it. So the
stream and its chain continue over the gap in a partition, and a gap without such a record is damage. A fork works the
same way: its first record, `agent_forked`, names the parent, the fork point and the chain value there.

An agent restored from an export has both records of each move one after the other in one partition, without a gap.

Used by `streams.move_service`, `backup.restore_service` and `partition.append_rules`.
"""

import hashlib
import re

import msgspec

from everlog.events import AgentForked, AgentMoved, Draft, Record, derived_id, draft, event_of
from everlog.store.base.contract import Append, Head

_IS_CHAIN = re.compile(r"[0-9a-f]{64}").fullmatch
TO = "to"
FROM = "from"


def move_in(facts: Record | Draft) -> AgentMoved | None:
    """Return the move that a record or draft describes; None if it is another event."""
    if facts.type != AgentMoved.kind:
        return None
    try:
        event = event_of(facts)
    except msgspec.MsgspecError:
        return None
    return event if isinstance(event, AgentMoved) and _IS_CHAIN(event.chain) else None


def is_departure(facts: Record | Draft) -> bool:
    """Return True if the stream continues in another partition after this record or draft."""
    move = move_in(facts)
    return move is not None and move.direction == TO


def fork_in(facts: Record | Draft) -> AgentForked | None:
    """Return the fork that a record or draft begins; None if it is another event."""
    if facts.type != AgentForked.kind:
        return None
    try:
        event = event_of(facts)
    except msgspec.MsgspecError:
        return None
    return event if isinstance(event, AgentForked) and _IS_CHAIN(event.chain) else None


def starts_from_elsewhere(facts: Record | Draft) -> bool:
    """Return True if a stream can begin with this record although the records before it are not in this partition."""
    move = move_in(facts)
    return (move is not None and move.direction == FROM) or fork_in(facts) is not None


def chain_before(facts: Record | Draft, seq: int, head: Head) -> bytes | None:
    """Return the chain value before an arrival or a fork with that `seq`, after a stream that ended at `head`; None
    otherwise.
    """
    move, fork = move_in(facts), fork_in(facts)
    if move is not None and move.direction == FROM and move.seq == seq - 1:
        chain = bytes.fromhex(move.chain)
        # The agent left this partition and came back without a record elsewhere in between.
        went_and_came = move.seq == head.seq and head.away and chain == head.chain
        if move.seq > head.seq or went_and_came:
            return chain
    if fork is not None and fork.parent_seq == seq - 1 and not head.seq:
        return bytes.fromhex(fork.chain)
    return None


def departure(agent_id: str, head: Head, to: str, epoch: int, now: int) -> Append:
    """Build the append after `head` by which an agent leaves for the partition `to`; `epoch` numbers its assignment
    there.
    """
    return _append(agent_id, head, TO, to, epoch, now)


def arrival(agent_id: str, head: Head, before: str, epoch: int, now: int) -> Append:
    """Build the append by which an agent arrives, whose stream ends at `head` in the partition `before`."""
    return _append(agent_id, head, FROM, before, epoch, now)


def _append(agent_id: str, head: Head, direction: str, partition: str, epoch: int, now: int) -> Append:
    fields = {"direction": direction, "partition": partition, "seq": head.seq, "chain": head.chain.hex()}
    event = msgspec.convert({**fields, "epoch": epoch}, AgentMoved)
    # The id depends on the agent, seq and direction only: a repeated attempt is the same event, so the append is
    # idempotent.
    seed = hashlib.sha256(f"{agent_id}\0{head.seq}\0{direction}".encode()).digest()
    event_id = derived_id(now, seed)
    return Append(agent_id, head.seq, [draft(event, event_id=event_id, recorded_at=now, turn=0, step=0)])
