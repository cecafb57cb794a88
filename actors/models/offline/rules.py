"""The rules that tell what a user's words are: facts about the user, or questions. Pure, no state.

A fact is one line of the block `human`: "Name: Chad", or "The user said: I sail" where no better key is known.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from everlog.actors.models.offline.words import Wording, plain, sentences, short, stems, to_you, words

SAID = "The user said"
FACT_CHARS_MAX = 200


class Fact(msgspec.Struct, frozen=True):
    """Something that the user told of themselves."""

    key: str
    value: str

    @property
    def line(self) -> str:
        return f"{self.key}: {self.value}"

    @property
    def single(self) -> bool:
        """Whether a new value takes the place of the old one."""
        return self.key in ("Name", "Lives in", "Works as", "Works at", "Age", "From") or bool(_SINGLE.search(self.key))

    @property
    def told(self) -> str:
        """The fact as the user is told it."""
        if self.key in _TOLD:
            return _TOLD[self.key].format(to_you(self.value))
        if self.key == SAID:
            return to_you(self.value)
        return f"your {self.key[:1].lower()}{self.key[1:]} {_be(self.key)} {to_you(self.value)}"


_SINGLE = re.compile(
    r"'s name$|' names$|^favou?rite |\b(?:birthday|number|address|e-?mail|password|surname|height|job|car|wife"
    r"|husband)$",
    re.IGNORECASE,
)
_TOLD = {
    "Name": "your name is {}",
    "First name": "your name is {}",
    "Lives in": "you live in {}",
    "Works as": "you work as {}",
    "Works at": "you work at {}",
    "From": "you are from {}",
    "Age": "you are {} years old",
    "Likes": "you like {}",
    "Dislikes": "you dislike {}",
    "To do": "you want to {}",
}

_FILLER = re.compile(
    r"^(?:(?:hi|hello|hey)(?: there| sam)?|well|so|oh|yes|no|ok|okay|actually|also|by the way|btw|please|thanks"
    r"|thank you|nice to meet you|good (?:morning|evening|afternoon))(?:[,!.: ]+|$)",
    re.IGNORECASE,
)
_CLAUSES = re.compile(
    r",?\s+(?:and|but)\s+(?=(?:i|i'm|i've|my|call|we)\b)|,\s+(?!i mean\b)(?=(?:i|i'm|i've|my)\s)", re.IGNORECASE
)
_CORRECTED = Wording(
    r"[,.!-]{0,3}\s+(?:(?:oh )?no,? wait|wait,? no|no,? sorry|i mean|or rather|no,? actually|scratch that|make that)\b"
    r"[,:.!]{0,3}\s+",
    "wait", "sorry", "i mean", "or rather", "actually", "scratch that", "make that",
)  # fmt: skip
"""What stands between a slip and the word that was meant."""
_TIMES = re.compile(
    r",?\s+(?:(?:last|this) (?:year|month|week|summer|winter|spring|autumn|fall|\w+day)|in (?:19|20)\d\d|since .+"
    r"|(?:a|an|\w+) (?:few |couple of )?(?:years?|months?|weeks?|days?) ago|for .+ (?:years?|months?|weeks?)|recently"
    r"|yesterday|today|now|at the moment|these days|nowadays|any ?more)$",
    re.IGNORECASE,
)
_IM = re.compile(r"^i('?)(m|ve)\b", re.IGNORECASE)
_TODO = re.compile(
    r"^(?:(?:can|could|would) you )?(?:please )?(?:remind me|remember|don't forget|do not forget|don't let me forget)"
    r" to (.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMEMBER = re.compile(
    r"^(?:(?:can|could|would) you )?(?:please )?(?:(?:remember|note|don't forget|do not forget|keep in mind)"
    r"(?: that\b|\s*:|(?= (?:i|i'm|my|we|our)\b))|(?:remember|note) (?=this\b))\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_PERSON = r"((?-i:[^\W\d_][\w'-]*(?:\s+[A-Z][\w'-]*){0,2}))"
_CAPITAL = r"((?-i:[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*){0,2}))"
_NAMED = (
    re.compile(rf"^my (?:first )?name(?:'s| is) {_PERSON}", re.IGNORECASE),
    re.compile(rf"^(?:you can |just )?call me {_PERSON}", re.IGNORECASE),
    re.compile(rf"^(?:people|friends|my friends|everyone|they) calls? me {_PERSON}", re.IGNORECASE),
    re.compile(rf"^(?:i'm|i am|this is) {_CAPITAL}(?:,? from .+)?[.!]*$", re.IGNORECASE),
)
_NO_NAMES = frozenset(
    """
    a an the not unknown ok okay fine good sorry sure back here happy sad tired great well too so very in on at
    from just really american british english german french italian spanish norwegian swedish danish dutch
    polish russian chinese japanese korean indian canadian australian irish scottish brazilian mexican christian
    muslim jewish hindu later tomorrow today when if maybe what bored wrong right married retired
    """.split()  # noqa: SIM905 - one word a line would be longer than the rules
)
_PATTERNS = (
    ("Lives in", re.compile(r"^(?:i|we)(?: now| currently)? live in (.+)", re.IGNORECASE)),
    ("Lives in", re.compile(r"^(?:i|we)(?:'ve| have)?(?: just| recently)? moved to (.+)", re.IGNORECASE)),
    ("Works as", re.compile(r"^i(?: now)? work as (.+)", re.IGNORECASE)),
    ("Works at", re.compile(r"^i(?: now)? work (?:at|for) (.+)", re.IGNORECASE)),
    ("From", re.compile(r"^(?:i'm|i am|i come)(?: originally)? from (.+)", re.IGNORECASE)),
    ("Age", re.compile(r"^(?:i'm|i am) (\d{1,3})(?: years old)?$", re.IGNORECASE)),
    ("Likes", re.compile(r"^i (?:really |also |just )*(?:like|love|enjoy|adore) (?!you\b)(.+)", re.IGNORECASE)),
    ("Dislikes", re.compile(
        r"^i (?:really |also )*(?:hate|dislike|don't like|do not like|can't stand) (?!you\b)(.+)", re.IGNORECASE)),
)  # fmt: skip
_CALLED = re.compile(
    r"^(?:my|we have an?|i have an?|i've got an?) ([\w' -]{1,40}?)(?:'s| is| are)? (?:called|named) (.+)", re.IGNORECASE
)
_NAME_OF = re.compile(r"^my ([\w -]{1,40}?)'s name(?:'s| is) (.+)", re.IGNORECASE)
_MY = re.compile(r"^my ([\w' -]{1,40}?) (?:is|are) (.+)", re.IGNORECASE)
_MY_SHORT = re.compile(r"^my ([\w -]{1,40}?)'s ((?:an?|the|\d)\b.*)", re.IGNORECASE)
_NO_KEY = re.compile(r"\b(?:and|or|but|who|that|which|said|says|thinks?|name)\b|^\S+(?: \S+){4}", re.IGNORECASE)
_OWN = re.compile(r"i|we|my|our|you|just|call|people|friends|everyone|they|this", re.IGNORECASE)
"""What every clause begins with in which somebody tells of themselves: most begin otherwise."""
_FIRST_PERSON = re.compile(r"^(?:i|we|i'm|i've|we're|we've|my|our) \w+", re.IGNORECASE)
_NO_FACT = re.compile(
    r"^(?:(?:i'm|i am) (?:not |so |very |just |really |quite |doing |feeling |a bit )*(?:fine|good|ok|okay|well|great"
    r"|sad|lonely|sick|tired|bored|sorry|sure|back|here|happy|glad|ready|done|confused|curious)\b"
    r"|i (?:think|guess|mean|see|know|do not|don't|can't|wonder|hope|wish|suppose|agree|understand"
    r"|said|told|asked|feel|(?:love|like|hate|miss) you|want you|need you|was wondering|would like you"
    r"|forgot|have a question)\b"
    r"|my (?:god|goodness|bad)\b)",
    re.IGNORECASE,
)

_QUESTION = re.compile(
    r"^(?:what|where|when|who|whose|which|why|how)(?:'?s\b|\s+(?:is|are|was|were|do|does|did|have|has|am|can|old|many|much"
    r"|long|often|kind|would|should|will))\b|^(?:do|did|does|can|could|are|is|was|were|have|has|am|will|would|should) "
    r"(?:you|i|we|my|he|she|it|they|there)\b"
    r"|^(?:please )?(?:tell|remind) me (?!(?:a|another|one more) joke|to )"
    r"|^(?:please )?(?:search|look up|find|list|show me)\b",
    re.IGNORECASE,
)


def facts(text: str) -> list[Fact]:
    """The facts in the statements of `text`, in order, once each."""
    text = plain(text)
    text = _CORRECTED.sub(", no wait, ", text)
    if todo := _TODO.match(_unfilled(text)):
        return [Fact("To do", short(_clean(todo[1]), FACT_CHARS_MAX))]
    asked = _REMEMBER.match(_unfilled(text))
    if asked:
        return _of_clauses(asked[1], wanted=True)
    found: list[Fact] = []
    for sentence in sentences(text):
        if not is_question(sentence):
            found.extend(_of_clauses(sentence, wanted=False))
    return list(dict.fromkeys(found))


def is_question(sentence: str) -> bool:
    """Whether a sentence asks something."""
    start = _unfilled(sentence)
    if not sentence.rstrip(" \"')").endswith("?") and not _QUESTION.match(start):
        return False
    return not _REMEMBER.match(start) and not _TODO.match(start)


def known_name(lines: Sequence[str]) -> str | None:
    """The user's name, from the lines of the block `human`; the last one counts."""
    return next((fact.value for fact in reversed(read(lines)) if fact.key in ("Name", "First name")), None)


