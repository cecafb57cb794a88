"""Write what is known into memory blocks: lines of believed facts and of insights, after what a person wrote. Pure.

A deriver edits only lines that are its own, which begin with MARK, and never those of a person or of the agent. Used by
`actors/deriving`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from everlog.actors.derivation.insight_checks import plain
from everlog.events import BadInput

MARK = "~ "
"""Beginning of a derived line, in words for the model: what follows was concluded, and may change."""
LINES_MAX = 30
"""Most derived lines of one block."""

BlockRow = Mapping[str, Any]


def check_granted(row: BlockRow | None, label: str) -> None:
    """Raise BadInput if a deriver cannot edit the block of that row of `core_memory`."""
    if row is None:
        raise BadInput(f"There is no memory block {label!r} to write to.")
    if row["origin"]:
        raise BadInput(f"The memory block {label!r} is shared, and a deriver of one agent does not edit it.")
    if row["read_only"]:
        raise BadInput(f"The memory block {label!r} is read-only: only people change it.")


def derived_lines(facts: Sequence[BlockRow], insights: Sequence[BlockRow]) -> list[tuple[str, int]]:
    """Return lines for a block, each with the seq that it rests on: believed facts, then insights that are not
    outdated, both newest first.
    """
    found: dict[str, int] = {}
    believed = (row for row in sorted(facts, key=_seq, reverse=True) if row["believed"])
    current = (row for row in sorted(insights, key=_seq, reverse=True) if not row["outdated"])
    for row in (*believed, *current):
        text = " ".join(str(row.get("sentence") or row.get("text")).split())
        if text:
            found.setdefault(text, row["seq"])
    return list(found.items())[:LINES_MAX]


def _seq(row: BlockRow) -> int:
    return int(row["seq"])


def with_lines(value: str, limit: int, lines: Sequence[tuple[str, int]]) -> tuple[str, list[int]]:
    """Return the value of a block with these derived lines in place of those that it had, and the seqs of the lines.

    Lines of a person or of the agent stay as they are. A line that one of them says already is left out, and so are the
    last ones if the block would be longer than `limit` characters.
    """
    own = [line for line in value.split("\n") if not line.startswith(MARK)]
    while own and not own[-1].strip():
        own.pop()
    said = f" {plain(' '.join(own))} "
    kept, seqs = list(own), []
    length = len("\n".join(own))
    for text, seq in lines:
        line = MARK + text
        added = len(line) + (1 if kept else 0)
        if f" {plain(text)} " in said or length + added > limit:
            continue
        kept.append(line)
        seqs.append(seq)
        length += added
    return "\n".join(kept), sorted(set(seqs))
