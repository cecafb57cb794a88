"""Read the history that a client sends with each request: what was asked and answered, and the new question. Pure.

Clients of OpenAI's API resend the whole conversation each time. Front ends add to it, cut it and translate it, so texts
are brought into one form before they are compared. What a user wrote is compared exactly, and an answer without the
parts that front ends put into it.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from everlog.events import BadInput

DIGEST_BYTES = 16
PARAGRAPHS_MAX = 20
"""Paragraphs of a question, of which the last may be a program's own."""
_TEXT_PARTS = {"text", "input_text", "output_text", "refusal"}
_NOTE_ROLES = {"system", "developer"}
_TOOL_ROLES = {"tool", "function"}
_REASONING = re.compile(r"<details type=\"reasoning\".*?</details>|<think>.*?</think>", re.DOTALL)
_BLANKS = re.compile(r"\s+")

JsonMessage = Mapping[str, Any]


class ClientExchange(NamedTuple):
    """A question of a client's history, and the answer that the client has."""

    asked: str
    answered: str


class ClientHistory(NamedTuple):
    """One request of a client: what it remembers of the conversation, and what is new or repeated."""

    prior: Sequence[ClientExchange]
    """Exchanges before the question, oldest first."""
    question: str
    """Messages of the user after the last answer, joined by blank lines."""
    note: str
    """Instructions of the client's program: system and developer messages, joined by blank lines."""
    speaker: str
    """Name of the user; empty if the client gives none."""


def client_history(messages: Sequence[JsonMessage]) -> ClientHistory:
    """Return the history in a request's messages, oldest first, as objects with `role` and `content`.

    Results of the client's own tools, and greetings before the first question, are left out: they are no words of the
    user. Raises BadInput, with nothing sent, for a request whose last message is not a user's text.
    """
    prior: list[ClientExchange] = []
    notes: list[str] = []
    asked: list[str] = []
    answered: list[str] = []
    speaker = ""
    for number, message in enumerate(messages):
        role = _word(message.get("role"))
        if role in _NOTE_ROLES:
            notes.append(_text_of(message, number, last=True))
        elif role == "user":
            if answered:
                prior += _exchange(asked, answered)
                asked, answered = [], []
            asked.append(_text_of(message, number, last=number == len(messages) - 1))
            speaker = str(message.get("name") or "")
        elif role == "assistant":
            answered.append(_text_of(message, number, last=False))
        elif role not in _TOOL_ROLES:
            raise BadInput(f"messages[{number}] has the role {role[:40]!r}, which is none. Nothing was sent.")
    question = "\n\n".join(asked)
    if not messages or _word(messages[-1].get("role")) in _TOOL_ROLES or answered or not question.strip():
        raise BadInput(
            "The last message must be the user's, with words in it: an agent answers what a user says, and calls its "
            "own functions. Nothing was sent."
        )
    return ClientHistory(prior, question, "\n\n".join(filter(None, notes)), speaker)


def _word(value: object) -> str:
    """Return the value of a field that should be a word, as text if it is anything else."""
    return value if isinstance(value, str) else str(value)


def _exchange(asked: Sequence[str], answered: Sequence[str]) -> Sequence[ClientExchange]:
    """Return the exchange, or none for a greeting before the first question."""
    return [ClientExchange("\n\n".join(asked), "\n".join(filter(None, answered)))] if asked else []


def _text_of(message: JsonMessage, number: int, *, last: bool) -> str:
    """Return the text of a message. `last`: True refuses what is no text; an earlier picture was refused before."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    texts = []
    for part in parts:
        kind = _word(part.get("type")) if isinstance(part, Mapping) else type(part).__name__
        if kind in _TEXT_PARTS:
            texts.append(str(part.get("text") or part.get("refusal") or ""))
        elif last:
            raise BadInput(
                f"messages[{number}] has a part of the type {kind[:40]!r}: agents read text only, no pictures, "
                "sound or files. Nothing was sent."
            )
    return "\n".join(texts)


def question_digest(text: str) -> bytes:
    """Return the digest under which a user's text is compared: exactly, but for its form of Unicode and blank ends."""
    return _digest(unicodedata.normalize("NFC", text).strip())


def opening_digests(text: str) -> frozenset[bytes]:
    """Return the digests of a question without its last paragraphs, one for each number of paragraphs left out.

    Some programs put reminders behind the newest question, and resend the question without them later.
    """
    paragraphs = text.split("\n\n")[:PARAGRAPHS_MAX]
    return frozenset(question_digest("\n\n".join(paragraphs[:count])) for count in range(1, len(paragraphs)))


def answer_digest(text: str) -> bytes:
    """Return the digest under which an answer is compared: without reasoning that a front end put into it, and with
    each run of blanks as one.
    """
    return _digest(_BLANKS.sub(" ", unicodedata.normalize("NFC", _REASONING.sub("", text))).strip())


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:DIGEST_BYTES]
