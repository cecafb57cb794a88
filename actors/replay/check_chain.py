"""The chain of a stream, computed again over its records and held against each place where its value is known. Pure."""

from collections.abc import Sequence

from everlog.events import GENESIS, AgentForked, AgentMoved, Record, event_of, extend
from everlog.store import Head


def faults(records: Sequence[Record], head: Head) -> list[str]:
    """The first stretch of records that are not those which the chain was computed over; none if all are.

    Its value is known at the head, and where an agent moved or was forked: there it stands in the log.
    """
    chain, good = GENESIS, 0
    for record in records:
        known = _known(record)
        if known is not None and known != (record.seq - 1, chain.hex()):
            return [_fault(good, record.seq - 1, f"seq {record.seq} ({record.type}) says")]
        if known is not None:
            good = record.seq - 1
        chain = extend(chain, record)
    last = records[-1].seq if records else 0
    return [] if (chain, last) == (head.chain, head.seq) else [_fault(good, last, "the log ends with")]


def _known(record: Record) -> tuple[int, str] | None:
    """Seq and chain value before a record that tells them."""
    if record.type in (AgentMoved.kind, AgentForked.kind):
        event = event_of(record)
        if isinstance(event, AgentMoved):
            return event.seq, event.chain
        if isinstance(event, AgentForked):
            return event.parent_seq, event.chain
    return None


def _fault(good: int, last: int, who: str) -> str:
    return (
        f"the chain of records {good + 1:,} to {last:,} is not the one that {who}: at least one of them is not what "
        "was written"
    )
