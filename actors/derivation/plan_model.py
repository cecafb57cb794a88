"""Divide an item of a plan with a model. Pure but for the model that it is given. Used by `actors/deriving`."""

from collections.abc import Callable

import msgspec

from everlog.actors.derivation.insight_checks import plain
from everlog.actors.derivation.insight_model import Asks, decoded
from everlog.actors.derivation.plan_rules import ITEMS_MAX, TEXT_CHARS_MAX, PlanRow, end_of, room
from everlog.actors.prompt.message_format import format_time
from everlog.events import BadReply, PlanItem

PROMPT = (
    "You help an assistant to carry out a plan. Divide one item of it into steps that follow each other and together "
    "take no longer than the item. Invent no people or places. Answer with JSON only: "
    '{"steps": [{"text": what to do, "minutes": whole number}]}'
)


class _Step(msgspec.Struct, frozen=True):
    text: str
    minutes: int


class _Steps(msgspec.Struct, frozen=True):
    steps: list[_Step]


async def divide(model: Asks, row: PlanRow, now: int, zone: str) -> tuple[list[PlanItem] | None, str]:
    """Ask the model for the steps of what is left of an item. Return them as items one after the other, and the event
    id of the answer. None: nothing could be taken from the answer. Raise ModelError.
    """
    start, minutes = room(row, now)
    where = f" Place: {row['place']}." if row["place"] else ""
    told = (
        f"Plan: {row['title']}\nItem: {row['text']}\nIt begins at {format_time(start, zone)} and takes {minutes} "
        f"minutes.{where}"
    )
    return await model.ask("plan", [("system", PROMPT), ("user", told)], reader(row, start, minutes), [row["plan"]])


def reader(row: PlanRow, start: int, minutes: int) -> Callable[[str], list[PlanItem]]:
    """Return the function that reads an answer. It raises BadReply for steps that are no division of the item."""

    def read(text: str) -> list[PlanItem]:
        steps = decoded(text, _Steps).steps
        if not 1 <= len(steps) <= ITEMS_MAX:
            raise BadReply(f"An item is divided into 1 to {ITEMS_MAX} steps, not {len(steps)}.", text)
        if any(step.minutes < 1 for step in steps) or sum(step.minutes for step in steps) > minutes:
            raise BadReply(f"The steps take 1 minute or more, and {minutes} at most together.", text)
        bare = [plain(step.text) for step in steps]
        if any(not one or len(step.text) > TEXT_CHARS_MAX for one, step in zip(bare, steps, strict=True)):
            raise BadReply(f"A step has 1 to {TEXT_CHARS_MAX} characters.", text)
        if len(set(bare)) < len(bare) or bare == [plain(row["text"])] or any(one in plain(PROMPT) for one in bare):
            raise BadReply("The steps repeat each other, the item or the prompt.", text)
        items, at = [], start
        for step in steps:
            items.append(PlanItem(text=" ".join(step.text.split()), start=at, minutes=step.minutes, place=row["place"]))
            at = end_of(at, step.minutes)
        return items

    return read
