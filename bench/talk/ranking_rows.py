"""Turn the questions about all kinds of talk into rows of features, from which weights are learned and judged.

Used by `train_ranking`. Features are measured by the code that searches use, on the same index, so that a figure of the
training is a figure of the search. A question gives the rows of its CANDIDATES best messages by fixed weights.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench.talk.recast_talk import recast_talks
from bench.talk.talk_kinds import LOCOMO, kinds
from bench.talk.talk_shapes import Conversation
from everlog.projections.recall_search import described, known_dates, without_names
from everlog.projections.search.features import MEANING_FEATURES, WORD_FEATURES, measure
from everlog.projections.search.ranking import CANDIDATES, FIXED_WEIGHTS, weighted
from everlog.projections.search.talk_index import TalkIndex, TalkView, Utterance
from everlog.store.embedding.embedder import Embedder, embedder_of, message_text

RECAST, NAMELESS = "recast", "nameless"
"""Kinds that are made of LoCoMo: chats with an assistant, and chats of two people whose names are unknown."""
FEATURES = (*WORD_FEATURES, *MEANING_FEATURES)
MEANING_DIGITS = 6


class AskedRows(msgspec.Struct, frozen=True):
    """One question: its candidates, with and without meanings."""

    kind: str
    fold: str
    """Name of the conversation, without what a recast one adds: nothing of it is learned from when it is judged."""
    category: str
    gold: int
    """Number of messages that hold the answer, candidates or not."""
    rows: Mapping[str, np.ndarray]
    """Features of the candidates, a row each, by set of weights: `meaning` and `words`."""
    right: Mapping[str, np.ndarray]
    """True for each candidate that holds the answer."""


def all_kinds(data: Path) -> Mapping[str, Sequence[Conversation]]:
    """Return the kinds of talk that are learned from, by name."""
    found = dict(kinds(data))
    if LOCOMO in found:
        found[RECAST] = recast_talks(found[LOCOMO], embedder_of())
        found[NAMELESS] = [_nameless(chat) for chat in found[LOCOMO]]
    return found


def rows_of(kind: str, chat: Conversation, embedder: Embedder) -> Iterator[AskedRows]:
    """Yield the rows of each question about a conversation."""
    index = TalkIndex()
    index.append(
        Utterance(number, one.time, one.role, one.name, one.text, one.ref)
        for number, one in enumerate(chat.messages, start=1)
    )
    talk = index.view()
    meanings = _meanings(talk, [one.question for one in chat.questions], embedder)
    refs = [message.ref for message in chat.messages]
    for one, near in zip(chat.questions, meanings, strict=True):
        right = np.isin(refs, list(one.evidence))
        query, dates = described(one.question, talk), known_dates(one.question, talk)
        rows, answers = {}, {}
        for name, known in (("meaning", near), ("words", None)):
            found = measure(talk, query, known, dates).features
            first = weighted(found, FIXED_WEIGHTS)
            best = np.sort(np.argsort(-first, kind="stable")[:CANDIDATES])
            columns = FEATURES if known is not None else WORD_FEATURES
            rows[name] = np.stack([found[column][best] for column in columns], axis=1)
            answers[name] = right[best]
        yield AskedRows(kind, _fold(kind, chat), one.category, int(right.sum()), rows, answers)


def _fold(kind: str, chat: Conversation) -> str:
    """Return what is left out together; the meetings have few questions each, and four parts of them suffice."""
    return f"meetings {sum(map(ord, chat.name)) % 4}" if kind == "meetings" else chat.name.split()[0]


def _meanings(talk: TalkView, questions: Sequence[str], embedder: Embedder) -> np.ndarray:
    """Return the cosine of the best passage of each message, a row for each question."""
    texts = []
    for place in range(len(talk)):
        role, name, _ = talk.message(place)
        texts += [message_text(role, name, passage) for passage in talk.passages(place)]
    vectors = embedder.embed(texts)
    asked = embedder.embed([without_names(question, talk.name_stems) for question in questions])
    found = np.maximum.reduceat(asked @ vectors.T, talk.first_unit[:-1], axis=1)
    return np.round(found.astype(np.float64), MEANING_DIGITS)


def _nameless(chat: Conversation) -> Conversation:
    messages = [msgspec.structs.replace(message, name="") for message in chat.messages]
    return msgspec.structs.replace(chat, messages=messages)
