"""Have a model choose and word the derived lines of a memory block. Pure but for the model that it is given.

The model is shown numbered facts and insights and answers with lines that name their numbers, so that every line rests
on something. It is not given the block to rewrite: what a person wrote cannot be lost by it.
"""

from collections.abc import Callable, Sequence

import msgspec

from everlog.actors.derivation.block_rules import LINES_MAX
from everlog.actors.derivation.insight_checks import INSIGHT_CHARS_MAX, plain
from everlog.actors.derivation.insight_model import Asks, decoded
from everlog.events import BadReply

PROMPT = (
    "You keep the core memory of an assistant. Given numbered facts and insights, and what its memory block {label!r} "
    "says already, name the lines that belong into this block as well, the most useful first. Each line is one short "
    "sentence and names the numbers that it rests on. Invent nothing, and do not contradict the block. Answer with "
    "JSON only: "
    '{{"lines": [{{"text": one sentence, "because_of": [number]}}]}}'
)


class _Line(msgspec.Struct, frozen=True):
    text: str
    because_of: list[int]


class _Lines(msgspec.Struct, frozen=True):
    lines: list[_Line]


async def choose(
    model: Asks, label: str, value: str, known: Sequence[tuple[str, int]]
) -> tuple[list[tuple[str, int]] | None, str]:
    """Ask the model for the derived lines of a block. Return them, each with the newest seq that it rests on, and the
    event id of the answer. None: nothing could be taken from the answer. Raise ModelError.
    """
    numbered = "\n".join(f"{number}. {text}" for number, (text, _) in enumerate(known, 1))
    told = f"{numbered}\n\nThe block says:\n{value}"
    messages = [("system", PROMPT.format(label=label)), ("user", told)]
    return await model.ask("block", messages, reader(known), [seq for _, seq in known])


def reader(known: Sequence[tuple[str, int]]) -> Callable[[str], list[tuple[str, int]]]:
    """Return the function that reads an answer about these numbered texts. It raises BadReply for no usable line."""

    def read(text: str) -> list[tuple[str, int]]:
        found: dict[str, int] = {}
        for line in decoded(text, _Lines).lines[:LINES_MAX]:
            said = " ".join(line.text.split())
            numbers = line.because_of
            unfounded = not numbers or any(not 1 <= number <= len(known) for number in numbers)
            if unfounded or not plain(said) or len(said) > INSIGHT_CHARS_MAX or plain(said) in plain(PROMPT):
                continue
            found.setdefault(said, max(known[number - 1][1] for number in numbers))
        if not found:
            raise BadReply("No line of the answer rests on the facts and insights that were shown.", text)
        return list(found.items())

    return read
