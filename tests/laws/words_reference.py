"""Words of texts and queries in plain Python, for English and Chinese: the reference for `store.base.stemming`."""

from itertools import pairwise

from snowballstemmer import stemmer

from everlog.store.base.function_words import QUESTION_WORDS

_ENGLISH = stemmer("english")
_RANGES = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF))
_CHARACTERS = frozenset(chr(code) for first, last in _RANGES for code in range(first, last + 1))


def words(text: str) -> list[str]:
    """Return runs of letters, digits and underscores, stemmed if they have letters only. A run of Chinese characters
    becomes the characters, if there are several, and then the pairs of neighbours, or the only character.
    """
    found = []
    for word in _runs(text):
        if word[0] not in _CHARACTERS:
            found.append(_ENGLISH.stemWord(word) if word.isalpha() else word)
        else:
            found += [*(word if len(word) > 1 else ""), *_pairs(word)]
    return found


def query_words(query: str) -> set[str]:
    """Return the words of a query; question words are dropped unless no others are left."""
    runs = _runs(query)
    kept = [word for word in runs if word not in QUESTION_WORDS] or runs
    return {part for word in kept for part in (_pairs(word) if word[0] in _CHARACTERS else words(word))}


def _runs(text: str) -> list[str]:
    found = [""]
    for c in text.lower():
        if not (c.isalnum() or c == "_"):
            found.append("")
        elif found[-1] and (found[-1][-1] in _CHARACTERS) != (c in _CHARACTERS):
            found.append(c)
        else:
            found[-1] += c
    return [word for word in found if word]


def _pairs(word: str) -> list[str]:
    return [one + after for one, after in pairwise(word)] or [word]
