"""Choose the passage of a text that answers a question best: whole sentences around the question's words. Pure, no
state.

Used by `hits.py`.
"""

from collections.abc import Mapping

from everlog.actors.models.offline.english import sentence_spans, short, stems

PASSAGE_CHARS_MAX = 300
"""Characters of a quote. A shorter text is quoted whole."""
_MARK = "..."


def passage(text: str, weights: Mapping[str, float]) -> str:
    """Return the best whole sentences of `text` in their order, on one line, in at most PASSAGE_CHARS_MAX characters.

    `weights`: the stems of the question, each with what it counts. The longest of equally good passages wins, then the
    first. Marks stand where something is left out.
    """
    flat = " ".join(text.split())
    if len(flat) <= PASSAGE_CHARS_MAX:
        return flat
    spans = sentence_spans(flat)
    found = [stems(flat[begin:end]) for begin, end in spans]
    best, best_score = (0, spans[0][1]), (-1.0, 0)
    for first, (begin, _) in enumerate(spans):
        seen: set[str] = set()
        for place in range(first, len(spans)):
            end = spans[place][1]
            if end - begin > PASSAGE_CHARS_MAX and place > first:
                break
            seen |= found[place]
            score = (sum(weight for stem, weight in weights.items() if stem in seen), end - begin)
            if score > best_score:
                best, best_score = (begin, end), score
    begin, end = best
    cut = short(flat[begin:end], PASSAGE_CHARS_MAX)
    before = f"{_MARK} " if begin else ""
    after = f" {_MARK}" if end < len(flat) and not cut.endswith(_MARK) else ""
    return f"{before}{cut}{after}"
