"""Run two of the four kinds of replay. Rebuild: do the projections agree with the log? Verify has files of its own.
Neither writes.

Used by `everlog verify`, which imports both kinds from here, and by tests.
"""

from collections.abc import Sequence
from itertools import groupby

import msgspec

from everlog.actors.agent.activation_state import ActivationState, activation_state_of
from everlog.actors.agent.local_system import AgentView
from everlog.actors.prompt.context import context_of, is_configured
from everlog.actors.replay import check_chain
from everlog.actors.replay.replay_report import ReplayReport
from everlog.actors.replay.verify_agents import own_record, verify
from everlog.events import is_erased
from everlog.projections import DERIVER, OF_A_STATE, PROJECTIONS, Projections, Row

__all__ = ["ReplayReport", "rebuild", "verify"]


def rebuild(view: AgentView) -> ReplayReport:
    """Rebuild the agent commit by commit, as it did itself, and compare every projection with the one that is made from
    all records at once. The projections are queries over the same rows: if all rows are equal, so are they.
    """
    records = list(view.reader.read(view.agent_id))
    report = ReplayReport(view.agent_id, faults=check_chain.faults(records, view.head))
    with Projections() as fresh:
        for _, commit in groupby(records, key=lambda record: record.commit):
            fresh.add([own_record(record, view.agent_id) for record in commit])
        state = view.reader.state(view.agent_id, DERIVER.maker)
        if state is not None and not any(is_erased(record.payload) for record in records):
            report.faults += _state_faults(view, fresh)
        report.checked = len(PROJECTIONS)
        rebuilt, found = (_rows_checksum(engine, view.agent_id) for engine in (fresh, view.projections))
        for name in PROJECTIONS if rebuilt != found else ():
            ours, theirs = (p.checksum(name, view.agent_id) for p in (view.projections, fresh))
            if ours != theirs:
                report.faults.append(f"{name}: rebuilt {theirs}, found {ours}")
    return report


def _rows_checksum(engine: Projections, agent_id: str) -> list[Row]:
    """Return a digest, in no order, of all rows of the agent: every projection reads these rows and nothing else."""
    digests = "count(*) AS rows, bit_xor(hash(r)) AS xor, sum(hash(r)) AS sum"
    return engine.query(f"SELECT {digests} FROM records AS r WHERE agent_id = ?", [agent_id], [agent_id])


def _state_faults(view: AgentView, fresh: Projections) -> list[str]:
    """Return the projections in which the newest state, with the records after it, differs from all records.

    The agent is activated from that state. Call this first: a projection that needs all records makes the engine read
    them, and the state is gone.
    """
    agent_id = view.agent_id
    timed = bool(fresh.rows("timers", agent_id))
    mailed = any(row["state"] in PENDING for row in fresh.rows("agent_messages", agent_id))

    def comparable(name: str, engine: Projections) -> object:
        rows = _comparable_rows(name, engine.rows(name, agent_id))
        if isinstance(rows, ActivationState):
            # A state need not know of what is over; an agent has to look for what is not.
            return msgspec.structs.replace(rows, timed=rows.timed and timed, mailed=rows.mailed and mailed)
        return rows

    return [
        f"{name}: the newest state and what came after it do not give what all records give"
        for name in sorted(OF_A_STATE)
        if comparable(name, view.projections) != comparable(name, fresh)
    ]


PENDING = ("pending", "waiting", "working", "ready")
"""States of messages between agents that are not over."""
_COUNTS = ("recall", "archival")


def _comparable_rows(name: str, rows: Sequence[Row]) -> object:
    """Return rows in a form that is equal for equal content. Of `waking` and `context_window` the result that the agent
    uses is compared: a state has fewer rows of `waking`, and other records may carry the counts in `context_window`.
    Without a configuration there is no such result, and the rows are compared without their counts.
    """
    if name == "waking":
        return activation_state_of(rows)
    if name == "context_window" and is_configured(rows):
        return context_of("", 0, rows)
    return sorted(repr({column: value for column, value in row.items() if column not in _COUNTS}) for row in rows)
