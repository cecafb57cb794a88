"""Keep memories within a budget of tokens by summaries of summaries. Pure: a caller writes the summaries.

Each text has a level: 0 as it was said, or the level of the summary that it became. `MemoryLevels` says which texts are
to be summarized next (`due`) and takes the summary (`give`); it is the same for the same texts and summaries. It always
ends: a given text is cut to its limit, and a merge leaves one text fewer.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256

import msgspec

from everlog.actors.models.daily_usage import BYTES_PER_TOKEN
from everlog.actors.models.offline import extractive_summary
from everlog.actors.prompt.message_format import format_time
from everlog.actors.recollection.memory_items import MemoryItem, size, tokens
from everlog.events import BadInput

LEVELS_MAX = 20
"""Highest level of a summary: summaries of that level are merged into one of the same level."""
SUMMARY_TOKENS_MIN = 10
"""Least limit of a summary, tokens."""
_CUT = " ..."
_SAID = re.compile(r"\d{4}-\d{2}-\d{2}[^|\n]{0,40} \| ")

Summarizer = Callable[[Sequence[str], int], Awaitable[str]]
"""Writes a summary: (texts, most tokens) to one text."""


class LeveledText(msgspec.Struct, frozen=True):
    """One memory, or a summary of several that follow each other."""

    text: str
    at: int
    """Time of the first memory in it, microseconds UTC."""
    seqs: tuple[int, ...]
    """Seqs of the memories in it, in their order."""
    level: int = 0
    """0: as it was said, at most shortened."""


class SummaryLimits(msgspec.Struct, frozen=True):
    """Limits of a view of levels, in tokens."""

    token_limit: int = 2000
    """Of all texts together, with the separators."""
    one_message_limit: int = 500
    """Of one memory: a longer one is shortened as soon as it is added."""
    summary_limit: int = 250
    separator: str = "\n\n"

    def check(self) -> None:
        """Raise BadInput for limits that cannot be kept: the newest memory and one summary must fit."""
        if self.summary_limit < SUMMARY_TOKENS_MIN or self.one_message_limit < SUMMARY_TOKENS_MIN:
            raise BadInput(f"The limits of a message and of a summary are at least {SUMMARY_TOKENS_MIN} tokens.")
        least = self.one_message_limit + self.summary_limit + tokens(self.separator)
        if self.token_limit < least:
            raise BadInput(
                f"A limit of {self.token_limit} tokens is too low for a message of {self.one_message_limit}, a summary "
                f"of {self.summary_limit} and what separates them: give {least} or more, or lower the others."
            )


DEFAULT_LIMITS = SummaryLimits()


class DueSummary(msgspec.Struct, frozen=True):
    """A summary that is to be written: of texts that follow each other, within `limit` tokens."""

    first: int
    count: int
    """1: a text is shortened and keeps its level; 2: two become one of the next level."""
    texts: Sequence[str]
    limit: int


class MemoryLevels:
    """Texts of several levels, within the limits as soon as nothing is due."""

    def __init__(self, limits: SummaryLimits = DEFAULT_LIMITS) -> None:
        """Begin without texts. Raises BadInput for limits that cannot be kept."""
        limits.check()
        self._limits = limits
        self._items: list[LeveledText] = []

    @property
    def items(self) -> Sequence[LeveledText]:
        """All texts, in the order of their times."""
        return tuple(self._items)

    @property
    def total(self) -> int:
        """Tokens of all texts together, with the separators."""
        parts = sum(size(item.text) for item in self._items)
        return -(-(parts + max(len(self._items) - 1, 0) * size(self._limits.separator)) // BYTES_PER_TOKEN)

    def add(self, text: str, at: int, seq: int) -> None:
        """Add the newest memory. `due` must be None before: a summary that is due is written first."""
        self._items.append(LeveledText(text, at, (seq,)))

    def due(self) -> DueSummary | None:
        """Return the next summary that is to be written; None if all limits are kept."""
        limits, items = self._limits, self._items
        if items and tokens(items[-1].text) > limits.one_message_limit:
            return self._due(len(items) - 1, 1, limits.one_message_limit)
        if self.total <= limits.token_limit:
            return None
        for number, item in enumerate(items[:-1]):
            if item.level == 0 and tokens(item.text) > limits.summary_limit:
                return self._due(number, 1, limits.summary_limit)
        return self._due(self._merged(), 2, limits.summary_limit)

    def _due(self, first: int, count: int, limit: int) -> DueSummary:
        return DueSummary(first, count, [item.text for item in self._items[first : first + count]], limit)

    def _merged(self) -> int:
        """Return the place of the text that is merged with the next: the first of the commonest level, of equally
        common ones the lowest. The newest text is merged with none.
        """
        levels = [item.level for item in self._items[:-2]]
        counts = Counter(levels)
        return levels.index(min(counts, key=lambda level: (-counts[level], level)))

    def give(self, due: DueSummary, summary: str) -> None:
        """Replace the texts of `due`, which `due()` returned last, by their summary, cut to its limit if need be."""
        old = self._items[due.first : due.first + due.count]
        level = old[0].level if due.count == 1 else min(max(item.level for item in self._items) + 1, LEVELS_MAX)
        seqs = tuple(seq for item in old for seq in item.seqs)
        new = LeveledText(cut_text(summary, due.limit), old[0].at, seqs, level)
        self._items[due.first : due.first + due.count] = [new]


async def summarized(
    texts: Iterable[tuple[str, int, int]], summarize: Summarizer, limits: SummaryLimits = DEFAULT_LIMITS
) -> Sequence[LeveledText]:
    """Return memories within the limits, older ones as summaries of summaries.

    `texts`: text, time (microseconds UTC) and seq of each memory, in the order of the times. Raises BadInput for limits
    that cannot be kept, and what `summarize` raises.
    """
    levels = MemoryLevels(limits)
    for text, at, seq in texts:
        levels.add(text, at, seq)
        while (due := levels.due()) is not None:
            levels.give(due, await summarize(due.texts, due.limit))
    return levels.items


class KnownSummaries:
    """Summaries by what they are of, so that the same texts are summarized once, also by a model that would answer
    differently a second time.
    """

    def __init__(self, summarize: Summarizer, known: dict[str, str] | None = None) -> None:
        """`known`: summaries by the digest of their texts and limit; new ones are added to it."""
        self._summarize = summarize
        self.known: dict[str, str] = {} if known is None else known

    async def __call__(self, texts: Sequence[str], limit: int) -> str:
        """Return the summary of these texts within `limit` tokens."""
        key = sha256(msgspec.json.encode([limit, *texts])).hexdigest()
        if key not in self.known:
            self.known[key] = await self._summarize(texts, limit)
        return self.known[key]


async def extracted(texts: Sequence[str], limit: int) -> str:
    """Return sentences of the texts, the most personal ones, within `limit` tokens. No model is asked.

    A memory begins with its day, ` | ` and its speaker, see `summary_line`; other texts are summaries.
    """
    said = [text for text in texts if _SAID.match(text)]
    earlier = " ".join(text for text in texts if not _SAID.match(text))
    transcript = "\n".join([f"Summary so far: {earlier}", *said] if earlier else said)
    return cut_text(extractive_summary.summary(transcript, max(limit // 2, 1)), limit)


def summary_line(item: MemoryItem, zone: str = "UTC") -> str:
    """Return a memory as `extracted` and transcripts for models have it: its time, who said it, and its text."""
    who = item.name or item.role if item.kind == "message" else item.kind
    return f"{format_time(item.at, zone)} | {who}: {item.text}"


def cut_text(text: str, limit: int) -> str:
    """Return a text of at most `limit` tokens: a longer one is cut, where possible between words, and ends with dots.

    `limit`: 1 or more.
    """
    if tokens(text) <= limit:
        return text
    room = limit * BYTES_PER_TOKEN - size(_CUT)
    whole = text.encode("utf-8", "surrogatepass")[: max(room, 0)].decode("utf-8", "ignore")
    begun = whole.rpartition(" ")[0].rstrip() or whole
    return f"{begun}{_CUT}" if room >= 0 else _CUT[: limit * BYTES_PER_TOKEN]
