"""Cut a message into clauses that state something. Pure, and for English: clauses of other languages match no rule.

Left out: questions, what is only possible, wished for or reported, quotations, code. A clause that is denied is kept
and marked, because "no longer works at" ends a fact. Used by `rule_facts.py`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

CLAUSE_CHARS_MAX = 300
"""Longest clause that is read; a longer one states too much at once."""
STATED_CHARS_MAX = 10_000
"""Characters of a message, from its beginning, that are read: as many as dates are sought in."""

_CODE = re.compile(r"```.*?(?:```|\Z)|^\s*>.*$", re.DOTALL | re.MULTILINE)
_QUOTE = re.compile(r'"([^"\n]*)"|“([^”\n]*)”|„([^“”\n]*)[“”]|«([^»\n]*)»')
_QUOTED_WORDS_MAX = 4
"""Words of a quotation that may be a title; a longer one is the words of another person."""
_BLANKED = "\x00"
_SENTENCE = re.compile(
    r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bProf\.)(?<=[.!?;…])[\s)]+|\n+|\s+[-–—]+\s+|[()]"
)
_UNSURE = re.compile(
    r"\b(?:[Ii]f|[Ww]ould|[Cc]ould|[Ss]hould|[Mm]ight|may|[Mm]aybe|[Pp]erhaps|[Pp]robably|[Pp]ossibly|[Ww]ish|[Ii]magine|"
    r"[Ss]uppos(?:e|ed|edly)|[Pp]retend\w*|[Uu]nless|[Ww]hether|will|shall|gonna|going to|hop(?:e|es|ed|ing)|"
    r"want(?:s|ed|ing)?|plan(?:s|ned|ning)?|th(?:ink|inks|ought|inking)|guess(?:es|ed)?|believ(?:e|es|ed)|hear[ds]?|"
    r"said|says?|saying|told|tells?|claim(?:s|ed)?|ask(?:s|ed)?|wonder\w*|dream\w*|almost|nearly|seems?|like to|let's|"
    r"try(?:ing)? to|[Oo]nce upon|joking|kidding|as though)\b|'d\b|'ll\b"
)
"""Words of a sentence that states no fact: it is possible, wished for, planned, thought or reported."""
_ASKED = re.compile(
    r"^(?:do|does|did|is|are|am|was|were|can|what|who|whose|where|when|why|how|which)\b(?! that\b)", re.IGNORECASE
)
_DENIED = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|neither|nor|hardly|barely|cannot)\b|n't\b|\bany ?more\b|\bused to\b",
    re.IGNORECASE,
)
_BEGINS = r"(?:I|i|[Mm]y|[Yy]ou|[Yy]our|[Ww]e|[Hh]e|[Ss]he|[Tt]hey|[Ii]t|[Tt]his|[Tt]hat(?! is\b))\b"
_VERBS = (
    r"(?:am|is|was|live[sd]?|work(?:s|ed)?|moved|love[sd]?|like[sd]?|hate[sd]?|enjoys?|have|has|speaks?|plays?|stud(?:y|ies)|"
    r"married|quit|left|drives?|owns?|come|comes|started|got|no longer|used to|call)\b"
)
_PARTS = re.compile(
    rf",?\s+(?:(and|but)\s+(?={_BEGINS}|{_VERBS})|(and|but)\s+(?=[A-Z][\w'-]*\s+{_VERBS})|(because|so|although|though)\s+)"
    rf"|;\s*|,\s+(?={_BEGINS}|call me\b|{_VERBS})"
)
_ASIDE = re.compile(
    r",\s+(?:when|while|where|which|who|whom|whose|until|except)\b.*$|,\s*(?:right|isn't it)$", re.DOTALL
)
"""An aside after a comma. Without a comma it says which of several are meant, and the rules see it."""
_LEAD = re.compile(
    r"^(?:(?:well|oh|so|and|but|yes|yeah|yep|hi|hey|hello|ok|okay|btw|fyi|by the way|actually|honestly|anyway|also|now|"
    r"currently|right now|these days|nowadays|as you know|please|you know|sure|thanks|thank you|great|cool|wow|haha|"
    r"just so you know|guess what|in fact|of course|(?:please )?(?:remember|note|keep in mind)(?: that)?|"
    r"did you know that)\b[,!.:]*\s+)+",
    re.IGNORECASE,
)
_ADVERBS = re.compile(
    r"\b(?:really|just|still|currently|absolutely|actually|recently|finally|truly|totally|already|officially|definitely|"
    r"simply|always|happily|also|now|sometimes|honestly|proudly)\s+(?=\w)"
)


class Clause(NamedTuple):
    """One statement of a message."""

    text: str
    """The statement with written-out short forms, without the words that lead into it."""
    denied: bool
    """True if it denies something, such as "no longer" or "not"."""
    continues: bool
    """True if its subject is that of the clause before, which it leaves out."""


def clauses_of(text: str) -> Iterator[Clause]:
    """Yield the clauses of a message that state something, in order."""
    said = _CODE.sub("\n", text[:STATED_CHARS_MAX].replace("’", "'").replace("‘", "'"))
    said = _QUOTE.sub(_unquoted, said)
    for sentence in _SENTENCE.split(said):
        if sentence and not sentence.rstrip().endswith("?") and _BLANKED not in sentence:
            yield from _stated(sentence)


def _unquoted(quote: re.Match[str]) -> str:
    """Return a short quotation without its marks, as it may be a title, and a mark for a longer one."""
    inside = next(filter(None, quote.groups()), "")
    whole = inside.strip()
    is_title = 0 < len(whole.split()) <= _QUOTED_WORDS_MAX and whole[-1] not in ".!?," and not re.match("I\\b", whole)
    return whole if is_title else _BLANKED


def _stated(sentence: str) -> Iterator[Clause]:
    whole = _LEAD.sub("", sentence.strip().rstrip(".!…;, "))
    if not whole or _ASKED.match(whole) or _UNSURE.search(whole):
        return
    for number, part in enumerate(_split(whole)):
        stated = _LEAD.sub("", _ASIDE.sub("", part).strip(" ,:"))
        if 3 < len(stated) <= CLAUSE_CHARS_MAX:
            continues = number > 0 and re.match(_VERBS, stated) is not None
            yield Clause(_ADVERBS.sub("", written_out(stated)), _DENIED.search(stated) is not None, continues)


def _split(sentence: str) -> Iterator[str]:
    begin = 0
    for match in _PARTS.finditer(sentence):
        yield sentence[begin : match.start()]
        begin = match.end()
    yield sentence[begin:]


_SHORT = (
    (re.compile(r"\b([Ii])'m\b"), r"\1 am"), (re.compile(r"\b([Ii]|[Yy]ou|[Ww]e|[Tt]hey)'ve\b"), r"\1 have"),
    (re.compile(r"\b([Yy]ou|[Ww]e|[Tt]hey)'re\b"), r"\1 are"),
    (re.compile(r"\b(name|[Hh]e|[Ss]he|[Ii]t)'s\b"), r"\1 is"),
    (re.compile(r"\b(do|does|is|are|was)n't\b"), r"\1 not"), (re.compile(r"^i\b"), "I"),
)  # fmt: skip


def written_out(text: str) -> str:
    """Return the text with the short forms of verbs written out, but for those that may be a genitive."""
    for pattern, long in _SHORT:
        text = pattern.sub(long, text)
    return text
