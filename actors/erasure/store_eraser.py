"""Plan and carry out the erasures of `everlog erase`: in the store of this process, or where another `Eraser` does."""

from typing import Protocol

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.erasure.erase_planned import ErasureReport, erase_planned
from everlog.actors.erasure.erasure_plan import ErasurePlan, plan_erasure
from everlog.actors.erasure.selection import Selection
from everlog.events import RecordsErased
from everlog.store import Progress


class Eraser(Protocol):
    """Erasures in one store. The methods block."""

    def names(self) -> list[str]:
        """Return the names of all agents with a log, sorted."""
        ...

    def head(self, name: str) -> int:
        """Return the seq of the last record of an agent. Raises UnknownAgent."""
        ...

    def was_erased(self, name: str, since: int = 1) -> bool:
        """Return True if an agent has a record of an erasure, from a seq on."""
        ...

    def plan(self, name: str, selection: Selection, *, derived: bool) -> ErasurePlan:
        """Return which records an erasure takes; see `plan_erasure`."""
        ...

    def erase(
        self, plan: ErasurePlan, selection: Selection, *, derived: bool, progress: Progress | None = None
    ) -> ErasureReport:
        """Erase what was planned, of the same selection."""
        ...


class StoreEraser:
    """Erasures in the store of this process. The agents of a plan must be open nowhere else."""

    def __init__(self, system: LocalSystem) -> None:
        self._system = system

    def names(self) -> list[str]:
        """Return the names of all agents with a log, sorted."""
        return self._system.agents()

    def head(self, name: str) -> int:
        """Return the seq of the last record of an agent. Raises UnknownAgent."""
        return self._system.store.reader(name).head(name).seq

    def was_erased(self, name: str, since: int = 1) -> bool:
        """Return True if an agent has a record of an erasure, from a seq on."""
        return any(record.type == RecordsErased.kind for record in self._system.store.reader(name).read(name, since))

    def plan(self, name: str, selection: Selection, *, derived: bool) -> ErasurePlan:
        """Return which records an erasure takes; see `plan_erasure`."""
        return plan_erasure(self._system.store, name, selection, derived=derived)

    def erase(
        self, plan: ErasurePlan, selection: Selection, *, derived: bool, progress: Progress | None = None
    ) -> ErasureReport:
        """Erase what was planned; see `erase_planned`. The plan alone says what goes."""
        return erase_planned(self._system, plan, progress)
