"""Carry out the commands on derived memories, on an open agent: derive facts, and change what was derived for a person.

Used by the host's `edit_commands`. What a person notes has the deriver `person` and generation 0, which is in use in
every generation. The first event of a change has the id of its command, by which a repeated command finds its result.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, get_args

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import Command
from everlog.actors.derivation.conclusions import (
    DerivationReport,
    Material,
    check_sources,
    placed,
    source_kinds,
)
from everlog.actors.derivation.fact_ledger import ClaimedFact, FactLedger
from everlog.actors.derivation.fact_times import FactTime, time_of
from everlog.actors.derivation.model_facts import (
    DERIVE_MODEL_CHARS_MAX,
    DERIVE_MODEL_MESSAGES_MAX,
    ModelFacts,
)
from everlog.actors.derivation.rule_facts import RuleFacts
from everlog.actors.deriving.block_edits import BlockDerivation
from everlog.actors.deriving.derivation_model import DerivationModel
from everlog.actors.deriving.memory_commands import (
    ChangePlan,
    ChooseGeneration,
    DeriveMemories,
    EndFact,
    MakePlan,
    NameEntity,
    NoteFact,
    WithdrawMemories,
)
from everlog.actors.deriving.memory_derivation import MemoryDerivation
from everlog.actors.deriving.plan_commands import PlanDivision, change_plan, make_plan
from everlog.actors.deriving.reflection import RULES, Reflection
from everlog.events import (
    BadInput,
    DerivationKind,
    DerivedEvent,
    DuplicateId,
    EntityNamed,
    Event,
    FactEnded,
    FactNoted,
    GenerationChosen,
    MemoriesWithdrawn,
    Precision,
)

PERSON = "person"
"""Deriver of what a person notes."""
NAME_CHARS_MAX = 200
"""Most characters of a name, a predicate or an object that a person gives."""
SENTENCE_CHARS_MAX = 2_000
WITHDRAWN_MAX = 10_000
"""Most memories that one command withdraws."""
GENERATION_MAX = 1_000_000


async def carry_out(agent: Agent, command: Command) -> Any:
    """Carry out a command on derived memories. Return its value. Raise BadInput, and ModelError of a derivation."""
    match command:
        case DeriveMemories():
            return await derive(agent, command)
        case MakePlan():
            return await make_plan(agent, command)
        case ChangePlan():
            return await change_plan(agent, command)
        case NoteFact() | EndFact() | NameEntity() | WithdrawMemories() | ChooseGeneration():
            return await change_derived(agent, command)
        case _:
            raise TypeError(f"{type(command).__name__} is no command on derived memories")


async def derive(agent: Agent, command: DeriveMemories) -> DerivationReport:
    """Derive what is new. Return what came of it. Raise BadInput, and ModelError if a model cannot be asked."""
    if command.derivation not in get_args(DerivationKind):
        known = ", ".join(get_args(DerivationKind))
        raise BadInput(f"There is no derivation {command.derivation!r}; there are {known}. Nothing was derived.")
    _check_number("generation", command.generation, 1, GENERATION_MAX)
    _check_number("batches_max", command.batches_max, 0, GENERATION_MAX)
    deriver, generation = command.model or RULES, command.generation
    async with agent.derivation_lock:
        match command.derivation:
            case "reflection":
                return await Reflection(agent, deriver, generation).run()
            case "plans":
                return await PlanDivision(agent, deriver, generation).run()
            case "blocks":
                return await BlockDerivation(agent, agent.deriving.blocks, deriver, generation).run()
            case _:
                return await fact_derivation(agent, command.model, generation).run(command.batches_max or None)


def fact_derivation(agent: Agent, model: str, generation: int) -> MemoryDerivation:
    """Return the derivation of facts by a model, or by rules if `model` is empty."""
    if not model:
        return MemoryDerivation(agent, "facts", RuleFacts(), generation)
    deriver = ModelFacts(DerivationModel(agent, "facts", model, generation))
    return MemoryDerivation(
        agent, "facts", deriver, generation, messages_max=DERIVE_MODEL_MESSAGES_MAX, chars_max=DERIVE_MODEL_CHARS_MAX
    )


async def change_derived(
    agent: Agent, command: NoteFact | EndFact | NameEntity | WithdrawMemories | ChooseGeneration
) -> Any:
    """Carry out a person's change of derived memories; a repeated command changes nothing. Return its value.

    Raises BadInput; nothing is changed then.
    """
    # The lock covers the look at what is known and the commit: else two commands could note the same fact twice.
    async with agent.archiving:
        match command:
            case NoteFact():
                return await _note_fact(agent, command)
            case EndFact():
                return await _end_fact(agent, command)
            case NameEntity():
                return await _name_entity(agent, command)
            case WithdrawMemories():
                return await _withdraw(agent, command)
            case ChooseGeneration():
                return await _choose(agent, command)


async def _note_fact(agent: Agent, command: NoteFact) -> int:
    subject, predicate, found = (
        _checked_text(name, getattr(command, name), NAME_CHARS_MAX) for name in ("subject", "predicate", "object")
    )
    if not predicate.replace("_", "").isalnum() or predicate != predicate.lower():
        raise BadInput(f"A predicate is in lower case with underscores, such as `lives_in`, not {predicate!r}.")
    told = command.sentence.strip() or f"{subject} {predicate.replace('_', ' ')} {found}."
    ledger = await _ledger(agent)
    known = [one for one in ledger.holding(subject, predicate) if _same(ledger, one.object, found)]
    claim = ClaimedFact(
        subject=subject, predicates=[predicate], object=found,
        sentence=_checked_text("sentence", told, SENTENCE_CHARS_MAX), sources=_seqs("sources", command.sources),
        said_at=agent.now(), time=_time(ledger, "valid_from", command.valid_from, command.from_precision),
    )  # fmt: skip
    ledger.claim(claim)
    if not ledger.events:
        await _check(agent, claim.sources)
        return known[0].reference if known else await _noted_before(agent, claim, ledger)
    return await _commit(agent, ledger.events, command.id, FactNoted)


async def _noted_before(agent: Agent, claim: ClaimedFact, ledger: FactLedger) -> int:
    """Return the seq of a fact that has ended and that was noted with the same beginning."""
    rows = await agent.rows("facts")
    return next(
        row["seq"] for row in rows
        if row["predicate"] == claim.predicates[0] and _same(ledger, row["subject"], claim.subject)
        and _same(ledger, row["object"], claim.object)
    )  # fmt: skip


async def _end_fact(agent: Agent, command: EndFact) -> bool:
    facts = {row["seq"]: row for row in await agent.rows("facts")}
    if command.fact not in facts:
        raise BadInput(f"There is no fact {command.fact}: a fact is named by its seq. `everlog facts` shows them.")
    if not facts[command.fact]["believed"]:
        return bool(await agent.known(command.id, FactEnded))
    ledger = await _ledger(agent)
    end = _time(ledger, "valid_to", command.valid_to, command.to_precision)
    ended = FactEnded(
        text=_text("reason", command.reason, SENTENCE_CHARS_MAX), fact=command.fact, deriver=PERSON,
        sources=_seqs("sources", command.sources) or [command.fact], valid_to=end.begin if end else None,
        to_precision=end.precision if end else "unknown",
    )  # fmt: skip
    await _commit(agent, [ended], command.id, FactEnded)
    return True


async def _name_entity(agent: Agent, command: NameEntity) -> bool:
    alias, entity = (_checked_text(name, getattr(command, name), NAME_CHARS_MAX) for name in ("alias", "entity"))
    ledger = await _ledger(agent)
    sources = _seqs("sources", command.sources)
    ledger.name(alias, entity, sources)
    if not ledger.events:
        await _check(agent, sources)
        return bool(await agent.known(command.id, EntityNamed))
    await _commit(agent, ledger.events, command.id, EntityNamed)
    return True


async def _withdraw(agent: Agent, command: WithdrawMemories) -> bool:
    seqs = _seqs("seqs", command.seqs)
    if not 1 <= len(seqs) <= WITHDRAWN_MAX:
        raise BadInput(f"1 to {WITHDRAWN_MAX} memories are withdrawn at once, not {len(seqs)}. Nothing was changed.")
    if not isinstance(command.withdrawn, bool):
        raise BadInput(f"`withdrawn` is True or False, not {command.withdrawn!r}.")
    derived = {row["seq"]: row["withdrawn"] for row in await agent.rows("derived_records")}
    if unknown := [seq for seq in seqs if seq not in derived]:
        raise BadInput(f"Seq {unknown[0]} is no derived memory, so it cannot be withdrawn. Nothing was changed.")
    if all(derived[seq] is command.withdrawn for seq in seqs):
        return bool(await agent.known(command.id, MemoriesWithdrawn))
    reason = _text("reason", command.reason, SENTENCE_CHARS_MAX)
    return await _changed(agent, MemoriesWithdrawn(text=reason, seqs=seqs, withdrawn=command.withdrawn), command.id)


async def _choose(agent: Agent, command: ChooseGeneration) -> bool:
    rows = await agent.rows("generations")
    found = sorted({1, *(row["generation"] for row in rows)} - {0})
    if command.generation not in found:
        raise BadInput(
            f"There is no generation {command.generation} of derived memories; there are {', '.join(map(str, found))}. "
            "Derive it first."
        )
    if any(row["in_use"] and row["generation"] == command.generation for row in rows):
        return bool(await agent.known(command.id, GenerationChosen))
    return await _changed(agent, GenerationChosen(generation=command.generation), command.id)


async def _changed(agent: Agent, event: MemoriesWithdrawn | GenerationChosen, event_id: str) -> bool:
    """Commit a change. Return True; False for a repeated command whose change was changed since."""
    try:
        await agent.commit([event], turn=agent.turn, step=0, ids=[event_id])
    except DuplicateId:
        if not await agent.known(event_id, type(event)):
            raise
        return False
    return True


async def _ledger(agent: Agent) -> FactLedger:
    """Return what is believed and how entities are called, for what a person adds to it."""
    names = {row["alias"]: row["entity"] for row in await agent.rows("entity_names")}
    facts = await agent.rows("facts")
    now = agent.now()
    return FactLedger(
        Material(agent_id=agent.agent_id, generation=0, zone=agent.zone, now=now, facts=facts, names=names), PERSON
    )


async def _check(agent: Agent, sources: Sequence[int]) -> None:
    """Raise BadInput for sources on which nothing can rest."""
    check_sources(sources, agent.head + 1, _kinds(agent, sources))


async def _commit(agent: Agent, events: Sequence[DerivedEvent], event_id: str, kind: type[Event]) -> int:
    """Commit derived events whose sources are valid. Return the seq of the first one, also for a repeated command."""
    kinds = _kinds(agent, {seq for event in events for seq in event.sources})

    def made(first_seq: int) -> Sequence[Event]:
        # Checked under the writer's lock, by the seqs that the events get.
        kept = placed(events, first_seq)
        for seq, event in enumerate(kept, first_seq):
            check_sources(event.sources, seq, kinds)
        return kept

    try:
        return (await agent.commit(made, turn=agent.turn, step=0, ids=[event_id]))[0].seq
    except DuplicateId:  # a repeated command, and what it noted was changed since
        known = await agent.known(event_id, kind)
        if not known:
            raise
        return known[0].seq


def _kinds(agent: Agent, wanted: Iterable[int]) -> Mapping[int, str]:
    """Return the kinds of the wanted records, by seq."""
    sought = set(wanted)
    if not sought:
        return {}
    return source_kinds(islice((r for r in agent.records(max(1, min(sought))) if r.seq in sought), len(sought)))


def _same(ledger: FactLedger, one: str, other: str) -> bool:
    return ledger.canonical(one).casefold() == ledger.canonical(other).casefold()


def _time(ledger: FactLedger, name: str, value: object, precision: object) -> FactTime | None:
    """Return the time that a person gave. Raise BadInput."""
    known = get_args(Precision)
    if value is None:
        return None
    _check_number(name, value, -(2**62), 2**62)
    if precision not in known or precision == "unknown":
        raise BadInput(f"The precision of `{name}` is {', '.join(known[1:])}, not {precision!r}. Nothing was noted.")
    try:
        return time_of(value, precision, ledger.zone)  # type: ignore[arg-type]
    except (OverflowError, ValueError) as error:
        raise BadInput(f"`{name}` is outside of the calendar: {value}. Nothing was noted.") from error


def _seqs(name: str, values: object) -> list[int]:
    """Return seqs ascending, each once. Raise BadInput for anything else."""
    if isinstance(values, (list, tuple)) and all(type(value) is int for value in values):
        return sorted(set(values))
    raise BadInput(f"`{name}` is a list of seqs, not {str(values)[:80]!r}. Nothing was changed.")


def _checked_text(name: str, text: str, chars_max: int) -> str:
    """Return a text without the white space around it. Raise BadInput for an empty or a long one."""
    if not (stripped := _text(name, text, chars_max)):
        raise BadInput(f"`{name}` is empty. Nothing was noted.")
    return stripped


def _text(name: str, text: str, chars_max: int) -> str:
    stripped = text.strip()
    if len(stripped) > chars_max:
        raise BadInput(f"`{name}` has at most {chars_max} characters, not {len(stripped)}. Nothing was noted.")
    return stripped


def _check_number(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadInput(f"`{name}` is a whole number from {least} to {most}, not {value!r}.")
