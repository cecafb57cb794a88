"""Print the damage matrix: `python -m tests.damage.matrix [BITS [PREFIX]]`.

BITS is the number of flipped bits of each file, PREFIX the beginning of the paths of the files that are damaged.

Each kind of file in the table of docs/explanation/durability.md is damaged in every way, and each damage is noticed,
harmless or silent. Used by the tests of this folder too.
"""

import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.damage.damages import Damage, damages_of
from tests.damage.judge import Judge, Opinion, Verdict
from tests.damage.store_table import FileKind, files_of, kind_of, kinds
from tests.support.engines import lent
from tests.support.store.whole_store import make

Matrix = dict[str, dict[str, Counter[Verdict]]]
"""Number of verdicts by kind of file and by kind of damage."""
HOWS = ("delete", "empty", "half", "last byte", "zeros", "bit")


def by_kind(whole: Path) -> dict[FileKind, list[str]]:
    """Return the files of a store by their row in the table."""
    rows = kinds()
    found: dict[FileKind, list[str]] = {row: [] for row in rows}
    for file in files_of(whole):
        found[kind_of(file, rows)].append(file)
    return {row: files for row, files in found.items() if files}


def cases(whole: Path, chance: random.Random, *, body_bits: int, header_bits: int | None) -> list[Damage]:
    """Return the damages of every file."""
    return [
        damage
        for file in files_of(whole)
        for damage in damages_of(whole, file, chance, body_bits=body_bits, header_bits=header_bits)
    ]


def judged(judge: Judge, damages: Iterable[Damage], whole: Path) -> tuple[Matrix, list[tuple[Damage, Opinion]]]:
    """Judge damages. Return the matrix, and each silent damage with the opinion about it."""
    rows = kinds()
    matrix: Matrix = defaultdict(lambda: defaultdict(Counter))
    silent = []
    for damage in damages:
        opinion = judge.of(damage)
        matrix[kind_of(damage.file, rows).name][damage.how][opinion.verdict] += 1
        if opinion.verdict == "silent":
            silent.append((damage, opinion))
    judge.assert_untouched()
    return matrix, silent


def text_of(matrix: Matrix) -> str:
    """Return the matrix as lines: noticed/harmless/silent for each kind of file and of damage."""
    width = max(map(len, matrix), default=0)
    lines = [" ".join(["noticed/harmless/silent".ljust(width), *(how.rjust(11) for how in HOWS)])]
    for kind, cells in matrix.items():
        counts = ["/".join(str(cells[how][v]) for v in ("noticed", "harmless", "silent")) for how in HOWS]
        lines.append(" ".join([kind.ljust(width), *(count.rjust(11) for count in counts)]))
    return "\n".join(lines)


def main() -> int:
    """Print the matrix of a new store, and each silent damage. Return the exit code."""
    bits = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    prefix = "".join(sys.argv[2:3])
    with tempfile.TemporaryDirectory() as name, lent():
        folder = Path(name)
        whole = folder / "store"
        (folder / "texts").mkdir()
        make(whole, folder / "texts")
        every = cases(whole, random.Random(bits), body_bits=bits, header_bits=bits)
        chosen = [damage for damage in every if damage.file.startswith(prefix)]
        matrix, silent = judged(Judge(whole, folder), chosen, whole)
    print(text_of(matrix))
    for damage, opinion in silent:
        print(f"silent: {damage} ({opinion.why})")
    return int(bool(silent))


if __name__ == "__main__":
    sys.exit(main())
