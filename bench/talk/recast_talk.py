"""Recast chats between two people as chats with an assistant: real questions and statements, long replies around them.

One of the two becomes a user without a name; what the other says begins a long reply, filled with what people of other
chats say on the same subject. Such a chat is as hard as one with an assistant: each topic of the user's few words comes
again in long replies.

Used by `train_ranking`. Everything is drawn from a seed that is made of the names, so that training stays repeatable.
"""

import re
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from bench.talk.talk_shapes import Conversation, TalkMessage, TalkQuestion
from everlog.store.embedding.embedder import Embedder

NEAR = 7
"""Number of the nearest messages of other chats from which a reply is filled, for each of two messages."""
FILLED_MEAN, FILLED_SPREAD = 7, 4
"""Mean and deviation of the number of those that a reply contains."""
TOLD_BY_ASSISTANT = 4
"""One of so many questions about the assistant's own words is kept: people ask more about themselves."""

_PHOTO = re.compile(r"\[.*?\]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


def recast_talks(chats: Sequence[Conversation], embedder: Embedder) -> list[Conversation]:
    """Return two chats with an assistant for each chat: each of its speakers is the user of one."""
    texts = [message.text for chat in chats for message in chat.messages]
    owner = np.repeat(np.arange(len(chats)), [len(chat.messages) for chat in chats])
    vectors = embedder.embed(texts)
    found = []
    for number, chat in enumerate(chats):
        likeness = vectors[owner == number] @ vectors.T
        likeness[:, owner == number] = -1.0
        near = np.argsort(-likeness, axis=1, kind="stable")[:, :NEAR]
        names = sorted({message.name for message in chat.messages})
        found += [_recast(chat, name, names, [[texts[at] for at in row] for row in near.tolist()]) for name in names]
    return found


def _recast(chat: Conversation, user: str, names: Sequence[str], near: Sequence[Sequence[str]]) -> Conversation:
    chance = Random(f"{chat.name} {user}")
    others = [name for name in names if name != user]
    said = []
    for place, one in enumerate(chat.messages):
        if one.name == user:
            text = _without(one.text, others)
            said.append(TalkMessage("user", "", text, one.time, one.ref))
            continue
        before = chat.messages[place - 1] if place else one
        around = [*(near[place - 1] if place else ()), *near[place]]
        chance.shuffle(around)
        head = [_without(one.text, [user])]
        if chance.random() < 0.5:
            head.insert(0, f"It sounds like {_as_told(_SENTENCE_END.split(before.text)[0].lower())}")
        filled = around[: max(0, int(chance.gauss(FILLED_MEAN, FILLED_SPREAD)))]
        said.append(TalkMessage("assistant", "", "\n\n".join([*head, *_paragraphs(filled, chance)]), one.time, one.ref))
    return Conversation(f"{chat.name} {user}", said, list(_questions(chat, user)))


def _paragraphs(texts: Sequence[str], chance: Random) -> Iterator[str]:
    for number, start in enumerate(range(0, len(texts), 3), start=1):
        paragraph = " ".join(_as_told(_PHOTO.sub("", text)) for text in texts[start : start + 3])
        yield f"{number}. {paragraph}" if chance.random() < 0.5 else paragraph
    if chance.random() < 0.3:
        yield "Would you like me to help with anything else?"


def _questions(chat: Conversation, user: str) -> Iterator[TalkQuestion]:
    """Yield the questions about the user as the user asks them, and some about what the other one said."""
    by = {message.ref: message.name for message in chat.messages}
    for number, one in enumerate(chat.questions):
        speakers = {by[ref] for ref in one.evidence}
        if speakers == {user}:
            text = re.sub(rf"\b{user}\b", "I", re.sub(rf"\b{user}'s?\b", "my", one.question))
            yield TalkQuestion(text, one.category, one.evidence, one.answer)
        elif user not in speakers and number % TOLD_BY_ASSISTANT == 0:
            yield one


def _without(text: str, names: Sequence[str]) -> str:
    for name in names:
        text = re.sub(rf"\b{name}\b,?\s?", "", text)
    return text


def _as_told(text: str) -> str:
    """Return a statement about oneself as it is told to the one who made it."""
    return re.sub(r"\bI\b", "you", re.sub(r"\b[Mm]y\b", "your", text))