def read(lines: Sequence[str]) -> list[Fact]:
    """The lines of the block `human` as facts; a line without a key has the key ""; unknown values are left out."""
    found: list[Fact] = []
    for line in lines:
        key, colon, value = line.partition(": ")
        fact = Fact(key.strip(), value.strip()) if colon and len(key) <= 40 else Fact("", line)
        if fact.value.lower().rstrip(".") not in ("unknown", "", "?") and "[..." not in fact.value:
            found.append(fact)
    return found


def recalled(question: str, lines: Sequence[str]) -> list[Fact]:
    """The facts in `lines` that answer `question`: those that share most of its words. None where too few match."""
    asked = stems(question)
    ranked = [(score, fact) for fact in read(lines) if (score := _overlap(asked, fact)) > 0]
    best = max((score for score, _ in ranked), default=0.0)
    return [fact for score, fact in ranked if score == best][-5:]


def about_user(question: str) -> bool:
    """Whether a question is about the user who asks."""
    return not {"i", "me", "my", "mine", "i'm", "we", "our", "am"}.isdisjoint(words(question))


def _overlap(asked: set[str], fact: Fact) -> float:
    key = stems(fact.key) if fact.key not in (SAID, "") else set()
    common = len(asked & (key | stems(fact.value)))
    if not asked or common * 2 <= len(asked):
        return 0.0
    return 2 * common / (len(asked) + max(1, len(key))) + 0.5 * bool(asked & key)


