"""Report an agent that was opened: its model, its position, and the warnings about its log.

Used by `Host`. A caller learns only from this report that the log lost its end: every report of an agent in memory has
the warnings.
"""

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import OpenReport
from everlog.actors.ports import log_warnings


def open_report(agent: Agent, *, born: bool) -> OpenReport:
    """Return the report of an agent in memory. `born`: True if the opening created it."""
    return OpenReport(
        born=born,
        model=agent.model_name,
        zone=agent.zone,
        head=agent.head,
        turn=agent.turn,
        waiting=agent.waiting,
        warnings=log_warnings.warnings(agent.agent_id, agent.cut, agent.unsealed),
    )
