"""From text to stems: what ranked search compares. Snowball's English stemmer; a word is letters and digits."""

import re

from everlog.store.base.stemming import QUESTION_WORDS, stem

_WORD = re.compile(r"\w+")

_SENTENCE = re.compile(r"[^.!?\[\]]+[.!?\]]*")


def stems(text: str) -> list[str]:
    """The stems of all words of `text`, in order."""
    return [stem(word) for word in _WORD.findall(text.lower())]


def query_stems(query: str) -> list[str]:
    """The stems of a query, each once, without question words where others are left."""
    words = _WORD.findall(query.lower())
    kept = [word for word in words if word not in QUESTION_WORDS] or words
    return sorted({stem(word) for word in kept})


def stems_by_sentence(text: str) -> tuple[list[str], list[str]]:
    """The stems of its statements, and those of its questions: sentences that end in a question mark."""
    stated: list[str] = []
    asked: list[str] = []
    for sentence in _SENTENCE.findall(text):
        (asked if sentence.rstrip().endswith("?") else stated).extend(stems(sentence))
    return stated, asked
