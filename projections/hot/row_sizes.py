"""Count the bytes of each agent's rows that a state would not have, and choose whose rows are left to the log.

Used by `engine`. The bytes are those of texts and payloads since the agent's rows were last those of a state: what part
of them the next state needs is not known before it is derived. So what is counted is bounded, and so is the work: rows
are left to the log once so many bytes have come, however much of them the state needs again.
"""

from collections.abc import Collection, Iterable

import pyarrow as pa

from everlog.events import Record
from everlog.store.base.arrow_values import int_value
from everlog.store.base.lazy_pyarrow import pc

ROW_BYTES = 150
"""Approximate bytes in memory of a row besides its text and payload."""


class RowSizes:
    """Bytes of the rows of an engine's agents. For one thread at a time."""

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}
        """Bytes of each agent, those whose history was read longest ago, or never, first."""
        self._read_last: str | None = None
        self.total = 0
        """Bytes of all agents."""

    def note(self, records: Iterable[Record]) -> int:
        """Take the records that the engine has added, of any agents. Return their bytes."""
        sizes, total = self._bytes, 0
        for record in records:
            size = len(record.payload) + len(record.text or "") + ROW_BYTES
            sizes[record.agent_id] = sizes.get(record.agent_id, 0) + size
            total += size
        self.total += total
        return total

    def note_table(self, table: pa.Table) -> None:
        """Take a table of records that the engine has added, of any agents."""
        texts = pc.coalesce(pc.binary_length(table.column("text")), int_value(0))
        sizes = pc.add(pc.binary_length(table.column("payload")), texts).to_pylist()
        for agent_id, size in zip(table.column("agent_id").to_pylist(), sizes, strict=True):
            self._bytes[agent_id] = self._bytes.get(agent_id, 0) + size + ROW_BYTES
        self.total += sum(sizes) + ROW_BYTES * len(sizes)

    def note_read(self, agents: Iterable[str]) -> None:
        """Note that a question needed the history of these agents."""
        for agent_id in agents:
            self._read_last = agent_id
            if agent_id in self._bytes:
                self._bytes[agent_id] = self._bytes.pop(agent_id)

    def forget(self, agents: Collection[str]) -> None:
        """Count nothing for these agents."""
        self.total -= sum(self._bytes.pop(agent_id, 0) for agent_id in agents)

    def longest_unread(self, bytes_max: int, count: int) -> list[str]:
        """Return up to `count` agents whose history was read longest ago, or never, if they have more than `bytes_max`
        bytes together; else none. The agent that was read last is left out, whatever it has: its next question comes
        soon.
        """
        if self.total - self._bytes.get(self._read_last or "", 0) <= bytes_max:
            return []
        found: list[str] = []
        for agent_id in self._bytes:
            if len(found) == count:
                break
            if agent_id != self._read_last:
                found.append(agent_id)
        return found
