"""All memories of one agent's handle: read them, add to them, derive from them, note and end facts, merge names,
withdraw, choose a generation.

Part of the public API: `AgentRef.memories` is one, and `sync_api` wraps it.
"""

from collections.abc import Sequence
from datetime import datetime

from everlog.actors.agent import commands
from everlog.actors.command_sender import CommandSender
from everlog.actors.derivation.conclusions import DerivationReport
from everlog.actors.deriving import memory_commands
from everlog.actors.memory_views import MemoryViews, MomentOpener
from everlog.actors.short_tracebacks import short_tracebacks
from everlog.events import DerivationKind, PlanItem, Precision
from everlog.events.times import microseconds_of


@short_tracebacks
class AgentMemories(MemoryViews):
    """All memories of one agent: messages, archival memory, insights, facts and plans. No method runs a turn; only
    `derive` may ask a model.

    It reads as a `MemoryViews` does, and a past moment or another agent's fork has the same reading methods.
    """

    def __init__(self, sender: CommandSender, moments: MomentOpener) -> None:
        super().__init__(sender.agent_id, moments)
        self._sender = sender

    async def add(self, text: str, tags: Sequence[str] = ()) -> str:
        """Add a text to archival memory, and return its id; see `ArchivalMemory.insert`. `note_fact` adds a fact."""
        return str(await self._sender.perform(commands.InsertMemory, text=text, tags=tags))

    async def derive(
        self, derivation: DerivationKind = "facts", *, generation: int = 1, model: str = "", batches_max: int = 0
    ) -> DerivationReport:
        """Derive memories from what was said since the last derivation of this kind and generation.

        `generation`: 1 or more; another one than 1 stands beside it until it is chosen. `model`: name of the model that
        derives; empty: rules. `batches_max`: most commits; 0: until everything is read. A derivation that finds nothing
        new changes nothing. Raises BadInput, and ModelError if the model cannot be asked: what was derived stays.
        """
        report: DerivationReport = await self._sender.perform(
            memory_commands.DeriveMemories,
            derivation=derivation,
            generation=generation,
            model=model,
            batches_max=batches_max,
        )
        return report

    async def note_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        sources: Sequence[int],
        sentence: str = "",
        valid_from: datetime | None = None,
        from_precision: Precision = "moment",
    ) -> int:
        """Note a fact, and return its seq, by which it is named; a fact that is believed already keeps its own.

        `predicate`: lower case with underscores, such as `lives_in`. `sources`: seqs of the records that it rests on.
        `sentence`: empty: made of the three. `valid_from`: None: unknown; `from_precision` of it: `moment`, `day`,
        `month` or `year`. A new object of a predicate with one object at a time ends the old fact. Raises BadInput,
        also for a source that does not exist, was erased or is no memory.
        """
        seq: int = await self._sender.perform(
            memory_commands.NoteFact, subject=subject, predicate=predicate, object=object, sources=sources,
            sentence=sentence,
            valid_from=microseconds_of(valid_from, "valid_from") if valid_from is not None else None,
            from_precision=from_precision,
        )  # fmt: skip
        return seq

    async def end_fact(
        self,
        fact: int,
        *,
        reason: str = "",
        sources: Sequence[int] = (),
        valid_to: datetime | None = None,
        to_precision: Precision = "moment",
    ) -> bool:
        """End the fact of a seq. Return False if it had ended. What rests on it is outdated from then on.

        `sources`: seqs of the records that the end rests on; empty: the fact alone. `valid_to`: None: unknown. Raises
        BadInput for an unknown fact and for unusable sources.
        """
        return bool(
            await self._sender.perform(
                memory_commands.EndFact, fact=fact, reason=reason, sources=sources, to_precision=to_precision,
                valid_to=microseconds_of(valid_to, "valid_to") if valid_to is not None else None,
            )
        )  # fmt: skip

    async def name_entity(self, alias: str, entity: str, *, sources: Sequence[int]) -> bool:
        """Note that `alias` is another name of `entity`. Return False if that was known. Withdraw it to undo it."""
        return bool(await self._sender.perform(memory_commands.NameEntity, alias=alias, entity=entity, sources=sources))

    async def make_plan(
        self, title: str, items: Sequence[PlanItem], *, level: str = "day", sources: Sequence[int] = ()
    ) -> int:
        """Make a plan, whose items become timers of the agent. Return its seq, by which it is named.

        `items`: 1 to 50 PlanItem, none in the past and none overlapping another. `level`: `day`, `hours` or `minutes`.
        `sources`: seqs of the memories that it rests on; empty: the newest message of a user. Raises BadInput.
        """
        return int(
            await self._sender.perform(
                memory_commands.MakePlan, text=title, items=tuple(items), level=level, sources=tuple(sources)
            )
        )

    async def change_plan(
        self, plan: int, item: int, change: str, reason: str, *, start: datetime | None = None,
        sources: Sequence[int] = (),
    ) -> int:  # fmt: skip
        """Change an item of a plan with its timer and all that it was divided into. Return the seq of the change.

        `change`: `continued`, `postponed`, `cancelled`, `done` or `failed`. `start`: new start of a postponed item, in
        the future. Raises BadInput.
        """
        at = 0 if start is None else microseconds_of(start, "start")
        return int(
            await self._sender.perform(
                memory_commands.ChangePlan, plan=plan, item=item, change=change, reason=reason, start=at,
                sources=tuple(sources),
            )
        )  # fmt: skip

    async def withdraw(self, seqs: Sequence[int], *, reason: str = "", withdrawn: bool = True) -> bool:
        """Withdraw derived memories by their seqs; `withdrawn` False: let them count again. Return False if nothing
        changed. Nothing is deleted. Raises BadInput for a seq that is no derived memory.
        """
        return bool(
            await self._sender.perform(memory_commands.WithdrawMemories, seqs=seqs, reason=reason, withdrawn=withdrawn)
        )

    async def choose_generation(self, generation: int) -> bool:
        """Use the derived memories of this generation from now on. Return False if they are in use. Raises BadInput for
        a generation that was never derived.
        """
        return bool(await self._sender.perform(memory_commands.ChooseGeneration, generation=generation))
