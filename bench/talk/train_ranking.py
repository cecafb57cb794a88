"""Learn the weights of the ranking, and say how they rank talk that they were not learned from.

Run as `python -m bench.talk.train_ranking`: prints how much of the evidence is found with weights that never saw the
conversation, with weights that never saw the kind of talk, and, with `--ablation`, without each feature. `--write`
stores the weights of all conversations in `ranking_weights.json`. The same data gives the same file.

A question's candidates are a lottery, in which each has a chance by its score; the weights make it as likely as
possible that what is drawn holds the answer (listwise softmax, a little L2, no weight of the wrong sign).
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench.support import locomo
from bench.talk.ranking_rows import FEATURES, AskedRows, all_kinds, rows_of
from everlog.projections.search.features import WORD_FEATURES
from everlog.projections.search.ranking import WEIGHTS_FILE, RankingWeights
from everlog.store.embedding.embedder import embedder_of

SHARES: Mapping[str, float] = {
    "locomo": 1.0, "recast": 0.4, "nameless": 0.1, "meetings": 0.1, "assistant_en": 0.15, "assistant_zh": 0.15,
    "assistant_es": 0.15,
}  # fmt: skip
"""Share of each kind of talk in what is learned, however many questions it has: real talk counts most."""
LOWERING = ("named_other", "asking")
"""Features that may only lower a score; all others may only raise it."""
L2, STEPS, RATE = 1e-3, 140, 0.08
DIGITS = 2
COLUMNS = {"meaning": FEATURES, "words": WORD_FEATURES}
MEASURES = ("R@5", "R@10", "R@20", "nDCG@10")


class Lessons:
    """Rows of all questions in one array, for one set of weights."""

    def __init__(self, asked: Sequence[AskedRows], name: str) -> None:
        self.asked = asked
        self.name = name
        self.columns = COLUMNS[name]
        self.kinds = np.array([one.kind for one in asked])
        self.folds = np.array([one.fold for one in asked])
        self.rows = np.concatenate([one.rows[name] for one in asked])
        self.spread = np.maximum(self.rows.std(axis=0), 1e-9)
        counts = np.array([len(one.rows[name]) for one in asked])
        self.question = np.repeat(np.arange(len(asked)), counts)
        right = np.concatenate([one.right[name] for one in asked]).astype(np.float64)
        self.found = np.bincount(self.question, right)
        self.target = right / np.maximum(self.found, 1)[self.question]
        sizes = {kind: int((self.kinds == kind).sum()) for kind in SHARES}
        self.share = np.array([SHARES[one.kind] / sizes[one.kind] for one in asked])

    def learn(self, chosen: np.ndarray, without: str = "") -> np.ndarray:
        """Return the weights that explain the chosen questions best, by gradient descent (Adam) from zero."""
        chosen = chosen & (self.found > 0)
        used = chosen[self.question]
        rows, question = self.rows[used] / self.spread, self.question[used]
        start = np.flatnonzero(np.diff(question, prepend=-1))
        place = np.cumsum(np.diff(question, prepend=question[0]) > 0)
        share = (self.share * chosen / (self.share * chosen).sum())[question]
        wanted = (self.target[used] * share) @ rows
        low = np.array([-np.inf if name in LOWERING else 0.0 for name in self.columns])
        high = np.array([0.0 if name in LOWERING else np.inf for name in self.columns])
        kept = np.array([name != without for name in self.columns])
        found, mean, square = (np.zeros(len(self.columns)) for _ in range(3))
        rate = RATE
        for step in range(1, STEPS + 1):
            score = rows @ found
            chance = np.exp(score - np.maximum.reduceat(score, start)[place])
            chance /= np.add.reduceat(chance, start)[place]
            slope = (chance * share) @ rows - wanted + L2 * found
            mean, square = 0.9 * mean + 0.1 * slope, 0.98 * square + 0.02 * slope * slope
            move = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.98**step)) + 1e-8)
            found = np.clip(found - rate * move, low, high) * kept
            rate *= 0.96 if step > STEPS * 0.6 else 1.0
        learned: np.ndarray = np.round(found / self.spread, DIGITS)
        return learned

    def judge(self, number: int, by: np.ndarray) -> tuple[float, ...]:
        """Return MEASURES of one question with these weights; of a meeting, R@10 is the share of the first ten that lie
        in the span of the answer.
        """
        one = self.asked[number]
        order = np.argsort(-(one.rows[self.name] @ by), kind="stable")
        hits = one.right[self.name][order].astype(np.float64)
        gain = 1 / np.log2(np.arange(2, 12))
        ndcg = float((hits[:10] * gain[: len(hits[:10])]).sum() / gain[: min(10, one.gold)].sum())
        if one.kind == "meetings":
            return float(hits[:5].mean()), float(hits[:10].mean()), float(hits[:20].mean()), ndcg
        return (*(float(hits[:first].sum()) / one.gold for first in (5, 10, 20)), ndcg)


def left_out(lessons: Lessons, groups: np.ndarray, without: str = "") -> Mapping[int, tuple[float, ...]]:
    """Return the measures of each question, with weights that learned nothing from its group."""
    found = {}
    for group in sorted(set(groups.tolist())):
        by = lessons.learn(groups != group, without)
        found |= {number: lessons.judge(number, by) for number in np.flatnonzero(groups == group).tolist()}
    return found


def table(lessons: Lessons, found: Mapping[int, tuple[float, ...]], of: Callable[[AskedRows], str]) -> Iterable[str]:
    """Yield a line of means for each group of questions."""
    grouped = defaultdict(list)
    for number, measures in found.items():
        grouped[of(lessons.asked[number])].append(measures)
    for name, rows in sorted(grouped.items()):
        yield f"| {name} | {len(rows)} | " + " | ".join(f"{value * 100:.1f}" for value in np.mean(rows, axis=0)) + " |"


def report(lessons: Lessons, *, ablation: bool) -> None:
    """Print the tables of one set of weights."""
    print(f"\n{lessons.name}: weights that never saw the conversation\n| kind | n | {' | '.join(MEASURES)} |")
    found = left_out(lessons, lessons.folds)
    print("\n".join(table(lessons, found, lambda one: one.kind)))
    print("\n".join(table(lessons, found, lambda one: f"{one.kind} {one.category}")))
    print(f"\n{lessons.name}: weights that never saw the kind of talk")
    unseen = np.where(np.char.startswith(lessons.kinds, "assistant"), "assistant", lessons.kinds)
    unseen = np.where(unseen == "nameless", "locomo", unseen)
    print("\n".join(table(lessons, left_out(lessons, unseen), lambda one: one.kind)))
    for name in lessons.columns if ablation else ():
        print(f"\n{lessons.name}: without {name}")
        print("\n".join(table(lessons, left_out(lessons, lessons.folds, name), lambda one: one.kind)))


def weights_of(asked: Sequence[AskedRows]) -> RankingWeights:
    """Return the weights that are learned from everything."""
    learned = {}
    for name, columns in COLUMNS.items():
        lessons = Lessons(asked, name)
        found = lessons.learn(np.ones(len(asked), bool))
        learned[name] = dict(zip(columns, found.tolist(), strict=True))
    sizes = {kind: sum(one.kind == kind for one in asked) for kind in SHARES}
    trained_on = {kind: f"{size} questions, share {SHARES[kind]}" for kind, size in sizes.items() if size}
    how = f"listwise softmax over the best candidates by fixed weights, L2 {L2}, Adam, {STEPS} steps from zero"
    return RankingWeights(trained_on, how, "python -m bench.talk.train_ranking --write", **learned)


def main(argv: Sequence[str] | None = None) -> int:
    """Learn, print and write."""
    parser = argparse.ArgumentParser("python -m bench.talk.train_ranking", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("EVERLOG_DATA", locomo.DATA)))
    parser.add_argument("--write", action="store_true", help="store the weights in the package")
    parser.add_argument("--ablation", action="store_true", help="also leave out each feature")
    parser.add_argument("--no-report", action="store_true", help="do not judge, which takes minutes")
    args = parser.parse_args(argv)
    embedder = embedder_of()
    asked = [
        row for kind, some in all_kinds(args.data).items() for chat in some for row in rows_of(kind, chat, embedder)
    ]
    if args.write:
        found = msgspec.json.format(msgspec.json.encode(weights_of(asked)), indent=2)
        WEIGHTS_FILE.write_bytes(found + b"\n")
    for name in () if args.no_report else COLUMNS:
        report(Lessons(asked, name), ablation=args.ablation)
    return 0


if __name__ == "__main__":
    sys.exit(main())
