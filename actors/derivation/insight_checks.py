"""Check a proposed insight before it becomes an event. Pure.

Used by the rules and by the model's reader. A sentence that only repeats a prompt, its question, a source or an earlier
insight says nothing new: it would be found, concluded from and repeated again.
"""

import re
from collections.abc import Collection, Iterable, Sequence

from everlog.actors.derivation.conclusions import Evidence
from everlog.events import BadInput

INSIGHT_CHARS_MAX = 200
"""Most characters of an insight, so that it stays a sentence: its record has less than 400 bytes."""
QUESTION_CHARS_MAX = 120
"""Most characters of a question."""
INSIGHT_SOURCES_MAX = 12
"""Most sources that an insight names: a number that is larger is reached through earlier insights."""
_WORDS_MIN = 3
_PLACEHOLDER = re.compile(
    r"\b(?:this is blank|lorem ipsum|insight \d+|insight (?:here|text)|your insight|as an ai|i cannot|i can't help"
    r"|no insights?|not enough information|n/a|john doe|jane doe|todo)\b|^[\W_]*$|\.\.\.\s*$|<[^>]*>|\{[^}]*\}",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


def plain(text: str) -> str:
    """Return the words of a text in lower case, for comparisons."""
    return " ".join(_WORD.findall(text.lower()))


def depth_of(sources: Collection[int], evidence: Iterable[Evidence]) -> int:
    """Return the depth of an insight on these sources: 1 more than the largest of theirs."""
    return 1 + max((one.depth for one in evidence if one.seq in sources), default=0)


def check_insight(text: str, question: str, known: Collection[str], said: Sequence[str], prompts: Sequence[str]) -> str:
    """Return the text of a proposed insight, in one line. Raise BadInput with the reason if it is no insight.

    `known`: `plain` texts of insights that exist. `said`: texts of the memories that were shown. `prompts`: texts that
    the model was told.
    """
    line = " ".join(text.split())
    bare = plain(line)
    if not bare:
        raise BadInput("The insight is empty.")
    if len(line) > INSIGHT_CHARS_MAX:
        raise BadInput(f"The insight has {len(line)} characters, more than {INSIGHT_CHARS_MAX}: {line[:60]!r}...")
    if _PLACEHOLDER.search(line) or len(bare.split()) < _WORDS_MIN:
        raise BadInput(f"The insight is a placeholder: {line[:80]!r}.")
    if bare == plain(question) or line.endswith("?"):
        raise BadInput(f"The insight is a question: {line[:80]!r}.")
    if bare in known:
        raise BadInput(f"The insight is known already: {line[:80]!r}.")
    if any(bare in plain(prompt) for prompt in prompts):
        raise BadInput(f"The insight repeats the prompt: {line[:80]!r}.")
    if any(_repeats(bare, plain(one)) for one in said):
        raise BadInput(f"The insight only repeats a memory word for word: {line[:80]!r}.")
    return line


def _repeats(bare: str, said: str) -> bool:
    """Return True if a text is another one, or a run of its words."""
    return f" {bare} " in f" {said} "
