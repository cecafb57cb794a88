"""Compare figures with those that were landed last, as ratios to their floors.

Used by `python -m bench`. The file `bench/landed.json` has the figures of the last landed state. A figure and its floor
are measured in the same run, so their ratio can be compared with the ratio of another day; the figures cannot.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench.support.harness import Figure, Noise

LANDED = Path(__file__).resolve().parents[1] / "landed.json"

MORE_IS_BETTER = (
    "per_s", "vs_sqlite", "recall_at", "ndcg_at", "precision_at", "any_at", "prefix_stability", "stand_in_quotes",
    "nested", "group_vs_floor", "writers_ratio", "replay_vs",
)  # fmt: skip
"""Parts of the keys of figures that are better when they are higher; all others are better when they are lower."""
EXACT = ("recall_at", "ndcg_at", "precision_at", "any_at", "nested", "pages_by_words")
"""Parts of the keys of figures without noise: any step backward is a regression."""
NOISY = 0.25
"""Part by which another figure may be worse before it counts as a regression."""


class BenchRun(msgspec.Struct, frozen=True):
    """The last line of one benchmark."""

    bench: str
    noise: Noise
    figures: list[Figure]


class FigureChange(msgspec.Struct, frozen=True):
    """One figure beside its landed value."""

    bench: str
    figure: Figure
    landed: Figure | None
    """None for a figure that was not landed yet."""
    factor: float
    """Improvement over the landed figure: 2 is twice as good, below 1 is worse; 1 if there is no landed figure."""

    @property
    def verdict(self) -> str:
        """Verdict in one word: new, better, worse, or an empty text for a change within the noise."""
        if self.landed is None:
            return "new"
        allowed = 0.0 if is_one_of(self.figure.key, EXACT) else NOISY
        if self.factor < 1 / (1 + allowed):
            return "worse"
        return "better" if self.factor > 1 + allowed else ""


def is_one_of(key: str, parts: Sequence[str]) -> bool:
    """Return True if a key contains one of the parts."""
    return any(part in key for part in parts)


def parsed_run(output: str) -> BenchRun:
    """Return the last line of a benchmark's output. Raises msgspec.DecodeError if it is no such line."""
    return msgspec.json.decode(output.rstrip().rpartition("\n")[2], type=BenchRun)


def landed_runs(path: Path) -> dict[str, BenchRun]:
    """Return the landed runs by benchmark; an empty dict if there is no file."""
    if not path.exists():
        return {}
    return {run.bench: run for run in msgspec.json.decode(path.read_bytes(), type=list[BenchRun])}


def write_landed(runs: Mapping[str, BenchRun], path: Path) -> None:
    """Write the runs as the landed ones, by benchmark."""
    encoded = msgspec.json.encode([runs[name] for name in sorted(runs)])
    path.write_bytes(msgspec.json.format(encoded, indent=1) + b"\n")


def compared(run: BenchRun, landed: BenchRun | None) -> list[FigureChange]:
    """Return each figure beside its landed value; a landed figure that is missing now raises ValueError."""
    before = {figure.key: figure for figure in landed.figures} if landed else {}
    missing = before.keys() - {figure.key for figure in run.figures}
    if missing:
        raise ValueError(f"bench.{run.bench} no longer prints {', '.join(sorted(missing))}, which {LANDED.name} has")
    return [FigureChange(run.bench, one, before.get(one.key), _factor(one, before.get(one.key))) for one in run.figures]


def over_floor(figure: Figure) -> float:
    """Return the ratio of a figure to its floor; the figure itself if it has no floor, such as a count."""
    return figure.value / figure.floor if figure.floor else figure.value


def _factor(now: Figure, landed: Figure | None) -> float:
    if landed is None:
        return 1.0
    # Scores have no noise, but their floor may be another method that changed: compare the scores themselves.
    exact = is_one_of(now.key, EXACT)
    values = (now.value, landed.value) if exact else (over_floor(now), over_floor(landed))
    if values[0] == values[1]:
        return 1.0
    better, worse = values if is_one_of(now.key, MORE_IS_BETTER) else reversed(values)
    return better / worse if worse > 0 else float("inf")
