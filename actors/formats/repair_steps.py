"""Table of the repair steps of a reply: name, description, and if a step may change the meaning.

Used by `parse_reply.py`. Replies record the names of their steps: raise `parse_reply.READER` if a step is renamed or
changes its table. A refused reply is recorded with the descriptions of its lossy steps, and `verify` compares this
text.
"""

from collections.abc import Iterable, Mapping

LOSSLESS: Mapping[str, str] = {
    "think": "what stands between <think> and </think> was taken for monologue",
    "stop": "what a server let the model write beyond the mark that ends its turn was left out",
    "fence": "a code fence stood around it",
    "words": "words stood around it",
    "braces": "there were closing braces too many after it",
    "list": "several calls came as one list",
    "names": "a call was written with the words of another format",
    "flat": "parameters stood beside the call and not in it",
    "nested": "an object came as a text with JSON in it",
    "breaks": "a text held raw line breaks",
    "escapes": "an underscore or an apostrophe had a backslash before it",
    "comma": "a comma stood before a closing brace",
    "closed": "closing braces were missing at the end, behind something that was complete",
    "tags": "calls stood in the text, marked as the model's template has them",
    "content": "the text was a call and nothing else",
}
"""Steps after which the result holds everything that the model wrote, and nothing else."""

LOSSY: Mapping[str, str] = {
    "cut": "it ended in the middle of something",
    "quotes": "texts stood between quotes of another kind",
    "literals": "values were written as Python has them",
    "inner": "quotes in a text had no backslash before them",
    "bare": "keys or values had no quotes",
    "missing": "a comma, a colon or a brace was missing",
    "backslash": "a backslash stood before something that has none",
    "repeated": "a key was there twice",
    "around": "words around it look like a part of it",
    "several": "several calls came that were no list",
    "wordless": "a monologue was no text",
    "nameless": "parameters came without a function",
    "prose": "it was plain text, and was taken for a message",
    "nothing": "it was empty",
    "unread": "it could not be read",
}
"""Steps after which the result may differ from what the model meant."""


def is_lossy(repairs: Iterable[str]) -> bool:
    """Return True if any of the steps may have changed the meaning."""
    return any(repair_step in LOSSY for repair_step in repairs)


def format_steps(repairs: Iterable[str]) -> str:
    """Join repair steps as a reply records them."""
    return ", ".join(dict.fromkeys(repairs))
