"""Say which records of a stream an erasure is asked to take. Pure.

Used by `erasure_plan.py` and by users' programs as `everlog.Selection`. The kinds of selection add up: a record is
taken if any of them names it. A record that only connects partitions or forks is never taken, or the stream would
break.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.erasure.record_words import forms_of, normalized, strings_of
from everlog.events import BadInput, MessageSent, Record, RecordsErased, UserMessage
from everlog.events.kinds import INPUTS, STOPS


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Records to erase. The fields add up; at least one must be given."""

    everything: bool = False
    """True: all records of the agent, without those that a fork shares with its parent."""
    seqs: Sequence[tuple[int, int]] = ()
    """Ranges of records: first and last seq, both inclusive."""
    match: Sequence[str] = ()
    """Words: each record that says one of these texts, in any case and with any white space."""
    turns: Sequence[int] = ()
    """Numbers of turns: all records of each."""
    persons: Sequence[str] = ()
    """Names of users: their messages, and what the agent said to them in the turns that these opened."""

    def check(self, agent_id: str, head: int) -> None:
        """Raise BadInput for an empty selection, and for a range or words that cannot be meant."""
        if not (self.everything or self.seqs or self.match or self.turns or self.persons):
            raise BadInput(
                f"The erasure does not say which records of {agent_id!r} go. Name records (--seq, --match, --turn, "
                "--person), or erase all of them with --all. Nothing was erased."
            )
        there = f"{agent_id!r} has records 1 to {head}. Nothing was erased."
        for first, last in self.seqs:
            if not 1 <= first <= last:
                raise BadInput(f"Seq {first} to {last} is not a range: give 1 <= first <= last. {there}")
            if last > head:
                raise BadInput(f"Seq {last if first <= head else first} is beyond the last record: {there}")
        for text in (*self.match, *self.persons):
            if not normalized(text):
                raise BadInput("The words or the name to erase are empty: give one letter or more. Nothing was erased.")


class Selector:
    """Selection of one pass over a stream: `why` is asked of each record, in order."""

    def __init__(self, selection: Selection) -> None:
        self._wanted = selection
        self._phrases = [normalized(text) for text in selection.match]
        self._persons = {normalized(name) for name in selection.persons}
        self._turns = set(selection.turns)
        self._turns_of_persons: dict[int, str] = {}
        self._imported_for = ""

    def why(self, record: Record, payload: Mapping[str, Any]) -> str | None:
        """Return why a record is selected, in words for people; None if it is not."""
        by_person = self._said_with(record, payload)
        if self._wanted.everything or any(first <= record.seq <= last for first, last in self._wanted.seqs):
            return "selected"
        if record.type == RecordsErased.kind:
            return None
        if record.turn in self._turns and of_turn(record, payload):
            return f"of turn {record.turn}"
        if by_person:
            return by_person
        return self._says(record, payload) if self._phrases else None

    @staticmethod
    def is_whole(why: str | None) -> bool:
        """Return False if a record was selected only for a phrase that it says."""
        return why is None or not why.startswith("says ")

    def _says(self, record: Record, payload: Mapping[str, Any]) -> str | None:
        for text in strings_of(record, payload):
            for form in forms_of(text):
                plain = normalized(form)
                for phrase in self._phrases:
                    if phrase in plain:
                        return f"says {phrase!r}"
        return None

    def _said_with(self, record: Record, payload: Mapping[str, Any]) -> str | None:
        """Return the reason if a person said the record, or heard it."""
        if not self._persons:
            return None
        if record.type == UserMessage.kind:
            name = str(payload.get("name", ""))
            mine = bool(name) and normalized(name) in self._persons
            if payload.get("imported"):
                self._imported_for = name if mine else ""
            elif mine:
                self._turns_of_persons[record.turn] = name
            return f"said by {name}" if mine else None
        if record.type == MessageSent.kind:
            name = self._imported_for if payload.get("imported") else self._turns_of_persons.get(record.turn, "")
            return f"said to {name}" if name else None
        return None


def of_turn(record: Record, payload: Mapping[str, Any]) -> bool:
    """Return True if a record was made by its turn: by its input, a step or its end, and not by a person meanwhile."""
    if payload.get("imported") or record.turn < 1:
        return False
    return record.step > 0 or record.type in INPUTS or record.type in STOPS
