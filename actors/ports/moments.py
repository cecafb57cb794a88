"""Moments of a log: which seq a time stands for."""

from datetime import datetime

from everlog.events import BadInput
from everlog.events.times import since_epoch, with_zone
from everlog.store import LogReader


def seq_of(reader: LogReader, agent_id: str, moment: int | datetime) -> int:
    """The seq that a moment names: itself, or the last that was recorded by then (UTC if it has no zone).

    Raises BadInput, which names the head, for a moment that the agent did not see.
    """
    head = reader.head(agent_id).seq
    if isinstance(moment, int):
        if not 1 <= moment <= head:
            raise BadInput(f"There is no seq {moment}: {agent_id!r} has records 1 to {head}, the head.")
        return moment
    seq = reader.seq_at(agent_id, since_epoch(moment))
    if not seq:
        raise BadInput(
            f"{agent_id!r} began after {with_zone(moment).isoformat()}; it has records 1 to {head}, the head."
        )
    return seq
