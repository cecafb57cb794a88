"""Translate a moment of a log, a seq or a time, into a seq.

Used by `local_system.py` and `shared_block_service.py`.
"""

from datetime import datetime

from everlog.events import BadInput
from everlog.events.times import microseconds_of
from everlog.store import LogReader


def seq_of(reader: LogReader, agent_id: str, moment: int | datetime) -> int:
    """Return the seq of a moment:
    the seq itself, or the last seq that was recorded up to a time.

    Raise BadInput, with the head in the message, for a moment at which the agent has no record; and for a time without
    a zone.
    """
    head = reader.head(agent_id).seq
    if isinstance(moment, int):
        if not 1 <= moment <= head:
            raise BadInput(f"There is no seq {moment}: {agent_id!r} has records 1 to {head}, the head.")
        return moment
    seq = reader.seq_at(agent_id, microseconds_of(moment, "the moment"))
    if not seq:
        raise BadInput(f"{agent_id!r} began after {moment.isoformat()}; it has records 1 to {head}, the head.")
    return seq
