"""Rewrite granted memory blocks from facts and insights, each edit in one commit with the cursor.

The edit is computed from the newest value and refused if the block changed while a model was asked: a person's edit is
never overwritten blindly.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from everlog.actors.agent.agent import Agent
from everlog.actors.derivation import block_model, block_rules
from everlog.actors.derivation.conclusions import DerivationReport
from everlog.actors.derivation.insight_rules import RULES
from everlog.actors.deriving.derivation_model import DerivationModel
from everlog.events import BadInput, Event, MemoriesDerived, MemoryEdited, Record


class BlockDerivation:
    """Edits of the blocks that one agent's deriver was granted."""

    def __init__(self, agent: Agent, labels: Sequence[str], deriver: str = "rules", generation: int = 1) -> None:
        """Create the derivation by a `deriver`: "rules", or the name of the model that is asked."""
        self._agent, self._labels, self._generation = agent, labels, generation
        self._model = None if deriver == "rules" else DerivationModel(agent, "blocks", deriver, generation)
        self._name = RULES if self._model is None else self._model.name

    async def run(self) -> DerivationReport:
        """Write what is believed into each granted block. Return what came of it.

        A block that would not change is left alone. Raise BadInput if no block was granted, ModelError.
        """
        if not self._labels:
            raise BadInput("No memory block was granted to a deriver: set `derive_blocks` to the labels of some.")
        facts, insights = await self._agent.rows("facts"), await self._agent.rows("insights")
        lines = block_rules.derived_lines(facts, insights)
        newest = max([0, *(row["ended_seq"] for row in facts), *(row["seq"] for row in (*facts, *insights))])
        noted, refused = 0, []
        for label in self._labels:
            try:
                noted += await self._edit(label, lines, newest)
            except BadInput as error:
                refused.append(str(error))
        return DerivationReport(
            derivation="blocks", generation=self._generation, deriver=self._name, read=len(lines), noted=noted,
            refused=refused, to_seq=newest,
        )  # fmt: skip

    async def _edit(self, label: str, lines: Sequence[tuple[str, int]], newest: int) -> int:
        """Edit one block. Return 1 if it changed, else 0. Raise BadInput if it cannot be edited, ModelError."""
        head = self._agent.head
        row = await self._block(label)
        block_rules.check_granted(row, label)
        assert row is not None
        cause = None
        if self._model is not None and lines:
            # Derived lines are left out of the request: otherwise each edit would ask again what it answered.
            own = block_rules.with_lines(row["value"], row["limit"], ())[0]
            if row["value"] != own and newest <= await self._cursor():
                return 0
            chosen, cause = await block_model.choose(self._model, label, own, lines)
            if chosen is None:
                raise BadInput("Nothing could be taken from an answer of the model.")
            lines = chosen
        value, seqs = block_rules.with_lines(row["value"], row["limit"], lines)
        if value == row["value"]:
            return 0
        edited = MemoryEdited(
            text=value, label=label, operation="set", limit=row["limit"], description=row["description"],
            read_only=False,
        )  # fmt: skip
        cursor = MemoriesDerived(
            derivation="blocks", from_seq=min(seqs, default=0), to_seq=newest, noted=1, deriver=self._name,
            sources=seqs, generation=self._generation,
        )  # fmt: skip

        def events(_first_seq: int) -> list[Event]:
            # Looked at under the lock of the log: no edit can come between this and the commit.
            if any(_edits(record, label) for record in self._agent.records(head + 1)):
                raise BadInput(
                    f"The memory block {label!r} was edited meanwhile; the next derivation begins with that."
                )
            return [cursor, edited]

        await self._agent.commit(events, turn=self._agent.turn, step=0, cause=cause)
        return 1

    async def _cursor(self) -> int:
        rows = await self._agent.rows("derivations")
        own = ("blocks", self._generation)
        return max((row["to_seq"] for row in rows if (row["derivation"], row["generation"]) == own), default=0)

    async def _block(self, label: str) -> Mapping[str, Any] | None:
        rows = await self._agent.rows("core_memory")
        return next((row for row in rows if row["label"] == label), None)


def _edits(record: Record, label: str) -> bool:
    """Return True if a record may have changed a block."""
    return record.type in ("memory_edited", "block_removed") and f'"{label}"' in record.payload
