"""Drafts for the contract suites, with unique ids and increasing times."""

from collections.abc import Sequence

from everlog.events import Draft, Record, uuid7

NOW = 1_800_000_000_000_000
DAY = 24 * 60 * 60 * 1_000_000


class Drafts:
    """Makes drafts, each with its own id."""

    def __init__(self, at: int = NOW) -> None:
        self.at = at
        self._count = 0

    def one(self, text: str | None = "hello", payload: str = "{}", **fields: object) -> Draft:
        self._count += 1
        shape = {"recorded_at": self.at, "type": "user_message", "turn": 1, "step": 0, "version": 1}
        shape |= {"event_id": uuid7(self.at, self._count), "text": text, "payload": payload, **fields}
        return Draft(**shape)  # type: ignore[arg-type]

    def some(self, count: int) -> list[Draft]:
        return [self.one(f"word {number}") for number in range(count)]


def content(records: Sequence[Record]) -> list[tuple[str, int, str | None]]:
    return [(record.agent_id, record.seq, record.text) for record in records]
