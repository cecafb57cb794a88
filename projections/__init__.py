"""SQL over records: context window, core memory, recall, memory pressure, turns, analytics.

Everything here is derived from the log, and can be dropped and built again. One definition in `sql/` serves the agent's
own step, time travel, and analytics over all agents.
"""

from everlog.projections.archival_memory import ArchivalSearch, AttachedSources
from everlog.projections.engine import HEAD, Projections
from everlog.projections.input_outcomes import InputOutcome, input_outcomes
from everlog.projections.projection_constants import OF_A_STATE
from everlog.projections.recall_search import RecallPage, RecallSearch
from everlog.projections.rows import Row, Rows, Wanted
from everlog.projections.sql_catalogue import PROJECTIONS
from everlog.projections.state import DERIVER, activate, activate_many
from everlog.projections.talk_reads import read_talks

__all__ = [
    "DERIVER",
    "HEAD",
    "OF_A_STATE",
    "PROJECTIONS",
    "ArchivalSearch",
    "AttachedSources",
    "InputOutcome",
    "Projections",
    "RecallPage",
    "RecallSearch",
    "Row",
    "Rows",
    "Wanted",
    "activate",
    "activate_many",
    "input_outcomes",
    "read_talks",
]
