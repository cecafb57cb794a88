"""Commands on the derived memories of an agent, wherever it runs, and their results. Everything here can be pickled.

Made by `derived_memories.py` at the top of the room, and carried out by `derived_commands.py`.
"""

from collections.abc import Sequence

from everlog.actors.agent.commands import Command
from everlog.events import PlanItem


class DeriveMemories(Command, frozen=True, kw_only=True):
    """Derive memories from what was said since the last derivation. The value is a `DerivationReport`.

    A command that is sent again continues after the last commit.
    """

    derivation: str = "facts"
    generation: int = 1
    model: str = ""
    """Name of the model that derives; empty: rules."""
    batches_max: int = 0
    """Most commits; 0: until everything is read."""


class NoteFact(Command, frozen=True, kw_only=True):
    """Note a fact for a person. The value is its seq, or that of the same fact if it is believed already."""

    subject: str
    predicate: str
    object: str
    sources: Sequence[int]
    """Seqs of the records that the fact rests on."""
    sentence: str = ""
    """Empty: subject, predicate and object."""
    valid_from: int | None = None
    """Microseconds UTC; None: unknown."""
    from_precision: str = "moment"


class EndFact(Command, frozen=True, kw_only=True):
    """End a fact for a person. The value is False if it had ended."""

    fact: int
    """Seq of the fact."""
    reason: str = ""
    sources: Sequence[int] = ()
    """Seqs of the records that the end rests on; empty: the fact alone."""
    valid_to: int | None = None
    """Microseconds UTC; None: unknown."""
    to_precision: str = "moment"


class NameEntity(Command, frozen=True, kw_only=True):
    """Note that two names mean the same entity. The value is False if that was known."""

    alias: str
    entity: str
    """Name that the entity is called by."""
    sources: Sequence[int]


class WithdrawMemories(Command, frozen=True, kw_only=True):
    """Withdraw derived memories, or let them count again. The value is False if nothing changed."""

    seqs: Sequence[int]
    reason: str = ""
    withdrawn: bool = True


class ChooseGeneration(Command, frozen=True, kw_only=True):
    """Choose the generation of derived memories that is in use. The value is False if it was."""

    generation: int


class MakePlan(Command, frozen=True, kw_only=True):
    """Make a plan, whose items become timers. The value is the plan's seq, by which it is named."""

    text: str
    items: Sequence[PlanItem]
    level: str = "day"
    """`day`, `hours` or `minutes`."""
    sources: Sequence[int] = ()
    """Seqs of the memories that it rests on; empty: the newest message of a user."""
    deriver: str = "person"


class ChangePlan(Command, frozen=True, kw_only=True):
    """Change an item of a plan. The value is the seq of the change."""

    plan: int
    item: int
    change: str
    """`continued`, `postponed`, `cancelled`, `done` or `failed`."""
    reason: str
    start: int = 0
    """New start of a postponed item, microseconds UTC; 0: none."""
    sources: Sequence[int] = ()
    deriver: str = "person"


CHANGES = (NoteFact, EndFact, NameEntity, WithdrawMemories, ChooseGeneration)
"""Commands by which a person changes derived memories."""
PLANS = (MakePlan, ChangePlan)
"""Commands on plans."""

ALL = (DeriveMemories, *CHANGES, *PLANS)
"""Commands on derived memories."""
