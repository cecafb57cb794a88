"""Facts about a user, with the to-do list: found in the user's words and in the lines of the block `human`. Pure, no
state.

A fact is one line: "Name: Chad", "To do: buy milk", or "The user said: I sail" for everything else. Used by
`answers.py` and `hits.py`.
"""

from collections.abc import Sequence

import msgspec

from everlog.actors.models.offline.english import any_case, sentences, short, stems, to_second_person, words

NAME = "Name"
TO_DO = "To do"
SAID = "The user said"
_CHARS_MAX = 200


class UserFact(msgspec.Struct, frozen=True):
    """One fact about the user. The key is "" for a line of the block without one."""

    key: str
    value: str

    @property
    def line(self) -> str:
        return f"{self.key}: {self.value}" if self.key else self.value

    @property
    def subject(self) -> str:
        """Subject that can have one value only, so that a new fact replaces the old one; empty for other facts."""
        if self.key in (NAME, "First name"):
            return NAME
        match = _SUBJECT.match(self.value) if self.key == SAID else None
        return (match[1] or match.lastgroup or "").lower() if match else ""

    @property
    def phrase(self) -> str:
        """Clause that states the fact to the user."""
        phrases = {SAID: "{}", "": '"{}"', "First name": "your name is {}", TO_DO: '"{}" is on your to-do list'}
        return phrases.get(self.key, f"your {self.key.lower()} is {{}}").format(to_second_person(self.value))


_SUBJECT = any_case(
    r"(my (?:favou?rite [\w' -]+?|[\w' -]*(?:birthday|number|address|job|name)) (?:is|are)\b"
    r"|my [\w' -]{1,40}? (?:is|are) (?:called|named)\b)"
    r"|(?:i|we) (?:\w+ )?(?:(?P<home>live in|moved to)|(?P<work>work (?:as|at|for)))\b|(?:i'm|i am) (?P<age>\d{1,3})\b"
)
_FILLER = any_case(
    r"(?:(?:hi|hello|hey)(?: there)?|well|so|oh|yes|no|ok|okay|also|please|thanks|thank you"
    r"|good (?:morning|evening|afternoon))(?:[,!.: ]+|$)"
)
_CLAUSES = any_case(r",?\s+(?:and|but)\s+(?=(?:i|i'm|i've|my|call|we)\b)|,\s+(?=(?:i|i'm|i've|my)\s)")
_REMEMBER = r"(?:(?:can|could) you )?(?:please )?(?:remember|note|don't forget|do not forget|keep in mind|remind me)"
_ORDERS = (
    (TO_DO, any_case(rf"{_REMEMBER} to (.+)")),
    (TO_DO, any_case(r"(?:please )?(?:add|put) (.+?) (?:to|on) (?:my|the) (?:to-?do )?list\b")),
    (SAID, any_case(rf"{_REMEMBER}(?: that\b|\s*:|(?= (?:i|i'm|my|we|our)\b))\s*(.+)")),
)
"""Requests to remember something, with the key under which it is stored."""
_PERSON = r"((?-i:[^\W\d_][\w'-]*(?:\s+[A-Z][\w'-]*){0,2}))"
_NAMED = (
    any_case(rf"(?:my (?:first )?name(?:'s| is)|(?:you can |just )?call me) {_PERSON}"),
    any_case(rf"(?:i'm|i am|this is) (?=(?-i:[A-Z])){_PERSON}$"),
)
_NO_NAMES = frozenset(
    """
    a an the not unknown ok okay fine good sorry sure back here later tomorrow today when if maybe what american british
    english german french italian spanish norwegian swedish danish dutch polish russian chinese japanese korean indian
    """.split()  # noqa: SIM905 - one word a line would be longer than the rules
)
_FIRST_PERSON = any_case(r"(?:i|we|i'm|i've|we're|we've|my|our) \w+")
_NO_FACT = any_case(
    r"(?:i'm|i am) (?:not |so |very )*(?:fine|good|ok|okay|well|sorry|sure|back|here|ready|done|tired)\b"
    r"|i (?:think|guess|mean|see|know|do not|don't|can't|wonder|hope|wish|agree|understand|said|told|asked|forgot"
    r"|feel|(?:love|like|hate|miss|need|want) you)\b"
)
_QUESTION = any_case(
    r"(?:what|where|when|who|whose|which|why|how)(?:'?s\b|\s+(?:is|are|was|were|do|does|did|have|has|am|can|old|many"
    r"|much|long|often|kind|would|should|will))\b|(?:do|did|does|can|could|are|is|was|were|have|has|am|will|would"
    r"|should) (?:you|i|we|my|he|she|it|they|there)\b|(?:tell|remind) me\b|(?:search|look up|find|list|show me)\b"
)


