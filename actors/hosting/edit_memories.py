"""Edit the archival memory of an open agent for a person: the agent's own rules, without a turn.

Used by `edit_commands`. The id of the event is that of the command, and the id of an inserted memory is that of its
event: a repeated command therefore finds its own result.
"""

from typing import Any

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import DeleteMemory, InsertMemories, InsertMemory, UpdateMemory
from everlog.actors.memory import archival_rules
from everlog.actors.memory.archival_rules import ArchivalChange
from everlog.actors.ports.effects import Hit
from everlog.events import (
    ArchivalDeleted,
    ArchivalInserted,
    ArchivalUpdated,
    BadInput,
    DuplicateId,
    FunctionError,
    event_of,
)


async def archive(agent: Agent, command: InsertMemory | InsertMemories | UpdateMemory | DeleteMemory) -> Any:
    """Carry out a command on archival memory; a repeated command changes nothing. Return the command's value.

    Raises BadInput; nothing is changed then.
    """
    try:
        # The lock covers the search and the commit: else two commands could insert the same text twice.
        async with agent.archiving:
            match command:
                case InsertMemory():
                    return await _insert_text(agent, command)
                case InsertMemories():
                    return await _insert_texts(agent, command)
                case UpdateMemory():
                    await _amend(agent, command)
                case DeleteMemory():
                    await _forget(agent, command)
    except FunctionError as error:
        raise BadInput(str(error)) from error
    return None


async def _insert_text(agent: Agent, command: InsertMemory) -> str:
    """Return the id of the memory that holds the text."""
    event = archival_rules.inserted_event(command.text, _check_list(command.tags))
    known = await agent.searcher(None, 0).kept(event.text)
    if known:
        return known
    await _commit(agent, event, command.id)
    return command.id


async def _insert_texts(agent: Agent, command: InsertMemories) -> list[str]:
    """Return the ids of the memories that hold the texts, in order."""
    events = [archival_rules.inserted_event(text, _check_list(command.tags)) for text in _check_list(command.texts)]
    by_text = {event.text: event for event in events}
    ids = dict(await agent.searcher(None, 0).memories_holding(list(by_text)))
    fresh = [event for text, event in by_text.items() if text not in ids]
    if fresh:
        try:
            left = await agent.commit(fresh, turn=agent.turn, step=0, ids=[command.id])
        except DuplicateId:  # a repeated command, and some of its memories were changed since
            left = await agent.known(command.id, ArchivalInserted)
            ids.update({record.text or "": record.event_id for record in left})
            if not by_text.keys() <= ids.keys():
                raise
        ids.update({record.text or "": record.event_id for record in left})
    return [ids[event.text] for event in events]


async def _amend(agent: Agent, command: UpdateMemory) -> None:
    tags = None if command.tags is None else _check_list(command.tags)
    before = await _memory(agent, command, ArchivalUpdated)
    event = None if before is None else archival_rules.updated_event(before, command.text, tags)
    if event is None:
        return
    try:
        await _commit(agent, event, command.id)
    except DuplicateId:  # a repeated command, and the tags that it kept were changed since
        known = [event_of(record) for record in await agent.known(command.id, ArchivalUpdated)]
        if tags is not None or not any(_says(one, event) for one in known):
            raise


async def _forget(agent: Agent, command: DeleteMemory) -> None:
    before = await _memory(agent, command, ArchivalDeleted)
    if before is not None:
        await _commit(agent, ArchivalDeleted(memory_id=before.ref), command.id)


async def _memory(agent: Agent, command: UpdateMemory | DeleteMemory, kind: type[ArchivalChange]) -> Hit | None:
    """Return the memory that the command names; None if it is deleted, but the command was carried out before."""
    found = await agent.searcher(None, 0).memory(archival_rules.id_of(command.memory_id))
    if found is None and not await agent.known(command.id, kind):
        raise archival_rules.unknown(command.memory_id)
    return found


async def _commit(agent: Agent, event: ArchivalChange, event_id: str) -> None:
    await agent.commit([event], turn=agent.turn, step=0, ids=[event_id])


def _says(known: object, event: ArchivalUpdated) -> bool:
    return isinstance(known, ArchivalUpdated) and (known.memory_id, known.text) == (event.memory_id, event.text)


def _check_list(words: object) -> list[str]:
    """Return a list of texts. Raises BadInput for any other value."""
    if isinstance(words, (list, tuple)) and all(isinstance(word, str) for word in words):
        return list(words)
    raise BadInput(f"Tags and texts are lists of text, not {str(words)[:80]!r}. Nothing was kept.")
