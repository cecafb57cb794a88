"""Derivations by a small real model: whatever it answers is recorded, and only checked memories are kept."""

import asyncio
from pathlib import Path

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.api import open_system
from everlog.actors.derivation.conclusions import SOURCE_KINDS
from everlog.actors.deriving import derivation_model
from everlog.events import (
    DerivationKind,
    DerivationReplied,
    DerivedEvent,
    MemoriesDerived,
    Record,
    UserMessage,
    event_of,
)
from everlog.events.times import moment
from tests.support.agent_world import SECOND, START
from tests.support.models.gguf_test_file import gemma, real

SAID = (
    "My sister Lea moved to Rome in May.",
    "I went sailing with Lea on Sunday.",
    "Lea bought a small boat.",
    "We want to sail to Sardinia in June.",
)


def derived(store: Path, derivation: DerivationKind) -> tuple[list[Record], int]:
    """Return the log after two derivations by the model, and its length after the first one."""

    async def main() -> tuple[list[Record], int]:
        async with open_system(store, runtime="local", timers=False) as system:
            agent = await system.agent("sam", Settings(window=8192))
            said = [
                ImportedMessage(UserMessage(text=text, imported=True), moment(START + number * SECOND))
                for number, text in enumerate(SAID)
            ]
            await agent.import_messages(said)
            await agent.memories.derive(derivation, model=str(gemma()))
            reader = system.store.reader("sam")
            head = reader.head("sam").seq
            await agent.memories.derive(derivation, model=str(gemma()))
            return list(reader.read("sam", 1, reader.head("sam").seq)), head

    return asyncio.run(main())


@real
@pytest.mark.long
@pytest.mark.models
@pytest.mark.xdist_group("gguf")
@pytest.mark.parametrize("derivation", ["facts", "reflection"])
def test_a_small_model_derives_and_nothing_unchecked_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, derivation: DerivationKind
) -> None:
    """Each answer is in the log; each memory rests on earlier ones; a second derivation finds nothing new."""
    monkeypatch.setattr(derivation_model, "FILE_ANSWER_TOKENS_MAX", 48)
    records, head = derived(tmp_path / "store", derivation)
    events = [(record.seq, event_of(record)) for record in records]
    replies = [event for _, event in events if isinstance(event, DerivationReplied)]
    assert 1 <= len(replies) <= 8
    assert all(reply.raw for reply in replies)
    cursors = [event for _, event in events if isinstance(event, MemoriesDerived)]
    assert [cursor.derivation for cursor in cursors] == [derivation]
    besides = MemoriesDerived | DerivationReplied
    noted = [(seq, one) for seq, one in events if isinstance(one, DerivedEvent) and not isinstance(one, besides)]
    assert len(noted) == cursors[0].noted
    kinds = {record.seq: record.type for record in records}
    for seq, memory in noted:
        assert memory.sources
        assert all(source < seq and kinds[source] in SOURCE_KINDS for source in memory.sources)
    assert len(records) == head
