"""Summarize for the offline model: pick sentences from the transcript, and write none. Pure, no state.

A transcript begins with "Summary so far: ..." if there is an earlier summary, then has lines "time | who: words". Used
by `offline_model.py`. `formats/render_request.py` writes these transcripts: keep both in step.
"""

import re
from collections.abc import Iterator, Sequence

from everlog.actors.models.offline.english import any_case, sentences

_EARLIER = "Summary so far: "
_SENTENCE_WORDS_MAX = 30
"""Maximum words of a sentence; a longer one is truncated."""
_LIMIT = re.compile(r"\bat most (\d{1,9}) words\b")
_LINE = re.compile(
    r"(\d{4}-\d{2}-\d{2})[^|\n]{0,40} \| (?:assistant called .*|[\w.-]+ returned:.*|([^:\n]{1,80}): (.*))"
)
_PERSONAL = any_case(
    r"\b(?:i|i'm|my|we|our|i've|i'll|promise|will|remember|tomorrow|birthday|name|called|live|like|love|work)\b"
    r"|(?<=\w )(?-i:[A-Z])\w+|\d+"
)
"""Signs that a sentence is worth keeping: first persons, names, numbers and the like."""
_ELLIPSIS = "[... the middle"


def limit(system: str) -> int | None:
    """Return the number of words that the system message asks for; None if it asks for no summary."""
    match = _LIMIT.search(system)
    return max(1, int(match[1])) if match else None


def summary(transcript: str, words: int) -> str:
    """Return sentences of `transcript`, in at most `words` words:
    some of the earlier summary, then the highest-scored ones.
    """
    lines = transcript.split("\n")
    end = next((n for n, line in enumerate(lines) if _LINE.match(line)), len(lines))
    before = "\n".join(lines[:end]) if transcript.startswith(_EARLIER) else ""
    earlier = [_truncate(text) for text in sentences(before.removeprefix(_EARLIER))]
    said = list(_said(lines[end:] if before else lines))
    kept = _best(said, words - _count(_best(earlier, words // 2 if said else words)))
    kept = [*_best(earlier, words - _count(kept)), *kept]
    return " ".join(kept) or _truncate([*earlier, *said, "Nothing of note was said."][0], words)


def _said(lines: Sequence[str]) -> Iterator[str]:
    """Yield what was said, sentence by sentence, each with its day and speaker. Thoughts and calls are left out."""
    day = who = ""
    for line in lines:
        said = line
        if match := _LINE.match(line):
            day, who, said = match[1], match[2] or "", match[3] or ""
        if who and not who.endswith("(thinking)") and not line.startswith(_ELLIPSIS):
            speaker = {"assistant": "I", "user": "the user"}.get(who, who)
            yield from (_truncate(f"On {day} {speaker} said: {sentence}") for sentence in sentences(said))


def _score(text: str) -> float:
    """Return the score of a sentence. Length and questions lower it, and the assistant's own words count little."""
    personal_words = len(set(_PERSONAL.findall(text.rpartition(" said: ")[2])))
    score = min(personal_words, 6) + 1.0 - 2.0 * text.endswith("?") - len(text.split()) / _SENTENCE_WORDS_MAX
    return score * 0.3 if " I said: " in text else score


def _best(texts: Sequence[str], words: int) -> list[str]:
    """Return the highest-scored sentences that fit into `words` words together, in their own order, without repeats."""
    kept: dict[str, int] = {}
    for place in sorted(range(len(texts)), key=lambda n: -_score(texts[n])):
        if texts[place] not in kept and (size := _count([texts[place]])) <= words:
            kept[texts[place]] = place
            words -= size
    return sorted(kept, key=lambda text: kept[text])


def _count(texts: Sequence[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _truncate(text: str, words: int = _SENTENCE_WORDS_MAX) -> str:
    """Return at most `words` words of `text`, ended like a sentence."""
    cut = " ".join(text.split()[:words])
    if len(text.split()) > words:
        return f"{cut.rstrip('.,;:')}..."
    return cut if cut.endswith((".", "!", "?")) else f"{cut}."
