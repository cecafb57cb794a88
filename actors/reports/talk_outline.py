"""Say of a talk, without indexing it, whether a query can find something in it, and how relevant that can be at most.

Used by `fleet_search`, which indexes and ranks only the talks whose results can be on the wanted page. An edit must
keep that no result is more relevant than `TalkOutline.relevance_max` says, and that a talk without results by words is
the only one for which `may_match` is False.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everlog.actors.memory.joint_search import COVERED, DIGITS
from everlog.actors.ports.agent_constants import PASSAGE_CHARS
from everlog.projections.search.talk_index import LANGUAGES
from everlog.projections.search.talk_words import stems_and_language
from everlog.projections.search.utterance import Utterance
from everlog.store.base.bm25 import rarity
from everlog.store.base.stemming import phrases_in, query_stems, stems
from everlog.store.embedding.best_passage import stems_shown

if TYPE_CHECKING:
    import numpy as np

_ROUNDING = 1e-9
"""More than the sums of a relevance can differ because of their order."""


class SoughtStems:
    """Stems of a query, in any language that a talk may have."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.phrases, self.rest = phrases_in(query)
        every = query_stems(query, LANGUAGES)
        self.any = frozenset(every) | {char for one in every if not one.isascii() for char in one}
        """All stems, and the characters of those that stand for them in a name (`aliases`)."""
        self._by_languages: dict[tuple[str, ...], Sequence[str]] = {}

    def of(self, languages: Sequence[str]) -> Sequence[str]:
        """Return the stems that are sought in a talk of these languages."""
        known = self._by_languages.get(key := tuple(languages))
        if known is None:
            known = self._by_languages[key] = query_stems(self._query, languages)
        return known

    def in_words(self, text: str) -> bool:
        """Return True if a text has the whole query word for word, or all of its phrases."""
        lower = text.lower()
        if self.phrases:
            return all(phrase in lower for phrase in self.phrases)
        return bool(self.rest) and self.rest in lower


class TalkOutline:
    """The stems of a query that the messages of a talk have."""

    def __init__(self, said: Sequence[Utterance], sought: SoughtStems) -> None:
        self._sought = sought
        self.name_stems: Mapping[str, frozenset[str]] = {
            name: frozenset(stems(name)) for name in dict.fromkeys(one.name for one in said)
        }
        """Stems of each speaker's name."""
        names = {name: own & sought.any for name, own in self.name_stems.items()}
        self._counts: Counter[str] = Counter()
        self._shown: list[frozenset[str]] = []
        self._verbatim = False
        spoken = set()
        for one in said:
            found, language = stems_and_language(one.text)
            spoken.add(language)
            found &= sought.any
            self._counts.update(found)
            shown = found if len(one.text) <= PASSAGE_CHARS else stems_shown(one.text, PASSAGE_CHARS) & sought.any
            self._shown.append(frozenset(shown) | names[one.name])
            self._verbatim = self._verbatim or sought.in_words(one.text)
        self._languages = [language for language in LANGUAGES if language in spoken]
        self.may_match = bool(self._counts) or self._verbatim or any(names.values())
        """False: the talk has neither a word of the query, nor a speaker of that name."""

    def relevance_max(self, near: "np.ndarray") -> float:
        """Return a relevance that no message exceeds. `near`: similarity in meaning of each message."""
        stems = self._sought.of(self._languages)
        weights = {one: rarity(len(self._shown), self._counts[one]) for one in stems}
        whole = sum(weights.values())
        best = 0.0
        shares: dict[frozenset[str], float] = {}
        for shown, cosine in zip(self._shown, near.tolist(), strict=True):
            share = shares.get(shown)
            if share is None:
                share = sum(weights.get(one, 0.0) for one in shown) / whole if whole else 0.0
                shares[shown] = share
            best = max(best, COVERED * share + (1 - COVERED) * max(cosine, 0.0))
        return round(best + _ROUNDING, DIGITS)
