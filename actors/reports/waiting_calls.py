"""List the calls of agents that wait, or waited, for a person's approval.

Used by `everlog approvals` and by the server.
"""

from collections.abc import Mapping
from typing import Any

from everlog.projections.fleet_views import FleetViews

_QUERY = "FROM approvals WHERE {which} ORDER BY recorded_at, agent_id, seq"

ApprovalRow = Mapping[str, Any]
"""Row of the view `approvals`."""


def list_approvals(views: FleetViews, *, decided: bool) -> list[ApprovalRow]:
    """Return the calls that wait, oldest first; `decided`: also those that were decided or withdrawn."""
    which = "true" if decided else "decision = 'waiting'"
    rows: list[ApprovalRow] = views.table(_QUERY.format(which=which)).to_pylist()
    return rows
