"""Rate the importance of messages with a model, in batches. Pure but for the model that it is given.

Used by `actors/deriving`, only for agents whose settings ask for it: without ratings the projection `importance` rates
by rules.
"""

from collections.abc import Callable, Sequence

import msgspec

from everlog.actors.derivation.conclusions import Evidence
from everlog.actors.derivation.insight_model import Asks, decoded, statement
from everlog.events import BadReply, ImportanceRated, Rating

RATED_MAX = 50
"""Messages of one request."""
PROMPT = (
    "You rate how much messages matter to the assistant that remembers them, from 1 (mundane, such as a greeting) to "
    "10 (poignant, such as a loss or a great decision). Rate every numbered message. Answer with JSON only: "
    '{"ratings": [[number, importance], [number, importance]]}'
)


class _Ratings(msgspec.Struct, frozen=True):
    ratings: list[tuple[int, float]]


async def rate(
    model: Asks, batch: Sequence[Evidence], zone: str, generation: int
) -> tuple[ImportanceRated | None, str]:
    """Ask the model for the importance of at most RATED_MAX messages. Return the event, and the event id of the answer.

    None: nothing could be taken from the answer. Raise ModelError.
    """
    told = "\n".join(f"{number}. {statement(one, zone)}" for number, one in enumerate(batch, 1))
    shown = [one.seq for one in batch]
    ratings, event_id = await model.ask("importance", [("system", PROMPT), ("user", told)], reader(batch), shown)
    if ratings is None:
        return None, event_id
    event = ImportanceRated(
        ratings=ratings, sources=[one.seq for one in ratings], deriver=model.name, generation=generation
    )
    return event, event_id


def reader(batch: Sequence[Evidence]) -> Callable[[str], list[Rating]]:
    """Return the function that reads an answer about these messages, in their numbers from 1.

    Importance outside of 1 to 10 becomes the nearest of them; numbers of no message are left out. It raises BadReply if
    nothing is left.
    """

    def read(text: str) -> list[Rating]:
        found: dict[int, Rating] = {}
        for number, importance in decoded(text, _Ratings).ratings:
            if 1 <= number <= len(batch):
                seq = batch[number - 1].seq
                found[seq] = Rating(seq, round(min(max(importance, 1), 10)))
        if not found:
            raise BadReply(f"The answer rates no message: there are 1 to {len(batch)}.", text)
        return [found[seq] for seq in sorted(found)]

    return read