def facts_in(text: str) -> list[UserFact]:
    """Return the facts in the statements of `text`, in order, once each."""
    if ordered := _order_in(text):
        return [ordered] if ordered.key == TO_DO else _of_clauses(ordered.value, wanted=True)
    phrases = [sentence for sentence in sentences(text) if not is_question(sentence)]
    return list(dict.fromkeys(fact for sentence in phrases for fact in _of_clauses(sentence, wanted=False)))


def is_question(sentence: str) -> bool:
    """Return True if a sentence asks something."""
    asks = sentence.rstrip(" \"')").endswith("?") or _QUESTION.match(_unfilled(sentence))
    return bool(asks) and not _order_in(sentence)


def has_no_statement(text: str) -> bool:
    """Return True if `text` only asks or greets."""
    return all(is_question(sentence) or not _unfilled(sentence) for sentence in sentences(text))


def facts_of_lines(lines: Sequence[str]) -> list[UserFact]:
    """Return the lines of the block `human` as facts, without unknown values."""
    found: list[UserFact] = []
    for line in lines:
        key, colon, value = line.partition(": ")
        fact = UserFact(key.strip(), value.strip()) if colon and len(key) <= 40 else UserFact("", line)
        if fact.value.lower().rstrip(".") not in ("unknown", "", "?") and "[..." not in fact.value:
            found.append(fact)
    return found


def name_in(lines: Sequence[str]) -> str | None:
    """Return the user's name, from the lines of the block `human`; the last one counts."""
    return next((fact.value for fact in reversed(facts_of_lines(lines)) if fact.subject == NAME), None)


def replaced(fact: UserFact, lines: Sequence[str]) -> str | None:
    """Return the line that a fact replaces:
    the last one with the same subject, or for a name the line without one yet.
    """
    same = [line for line in lines for old in facts_of_lines([line]) if fact.subject and old.subject == fact.subject]
    unknown = [line for line in lines if fact.key == NAME and line.partition(":")[0].strip() in (NAME, "First name")]
    return next(reversed(same or unknown), None)


def recalled(question: str, known: Sequence[UserFact]) -> list[UserFact]:
    """Return those of the `known` facts that share most words with `question`; an empty list if too few words match."""
    asked = stems(question)
    ranked = [(score, fact) for fact in known if (score := _overlap(asked, fact)) > 0]
    best = max((score for score, _ in ranked), default=0.0)
    return [fact for score, fact in ranked if score == best][-5:]


def about_user(question: str) -> bool:
    """Return True if a question is about the user who asks it."""
    return not {"i", "me", "my", "mine", "i'm", "we", "our", "am"}.isdisjoint(words(question))


def join_facts(facts: Sequence[UserFact]) -> str:
    """Join facts into one clause for the user."""
    phrases = [fact.phrase for fact in facts]
    return ", and ".join([", ".join(phrases[:-1]), phrases[-1]] if phrases[1:] else phrases)


def _overlap(asked: set[str], fact: UserFact) -> float:
    key = stems(fact.subject if fact.key == SAID else fact.key)
    common = len(asked & (key | stems(fact.value)))
    if common * 2 <= len(asked):
        return 0.0
    return 2 * common / (len(asked) + max(1, len(key))) + 0.5 * bool(asked & key)


def _unfilled(text: str) -> str:
    """Return `text` without a greeting and the like at its start."""
    while match := _FILLER.match(text):
        text = text[match.end() :].lstrip()
    return text


def _order_in(text: str) -> UserFact | None:
    """Return what the user explicitly asks to be remembered; None if nothing."""
    start = _unfilled(text)
    for key, order in _ORDERS:
        if match := order.match(start):
            return UserFact(key, short(_clean(match[1]), _CHARS_MAX))
    return None


def _of_clauses(text: str, *, wanted: bool) -> list[UserFact]:
    """Return the facts in the clauses of a text.
    `wanted`: the user asked to remember the text, so any words count as a fact.
    """
    found: list[UserFact] = []
    for clause in (_clean(_unfilled(clause)) for clause in _CLAUSES.split(text)):
        named = next((match for pattern in _NAMED if (match := pattern.match(clause))), None)
        if named and named[1].split()[0].lower() not in _NO_NAMES:
            found.append(UserFact(NAME, named[1][:1].upper() + named[1][1:]))
        elif clause and (wanted or (_FIRST_PERSON.match(clause) and not _NO_FACT.match(clause))):
            found.append(UserFact(SAID, short(clause, _CHARS_MAX)))
    return found


def _clean(text: str) -> str:
    return text.strip(' \t\r\n.!?,;:"')
