"""SQL over records: context window, core memory, recall, memory pressure, turns, analytics.

Everything here is derived from the log, and can be dropped and built again. One definition in `sql/` serves the agent's
own step, time travel, and analytics over all agents. What searches is imported when it is first used: an agent that
does not search starts in half the time.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from everlog.projections.engine import Projections
from everlog.projections.hot.rows import KeptRows, Row, Rows, Wanted
from everlog.projections.input_outcomes import InputOutcome, input_outcomes
from everlog.projections.projection_constants import HEAD, OF_A_STATE
from everlog.projections.sql_catalogue import PROJECTIONS
from everlog.projections.state import DERIVER, activate, activate_many
from everlog.projections.talk_reads import read_talks

if TYPE_CHECKING:
    from everlog.projections.archival_memory import ArchivalSearch, AttachedSources
    from everlog.projections.derived_search import DerivedRows
    from everlog.projections.recall_search import RecallPage, RecallSearch

__all__ = [
    "DERIVER",
    "HEAD",
    "OF_A_STATE",
    "PROJECTIONS",
    "ArchivalSearch",
    "AttachedSources",
    "DerivedRows",
    "InputOutcome",
    "KeptRows",
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

_MODULES = {
    "ArchivalSearch": "everlog.projections.archival_memory",
    "AttachedSources": "everlog.projections.archival_memory",
    "DerivedRows": "everlog.projections.derived_search",
    "RecallPage": "everlog.projections.recall_search",
    "RecallSearch": "everlog.projections.recall_search",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
