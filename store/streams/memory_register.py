"""Keep the assignments of streams to partitions in memory: a register without files, marks and losses.

Used by `MemoryStore`, and by `check.repair_plan` for the register that a repair plans. It has the methods of
`routes.Assignments`; a change of that protocol changes it too.
"""

from collections.abc import Iterable

from everlog.store.streams.register_file import Assignment


class MemoryRegister:
    """Assignments of each stream, one for each epoch from 1."""

    def __init__(self) -> None:
        """Begin without an assignment."""
        self.places: dict[str, list[Assignment]] = {}

    def all(self) -> dict[str, Assignment]:
        """Return the newest assignment of each stream, sorted by name."""
        return {name: places[-1] for name, places in sorted(self.places.items())}

    def find(self, name: str) -> Assignment | None:
        """Return the newest assignment of a stream."""
        return self.places[name][-1] if name in self.places else None

    def find_many(self, names: Iterable[str]) -> dict[str, Assignment]:
        """Return the newest assignments of those of the streams that have one."""
        return {name: self.places[name][-1] for name in names if name in self.places}

    def before(self, assignment: Assignment) -> list[Assignment]:
        """Return the earlier assignments of a stream."""
        return self.places[assignment.agent_id][: assignment.epoch - 1]

    def may_begin(self, assignment: Assignment) -> bool:
        """Return True: memory loses no record."""
        del assignment
        return True

    def begun(self, names: Iterable[str]) -> None:
        """Do nothing: there are no marks."""

    def add(self, assignment: Assignment, *, begun: bool = False) -> bool:
        """Add a first assignment. Return False if the stream has another one."""
        del begun
        return self.places.setdefault(assignment.agent_id, [assignment]) == [assignment]

    def move(self, assignment: Assignment) -> None:
        """Add the next assignment of a stream. Idempotent."""
        places = self.places[assignment.agent_id]
        if len(places) < assignment.epoch:
            places.append(assignment)
