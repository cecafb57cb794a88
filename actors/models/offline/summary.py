"""The offline stand-in's summaries: it picks sentences, it does not write any. Pure, no state.

The transcript is what `render.transcript` makes: "Summary so far: ...", then lines of "time | who: words".
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from everlog.actors.models.offline.words import sentences

WORDS = 100
"""Words of a summary where the request does not say how many."""

SENTENCE_WORDS_MAX = 30
"""A longer sentence is cut."""

EARLIER = "Summary so far: "
_LIMIT = re.compile(r"\bat most (\d+) words\b")
_LINE = re.compile(r"^(\d{4}-\d{2}-\d{2})[^|\n]{0,40} \| ([^:\n]{1,80}): (.*)$")
_CALL = re.compile(r"^\d{4}-\d{2}-\d{2}[^|\n]{0,40} \| (?:assistant called |[\w.-]+ returned:)")
_NO_VOICE = (" (thinking)", " returned")
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|we|our|i've|i'll)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=\w )[A-Z]\w+")
_PROMISE = re.compile(r"\b(?:promise|will|remember|tomorrow|birthday|name|called|live|like|love|work)\b", re.IGNORECASE)
_PART = re.compile(r"(?<=[.!?])\s+")
_ELLIPSIS = "[... the middle"


class _Candidate(msgspec.Struct):
    place: int
    text: str
    score: float


def limit(system: str) -> int | None:
    """How many words the system message asks for; None where it asks for no summary."""
    match = _LIMIT.search(system)
    return max(1, int(match[1][:9])) if match else None


def summary(transcript: str, words: int) -> str:
    """Sentences of `transcript` in at most `words` words: some of the earlier summary's, then what says most."""
    earlier, lines = _split(transcript)
    told = [_Candidate(n, _cut(text), _score(text)) for n, text in enumerate(_PART.split(earlier)) if text.strip()]
    said = [_Candidate(n, text, score) for n, (text, score) in enumerate(_said(lines))]
    kept = _fill(told, words // 2 if said else words)
    kept_said = _fill(said, words - _count(kept))
    kept = _fill(told, words - _count(kept_said)) if told else kept
    text = " ".join(candidate.text for candidate in [*kept, *kept_said])
    return text or _cut(next(iter([*told, *said]), _Candidate(0, "Nothing of note was said.", 0)).text, words)


def _split(transcript: str) -> tuple[str, list[str]]:
    """The earlier summary, which may have several lines, and the lines after it."""
    lines = transcript.split("\n")
    if not transcript.startswith(EARLIER):
        return "", lines
    end = next((n for n, line in enumerate(lines) if _LINE.match(line) or _CALL.match(line)), len(lines))
    return " ".join(lines[:end])[len(EARLIER) :], lines[end:]


def _said(lines: Iterable[str]) -> Iterator[tuple[str, float]]:
    """What was said, sentence by sentence, each standing on its own, with how much it says."""
    day = who = ""
    for line in lines:
        if not line.strip() or line.startswith(_ELLIPSIS):
            continue
        if _CALL.match(line):
            who = ""
            continue
        match = _LINE.match(line)
        if match:
            day, who, line = match[1], match[2], match[3]
        if not who or who.endswith(_NO_VOICE):
            continue
        for sentence in sentences(line):
            speaker = {"assistant": "I", "user": "the user"}.get(who, who)
            weight = 0.3 if who in ("assistant", "system") else 1.0
            yield _cut(f"On {day} {speaker} said: {sentence}", SENTENCE_WORDS_MAX), weight * _score(sentence)


def _score(text: str) -> float:
    """How much a sentence says: names, numbers and first persons count, length costs."""
    found = (
        2.0 * len(_FIRST_PERSON.findall(text)[:2])
        + 1.5 * len(_NAME.findall(text)[:4])
        + 2.0 * bool(re.search(r"\d", text))
        + 1.0 * len(_PROMISE.findall(text)[:2])
        - 2.0 * text.endswith("?")
    )
    return found + 1.0 - min(len(text.split()), SENTENCE_WORDS_MAX) / SENTENCE_WORDS_MAX


def _fill(candidates: list[_Candidate], words: int) -> list[_Candidate]:
    """The best of `candidates` that fit into `words` words together, in their own order, no text twice."""
    kept: dict[str, _Candidate] = {}
    left = words
    for candidate in sorted(candidates, key=lambda c: (-c.score, c.place)):
        if left <= 0:
            break
        size = len(candidate.text.split())
        if size <= left and candidate.text not in kept:
            kept[candidate.text] = candidate
            left -= size
    return sorted(kept.values(), key=lambda c: c.place)


def _count(candidates: Iterable[_Candidate]) -> int:
    return sum(len(candidate.text.split()) for candidate in candidates)


def _cut(text: str, words: int = SENTENCE_WORDS_MAX) -> str:
    """At most `words` words of `text`, ended like a sentence."""
    found = text.split()
    cut = " ".join(found[:words])
    if len(found) > words:
        return f"{cut.rstrip('.,;:')}..."
    return cut if cut.endswith((".", "!", "?")) else f"{cut}."