def _unfilled(text: str) -> str:
    while match := _FILLER.match(text):
        text = text[match.end() :].lstrip()
    return text


def _of_clauses(text: str, *, wanted: bool) -> list[Fact]:
    return [fact for clause in _CLAUSES.split(text) for fact in _of_clause(_clean(_unfilled(clause)), wanted=wanted)]


def _of_clause(clause: str, *, wanted: bool) -> Iterator[Fact]:
    """The facts of one clause; where somebody asked to remember it (`wanted`), any words will do."""
    clause = _IM.sub(r"I'\2", clause)
    slip, corrected, meant = clause.rpartition(", no wait, ")
    if corrected:
        yield from _meant(slip, meant, clause, wanted=wanted)
        return
    if not wanted and not _OWN.match(clause):
        return
    name = _name(clause)
    if name:
        yield Fact("Name", name)
        if origin := re.search(r",? from (.+)$", clause):
            yield Fact("From", short(origin[1], FACT_CHARS_MAX))
        return
    keyed = _keyed(clause)
    if keyed:
        yield keyed
    elif clause and (wanted or (_FIRST_PERSON.match(clause) and not _NO_FACT.match(clause))):
        yield Fact(SAID, short(clause, FACT_CHARS_MAX))


def _meant(slip: str, meant: str, clause: str, *, wanted: bool) -> Iterator[Fact]:
    """The facts of "it is A, no wait, B": what B says by itself, else B in the place of A, else the words as said."""
    whole = list(_of_clause(_clean(_unfilled(meant)), wanted=False))
    slips = list(_of_clause(slip, wanted=wanted))
    if whole:
        yield from whole
    elif len(slips) == 1 and slips[0].key != SAID and len(meant.split()) <= 4:
        yield Fact(slips[0].key, _upper(meant) if slips[0].key == "Name" else meant)
    elif slips:
        yield Fact(SAID, short(clause, FACT_CHARS_MAX))


def _keyed(clause: str) -> Fact | None:
    for key, pattern in _PATTERNS:
        if match := pattern.match(clause):
            value = match[1] if key in ("Likes", "Dislikes") else _TIMES.sub("", short(match[1], FACT_CHARS_MAX))
            return Fact(key, short(value, FACT_CHARS_MAX))
    match = _NAME_OF.match(clause) or _CALLED.match(clause)
    if match:
        owner = _upper(match[1].removesuffix("'s"))
        key = f"{owner}' names" if _be(owner) == "are" and owner[-1] == "s" else f"{owner}'s name"
        return Fact(key, short(match[2], FACT_CHARS_MAX))
    match = _MY.match(clause) or _MY_SHORT.match(clause)
    if match and not _NO_FACT.match(clause) and not _NO_KEY.search(match[1]):
        return Fact(_upper(match[1]), short(match[2], FACT_CHARS_MAX))
    return None


def _be(key: str) -> str:
    """What joins a key with its value: `are` where the key is of many, else `is`."""
    last = words(key)[-1:]
    many = last and (last[0] in ("children", "people") or re.search(r"[^siu]s$", last[0]))
    return "are" if many else "is"


def _name(clause: str) -> str | None:
    for pattern in _NAMED:
        match = pattern.match(clause)
        if match and match[1].split()[0].lower() not in _NO_NAMES:
            return _upper(match[1])
    return None


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _clean(text: str) -> str:
    return text.strip(' \t\r\n.!?,;:"')
