"""Damage a file: delete it, cut it, zero it, flip a bit of its header or of its body.

Used by the damage matrix. A damage is a value, so that a failing case can be repeated from its text.
"""

import random
from pathlib import Path
from typing import NamedTuple

HEADER_BYTES = 48
"""Bytes at the beginning of a file of which each bit counts as header: the header of a frame has as many."""


class Damage(NamedTuple):
    """A change of one file."""

    file: str
    """Path of the file, relative to the store."""
    how: str
    """`delete`, `empty`, `half`, `last byte`, `zeros`, or `bit`."""
    bit: int = 0
    """Number of the bit that is flipped, from 0."""

    def __str__(self) -> str:
        return f"{self.file}: {self.how}{f' {self.bit}' if self.how == 'bit' else ''}"

    def apply(self, root: Path) -> None:
        """Damage the file in a copy of the store, whose files may be links to those of the original."""
        path = root / self.file
        content = path.read_bytes()
        path.unlink()  # a link: the original keeps its content
        if self.how == "delete":
            return
        path.write_bytes(self._changed(content))

    def _changed(self, content: bytes) -> bytes:
        if self.how == "bit":
            flipped = bytearray(content)
            flipped[self.bit // 8] ^= 1 << self.bit % 8
            return bytes(flipped)
        ends = {"empty": 0, "half": len(content) // 2, "last byte": len(content) - 1}
        return bytes(len(content)) if self.how == "zeros" else content[: ends[self.how]]


def damages_of(
    root: Path, file: str, chance: random.Random, *, body_bits: int, header_bits: int | None
) -> list[Damage]:
    """Return the damages of a file: all coarse ones, and bits. `header_bits`: number of them, None for each one."""
    size = (root / file).stat().st_size
    if not size:
        return [Damage(file, "delete")]
    coarse = [Damage(file, how) for how in ("delete", "empty", "half", "last byte", "zeros")]
    header, bits = range(min(size, HEADER_BYTES) * 8), range(size * 8)
    chosen = set(header if header_bits is None else chance.sample(header, min(header_bits, len(header))))
    chosen.update(chance.sample(bits, min(body_bits, len(bits))))
    return [*coarse, *(Damage(file, "bit", bit) for bit in sorted(chosen))]
