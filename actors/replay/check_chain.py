"""Compute the hash chain of a stream again, and compare it with each place where its value is recorded. Pure.

Used by `verify.py` and `rebuild_check.py`.
"""

from collections.abc import Sequence

from everlog.events import GENESIS, AgentForked, AgentMoved, Record, event_of, extend
from everlog.store import Head


def faults(records: Sequence[Record], head: Head) -> list[str]:
    """Return the first range of records over which the chain has another value than recorded;
    an empty list if it has none.

    The value is recorded at the head, and in the records of moves and forks.
    """
    chain, good = GENESIS, 0
    for record in records:
        known = _known(record)
        if known is not None and known != (record.seq - 1, chain.hex()):
            # Every later value of the chain depends on this one, so only the first difference says anything.
            return [_fault(good, record.seq - 1, f"seq {record.seq} ({record.type}) says")]
        if known is not None:
            good = record.seq - 1
        chain = extend(chain, record)
    last = records[-1].seq if records else 0
    return [] if (chain, last) == (head.chain, head.seq) else [_fault(good, last, "the log ends with")]


def _known(record: Record) -> tuple[int, str] | None:
    """Return the seq and the chain value before a record that names them; None for any other record."""
    if record.type in (AgentMoved.kind, AgentForked.kind):
        event = event_of(record)
        if isinstance(event, AgentMoved):
            return event.seq, event.chain
        if isinstance(event, AgentForked):
            return event.parent_seq, event.chain
    return None


def _fault(good: int, last: int, who: str) -> str:
    return (
        f"the chain of records {good + 1:,} to {last:,} differs from the value that {who}: at least one of these "
        "records is not what was written"
    )
