"""Functions with which an agent notes insights and facts, and makes and changes plans, on its own word.

Like MemGPT's own functions they have no effect but their events; an agent has them only if its settings list them. They
look into the agent's memory as of the request that the model answered, so their results are recorded and not computed
again. Each memory rests on the records that the agent names, or on the newest message of the user. Signatures and
docstrings here are the schemas that the model reads: a changed schema is a new configuration of every agent with it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.actors.derivation import plan_rules
from everlog.actors.derivation.insight_checks import INSIGHT_CHARS_MAX, plain
from everlog.actors.functions.timer_functions import instant
from everlog.actors.functions.tools import Tool, own_tool
from everlog.actors.memory.core_memory import FunctionMemory
from everlog.events import BadInput, FactEnded, FactNoted, FunctionError, InsightNoted, PlanItem

DERIVER = "agent"
"""Deriver of what an agent notes itself; it is in use in every generation."""
NAME_CHARS_MAX = 100
"""Most characters of a subject, predicate or object."""


class PlannedItem(msgspec.Struct, frozen=True):
    """One item, as the model writes it."""

    text: str
    start: str
    """YYYY-MM-DD HH:MM."""
    minutes: int
    place: str = ""


async def _insight_note(desk: FunctionMemory, text: str, because_of: list[int] | None = None) -> str:
    """Note what you conclude from several memories, in one sentence.

    Args:
        text: The insight, one sentence that none of these memories says alone.
        because_of: Numbers of the records that it rests on; without it the user's newest message.
    """
    memories = await _memories(desk)
    sources = _sources(desk, because_of, memories)
    line = " ".join(text.split())
    if not plain(line) or len(line) > INSIGHT_CHARS_MAX:
        raise FunctionError(f"An insight has 1 to {INSIGHT_CHARS_MAX} characters, not {len(line)}.")
    if any(plain(str(row["text"])) == plain(line) for row in memories.values()):
        raise FunctionError("A memory says exactly this already: nothing was noted.")
    depth = 1 + max(int(memories[seq]["depth"]) for seq in sources)
    desk.emit(InsightNoted(text=line, sources=sources, depth=depth, deriver=DERIVER))
    return "Noted."


async def _fact_note(
    desk: FunctionMemory,
    subject: str,
    predicate: str,
    object: str,
    sentence: str,
    since: str = "",
    because_of: list[int] | None = None,
) -> str:
    """Note a fact about a person or a thing.

    Args:
        subject: Whom or what it is about, by name.
        predicate: The relation in lower case with underscores, such as lives_in.
        object: The other side of the relation.
        sentence: The fact as one sentence.
        since: Day since which it holds, as YYYY-MM-DD; empty if you do not know.
        because_of: Numbers of the records that it rests on; without it the user's newest message.
    """
    sources = _sources(desk, because_of, await _memories(desk))
    for name, value in (("subject", subject), ("predicate", predicate), ("object", object)):
        if not value.strip() or len(value) > NAME_CHARS_MAX:
            raise FunctionError(f"The {name} of a fact has 1 to {NAME_CHARS_MAX} characters.")
    if not predicate.replace("_", "a").isalnum() or predicate != predicate.lower():
        raise FunctionError(f"A predicate is lower case with underscores, such as lives_in, not {predicate!r}.")
    if not plain(sentence) or len(sentence) > INSIGHT_CHARS_MAX:
        raise FunctionError(f"The sentence of a fact has 1 to {INSIGHT_CHARS_MAX} characters.")
    for row in await desk.searcher.rows("facts"):
        known = (row["subject"], row["predicate"], row["object"])
        if row["believed"] and known == (subject, predicate, object):
            return f"Known already, as fact {row['seq']}: nothing was noted."
    start = None if not since else instant(desk, f"{since} 00:00")
    desk.emit(
        FactNoted(
            text=" ".join(sentence.split()), subject=subject, predicate=predicate, object=object, valid_from=start,
            from_precision="unknown" if start is None else "day", sources=sources, deriver=DERIVER,
        )
    )  # fmt: skip
    return "Noted."


async def _fact_end(
    desk: FunctionMemory, fact: int, reason: str, until: str = "", because_of: list[int] | None = None
) -> str:
    """End a fact that no longer holds. What rests on it is marked as outdated.

    Args:
        fact: Number of the fact.
        reason: Why it no longer holds.
        until: Day on which it ended, as YYYY-MM-DD; empty if you do not know.
        because_of: Numbers of the records that say so; without it the user's newest message.
    """
    row = next((row for row in await desk.searcher.rows("facts") if row["seq"] == fact), None)
    if row is None:
        raise FunctionError(f"There is no fact {fact}.")
    if not row["believed"]:
        raise FunctionError(f"The fact {fact} has ended already.")
    sources = _sources(desk, because_of, await _memories(desk))
    end = None if not until else instant(desk, f"{until} 00:00")
    desk.emit(
        FactEnded(
            text=reason.strip()[:INSIGHT_CHARS_MAX], fact=fact, valid_to=end,
            to_precision="unknown" if end is None else "day", sources=sources, deriver=DERIVER,
        )
    )  # fmt: skip
    return f"Ended: {row['sentence']}"


async def _plan_make(
    desk: FunctionMemory,
    title: str,
    items: list[PlannedItem],
    level: Literal["day", "hours", "minutes"] = "day",
    because_of: list[int] | None = None,
) -> str:
    """Make a plan. You are reminded of each item when it begins.

    Args:
        title: What the plan is for.
        items: Up to 50 items that do not overlap, each with text, start as YYYY-MM-DD HH:MM, minutes, and place.
        level: How fine it is.
        because_of: Numbers of the records that it rests on; without it the user's newest message.
    """
    sources = _sources(desk, because_of, await _memories(desk))
    wanted = [PlanItem(item.text, instant(desk, item.start), item.minutes, item.place) for item in items]
    with _as_function_error():
        plan = plan_rules.made(title, wanted, now=desk.now, level=level, sources=sources, deriver=DERIVER)
    for event in plan_rules.with_timers(plan, plan_rules.UNPLACED):
        desk.emit(event)
    return f"Planned: {len(wanted)} items."


async def _plan_change(
    desk: FunctionMemory,
    plan: int,
    item: int,
    change: Literal["continued", "postponed", "cancelled", "done", "failed"],
    reason: str,
    start: str = "",
    because_of: list[int] | None = None,
) -> str:
    """Continue, postpone, cancel or finish an item of a plan.

    Args:
        plan: Number of the plan, as its reminders name it.
        item: Number of the item.
        change: What happens with it.
        reason: Why, in a few words.
        start: New start of a postponed item, as YYYY-MM-DD HH:MM.
        because_of: Numbers of the records that the change rests on besides the plan.
    """
    more = _sources(desk, because_of, await _memories(desk)) if because_of else ()
    at = instant(desk, start) if start else None
    rows, timers = await desk.searcher.rows("plan_items"), await desk.searcher.rows("timers")
    with _as_function_error():
        events = plan_rules.changed(
            rows, plan, item, change, reason, now=desk.now, timers={row["timer"] for row in timers}, start=at,
            sources=more, deriver=DERIVER,
        )  # fmt: skip
    for event in events:
        desk.emit(event)
    return f"The item is {change}."


class _as_function_error:  # noqa: N801 - reads like a function
    """Context in which a BadInput becomes a FunctionError, which the model is shown."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise FunctionError instead of BadInput."""
        if isinstance(error, BadInput):
            raise FunctionError(str(error)) from error


async def _memories(desk: FunctionMemory) -> Mapping[int, Mapping[str, Any]]:
    """Return all memories by seq: what was said, stored and derived."""
    return {row["seq"]: row for row in await desk.searcher.rows("memories")}


def _sources(desk: FunctionMemory, named: Sequence[int] | None, memories: Mapping[int, object]) -> list[int]:
    """Return the seqs that a memory rests on. Raise FunctionError for one that is no memory."""
    seqs = sorted(set(named or ([desk.said_seq] if desk.said_seq else [])))
    if not seqs:
        raise FunctionError("Name the numbers of the records that this rests on (because_of).")
    for seq in seqs:
        if seq != desk.said_seq and seq not in memories:
            raise FunctionError(f"There is no memory with the number {seq}. Nothing was noted.")
    return seqs


MEMORY_FUNCTIONS: Sequence[Tool] = (
    own_tool(_insight_note),
    own_tool(_fact_note),
    own_tool(_fact_end),
    own_tool(_plan_make),
    own_tool(_plan_change),
)
"""Functions of derived memory, in the order in which the model sees them; a search of all memories belongs here too."""

NAMES = tuple(one.name for one in MEMORY_FUNCTIONS)
