"""Derive facts from messages by a model: render the request, read the answer, and refuse what it does not bear out.

The request follows from the log alone, so the same messages give the same bytes: there is no clock in it. Each fact
names the messages that it rests on, and its object is in their words; else it is refused with a reason. An answer that
cannot be read leaves no memory. Used by `actors/deriving`.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import Any, Literal, Protocol, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from everlog.actors.derivation.conclusions import Conclusions, Evidence, Material
from everlog.actors.derivation.fact_ledger import ClaimedFact, FactLedger, KnownFact
from everlog.actors.derivation.fact_times import FactTime, time_of
from everlog.actors.formats import json_repair, repair_steps
from everlog.events import BadReply, Precision
from everlog.events.times import moment, since_epoch

INSTRUCTIONS = (
    "You read messages of a conversation and write down the lasting facts that they state: who somebody is, where "
    "somebody lives or works, whom and what somebody knows, has, likes or plans. Leave out questions, guesses, "
    "greetings and what the assistant says of itself. Answer with one JSON object and nothing else, with two lists. "
    "`facts`: each with `subject` (a name; of an unnamed speaker its role), `predicate` (lower case with underscores), "
    "`object` (in the words of the messages, with all names and numbers), `sentence` (one sentence that says it), "
    "`from` (the date since which it holds as YYYY, YYYY-MM or YYYY-MM-DD, counted from the message's time; empty if "
    "it is not said) and `messages` (the numbers of the messages that say it). `ended`: each with `fact` (the number "
    "of a known fact that is over), `when` (a date as in `from`), `reason` and `messages`. Do not repeat what is "
    "known."
)
DERIVE_MODEL_CHARS_MAX = 12_000
"""Most characters of messages in one request: about 3,000 tokens, which fits the window of a small model."""
DERIVE_MODEL_MESSAGES_MAX = 40
"""Most messages in one request: a model that reads more at once passes over some."""
KNOWN_MAX = 50
"""Most known facts in one request: the newest about who speaks and who is named."""
FACTS_MAX = 100
"""Most facts that are taken from one answer."""
WORDS_CHARS_MAX = 200
SENTENCE_CHARS_MAX = 300
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_SMALL_WORDS = frozenset(
    ("the", "a", "an", "of", "in", "on", "at", "to", "for", "and", "or", "with", "her", "his", "my")
)
_STEM_LETTERS = 4
"""Letters of a word that are compared: "painter" is borne out by "paints"."""
T = TypeVar("T")


class AnsweringModel(Protocol):
    """Model that answers requests of a derivation and records each answer."""

    name: str

    async def ask(
        self, purpose: Literal["facts"], messages: Sequence[tuple[str, str]], read: Callable[[str], T]
    ) -> tuple[T | None, str]: ...


class FactAnswer(msgspec.Struct, frozen=True):
    """Proposals of an answer that has the shape that was asked for."""

    facts: Sequence[Any]
    ended: Sequence[Any]


class _RefusedError(Exception):
    """A proposal cannot be kept; the message is the reason."""


class ModelFacts:
    """Deriver of facts by a model."""

    def __init__(self, model: AnsweringModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._model.name

    async def derive(self, material: Material) -> Conclusions:
        """Return the facts of one answer that the messages bear out. Raise ModelError if the model cannot be asked."""
        ledger = FactLedger(material, self.name)
        known = known_facts(material, ledger)
        answer, event_id = await self._model.ask("facts", request_messages(material, known), read_answer)
        if answer is None:
            return Conclusions(refused=["The answer of the model could not be used."], replies=[event_id])
        return Conclusions(events=ledger.events, refused=_conclude(answer, material, ledger, known), replies=[event_id])


def known_facts(material: Material, ledger: FactLedger) -> list[KnownFact]:
    """Return the newest facts about those who speak or are named in the messages, oldest first."""
    said = " ".join(message.text for message in material.evidence).casefold()
    speakers = {ledger.canonical(message.name or message.role) for message in material.evidence}
    named = [
        fact for fact in ledger.all_holding()
        if fact.subject.casefold() in said or ledger.canonical(fact.subject) in speakers
    ]  # fmt: skip
    return named[-KNOWN_MAX:]


def request_messages(material: Material, known: Sequence[KnownFact]) -> list[tuple[str, str]]:
    """Return the chat messages of the request. Messages and known facts are numbered from 1."""
    zone = ZoneInfo(material.zone)
    body = {
        "known": [
            {"number": number, "subject": fact.subject, "predicate": fact.predicate, "object": fact.object}
            for number, fact in enumerate(known, start=1)
        ],
        "messages": [
            {
                "number": number, "at": moment(one.at).astimezone(zone).strftime("%A %Y-%m-%d %H:%M"),
                "speaker": one.name or one.role, "text": one.text[:DERIVE_MODEL_CHARS_MAX],
            }
            for number, one in enumerate(material.evidence, start=1)
        ],
    }  # fmt: skip
    return [("system", INSTRUCTIONS), ("user", msgspec.json.encode(body).decode())]


def read_answer(text: str) -> FactAnswer:
    """Return the proposals of an answer. Raise BadReply for a text without a JSON object of the two lists."""
    begin = text.find("{")
    if begin < 0:
        raise BadReply("The answer has no JSON object.")
    try:
        found = json_repair.begun(text, begin)
    except json_repair.UnrepairableJson as error:
        raise BadReply(f"The answer is no JSON: {error}.") from error
    if repair_steps.is_lossy(found.repairs):
        raise BadReply(f"The answer could only be read by guessing: {repair_steps.format_steps(found.repairs)}.")
    facts, ended = found.value.get("facts"), found.value.get("ended", [])
    if not isinstance(facts, list) or not isinstance(ended, list):
        raise BadReply("The answer has no list `facts`, or `ended` is no list.")
    return FactAnswer(facts, ended)


def _conclude(answer: FactAnswer, material: Material, ledger: FactLedger, known: Sequence[KnownFact]) -> list[str]:
    """Add what can be kept to the ledger. Return the reasons for which the rest was refused."""
    refused: list[str] = []
    for proposed in answer.facts[:FACTS_MAX]:
        try:
            claim = _claim(proposed, material, ledger)
            before = len(ledger.events)
            ledger.claim(claim)
            if len(ledger.events) == before:
                raise _RefusedError(f"It repeats what is known: {claim.sentence}")
        except _RefusedError as error:
            refused.append(str(error))
    for proposed in answer.ended[:FACTS_MAX]:
        try:
            _end(proposed, material, ledger, known)
        except _RefusedError as error:
            refused.append(str(error))
    left = max(0, len(answer.facts) - FACTS_MAX) + max(0, len(answer.ended) - FACTS_MAX)
    return [*refused, *["The answer has more than can be taken."] * (1 if left else 0)]


def _claim(proposed: object, material: Material, ledger: FactLedger) -> ClaimedFact:
    """Return a proposed fact that the messages bear out. Raise _RefusedError."""
    fields = _fields(proposed)
    cited = _cited(fields, material)
    subject, found = _text(fields, "subject"), _text(fields, "object")
    sentence = _text(fields, "sentence", SENTENCE_CHARS_MAX)
    predicate = "_".join(re.findall(r"[^\W_]+", _text(fields, "predicate").lower()))
    words = " ".join(f"{message.name or message.role} {message.text}" for message in cited)
    if not predicate:
        raise _RefusedError("Its predicate has no word.")
    if sentence.casefold() in INSTRUCTIONS.casefold() or found.casefold() in predicate.replace("_", " "):
        raise _RefusedError(f"It repeats the request: {sentence}")
    if not _borne_out(found, words):
        raise _RefusedError(f"Its object {found!r} is not in the messages that it names.")
    if not _borne_out(subject, words) and ledger.canonical(subject) not in _speakers(material, ledger):
        raise _RefusedError(f"Its subject {subject!r} is not in the messages that it names.")
    return ClaimedFact(
        subject=subject, predicates=[predicate], object=found, sentence=sentence,
        sources=[message.seq for message in cited], said_at=cited[-1].at, time=_date(fields.get("from"), ledger.zone),
    )  # fmt: skip


def _end(proposed: object, material: Material, ledger: FactLedger, known: Sequence[KnownFact]) -> None:
    """End a known fact. Raise _RefusedError."""
    fields = _fields(proposed)
    cited = _cited(fields, material)
    number = fields.get("fact")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(known):
        raise _RefusedError(f"It ends the fact {number!r}, which the request did not have.")
    fact, reason = known[number - 1], fields.get("reason")
    claim = ClaimedFact(
        subject=fact.subject, predicates=[fact.predicate], object=fact.object, ended=True,
        sentence=reason if isinstance(reason, str) else "", sources=[message.seq for message in cited],
        said_at=cited[-1].at, time=_date(fields.get("when"), ledger.zone),
    )  # fmt: skip
    if not ledger.end(fact.reference, claim):
        raise _RefusedError(f"It ends the fact {number} a second time.")


def _fields(proposed: object) -> dict[str, Any]:
    if not isinstance(proposed, dict):
        raise _RefusedError("It is no JSON object.")
    return proposed


def _text(fields: dict[str, Any], name: str, chars_max: int = WORDS_CHARS_MAX) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _RefusedError(f"It has no `{name}`.")
    if len(value) > chars_max:
        raise _RefusedError(f"Its `{name}` is longer than {chars_max} characters.")
    return " ".join(value.split())


def _cited(fields: dict[str, Any], material: Material) -> list[Evidence]:
    """Return the messages that a proposal names, in order. Raise _RefusedError."""
    numbers = fields.get("messages")
    if not isinstance(numbers, list) or not numbers:
        raise _RefusedError("It names no message.")
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(material.evidence):
            raise _RefusedError(f"It names message {number!r}, which the request did not have.")
    cited = [material.evidence[number - 1] for number in sorted(set(numbers))]
    if all(message.role == "assistant" and not message.name for message in cited):
        # It repeats what the agent found or was told: noted again, it would count as said twice.
        raise _RefusedError("It rests only on what the assistant said.")
    return cited


def _speakers(material: Material, ledger: FactLedger) -> set[str]:
    return {ledger.canonical(message.name or message.role) for message in material.evidence}


def _borne_out(said: str, text: str) -> bool:
    """Return True if a text has the words of a name or an object; names and numbers exactly, others by their stem."""
    told = {word.casefold() for word in _WORD.findall(text)}
    stems = {word[:_STEM_LETTERS] for word in told}
    words = [word for word in _WORD.findall(said) if word.casefold() not in _SMALL_WORDS]
    exact = [word.casefold() for word in words if word[0].isupper() or word[0].isdigit()]
    others = [word.casefold()[:_STEM_LETTERS] for word in words if not (word[0].isupper() or word[0].isdigit())]
    return bool(words) and all(word in told for word in exact) and all(stem in stems for stem in others)


def _date(said: object, zone: tzinfo) -> FactTime | None:
    """Return the time of a date; None for anything that is none."""
    match = _DATE.fullmatch(said.strip()) if isinstance(said, str) else None
    if match is None:
        return None
    year, month, day = (int(number or 1) for number in match.groups())
    precision: Precision = "day" if match[3] else "month" if match[2] else "year"
    try:
        return time_of(since_epoch(datetime(year, month, day, tzinfo=zone)), precision, zone)
    except (ValueError, OverflowError):
        return None
