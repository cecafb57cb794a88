"""Give all kinds of talk that a search is measured on: people's chats (LoCoMo), meetings, and chats with an assistant.

Used by `bench.retrieval` and by programs that tune the ranking. LoCoMo and the meetings are not part of the project: a
kind whose data is absent is left out. Chats with an assistant are scripted, one kind for each language.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench.support import locomo
from bench.talk.assistant_talk import CHATS, assistant_talk
from bench.talk.talk_shapes import Conversation, TalkMessage, TalkQuestion
from bench.talk.vocabulary import LANGUAGES
from everlog.actors.agent.conversation_import import ImportLine, conversation
from everlog.events.times import since_epoch

LOCOMO, MEETINGS, ASSISTANT = "locomo", "meetings", "assistant"


def kinds(data: Path) -> Mapping[str, Sequence[Conversation]]:
    """Return the conversations of each kind, by name: `locomo`, `meetings`, `assistant_en` and so on.

    `data` is the folder of `locomo/dev` and `meetings/dev`.
    """
    found = {name: public(data, name) for name in (LOCOMO, MEETINGS)}
    for language in LANGUAGES:
        found[f"{ASSISTANT}_{language}"] = [assistant_talk(language, number) for number in range(CHATS)]
    return {name: some for name, some in found.items() if some}


def public(data: Path, name: str) -> Sequence[Conversation]:
    """Return the conversations of LOCOMO or MEETINGS; none if the folder is absent."""
    paths = sorted((data / name / "dev").glob("*.questions.jsonl"))
    return [read(path.with_name(path.name.replace(".questions", ""))) for path in paths]


def read(path: Path) -> Conversation:
    """Return a conversation of JSON lines, with the questions of the file beside it that have evidence."""
    rows = path.read_bytes().splitlines()
    times = [since_epoch(one.said_at) for one in conversation(rows, path.name)]
    messages = [
        TalkMessage(row.role, row.name or "", row.content, time, str(row.ref))
        for row, time in zip((msgspec.json.decode(row, type=ImportLine) for row in rows), times, strict=True)
    ]
    refs = {message.ref for message in messages}
    questions = [
        TalkQuestion(one.question, one.category, one.evidence, str(one.answer))
        for one in locomo.questions(path, every=path.parent.parent.name != LOCOMO)
        if refs.issuperset(one.evidence)
    ]
    return Conversation(path.stem, messages, questions)
