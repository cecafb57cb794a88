"""Run the same work with other systems for comparison: SQLite as a log, and the library `eventsourcing`.

Used by `bench.append` and `bench.replay`.
"""

import importlib.util
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from everlog.events import Draft, Record

COLUMNS = "agent_id, seq, number, event_id, recorded_at, said_at, type, turn, step, cause, version, text, payload"
EVENTSOURCING = "eventsourcing"


class Rows:
    """SQLite as a log: one row for each commit."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(f"CREATE TABLE records ({COLUMNS})")
        self._insert = f"INSERT INTO records VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))})"

    def append(self, agent_id: str, seq: int, said: Draft) -> None:
        """Make one row durable."""
        place = (agent_id, seq, seq, said.event_id, said.recorded_at, said.said_at, said.type, said.turn, said.step)
        self._db.execute(self._insert, (*place, said.cause, said.version, said.text, said.payload))

    def close(self) -> None:
        self._db.close()


def eventsourced(folder: Path, records: Sequence[Record]) -> Callable[[], object] | None:
    """Return a function that replays as many events with `eventsourcing`, from SQLite; None if it is not installed."""
    if importlib.util.find_spec(EVENTSOURCING) is None:
        return None
    from eventsourcing.application import Application
    from eventsourcing.domain import Aggregate, event

    class Talk(Aggregate):
        """A conversation."""

        @event("Began")
        def __init__(self) -> None:
            self.said = 0
            self.text: str | None = None

        @event("Said")
        def say(self, kind: str, text: str | None, payload: str) -> None:
            self.said += 1
            self.text = text

    class Talks(Application[Any]):
        pass

    env = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(folder / "peer.db")}
    application = Talks(env=env)
    talk = Talk()
    for record in records:
        talk.say(record.type, record.text, record.payload)
    application.save(talk)

    def replay() -> None:
        again: Talk = application.repository.get(talk.id)
        assert again.said == len(records)

    return replay
