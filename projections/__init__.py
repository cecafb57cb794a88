"""WHAT IT MEANS: SQL over records. Context window, core memory, recall, pressure, turns, analytics.

Everything here is derived from the log and can be dropped and built again; one definition in `sql/` serves the agent's
own step, time travel and analytics over all agents.
"""

from .catalogue import PROJECTIONS
from .engine import HEAD, OF_A_STATE, Projections
from .fates import Fate, fates
from .kept import Attached, Kept
from .rows import Row, Rows
from .search import Found, Search
from .state import DERIVER, activate, activate_many

__all__ = [
    "DERIVER",
    "HEAD",
    "OF_A_STATE",
    "PROJECTIONS",
    "Attached",
    "Fate",
    "Found",
    "Kept",
    "Projections",
    "Row",
    "Rows",
    "Search",
    "activate",
    "activate_many",
    "fates",
]
