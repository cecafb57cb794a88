"""Create agents from the agents of a file: with its blocks, its prompt, its model and its messages.

Used by `everlog restore FILE.af` and by servers. An agent is created first and its messages are imported last, in one
commit, so a restore that was interrupted continues when it is repeated.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from everlog.actors.agent.conversation_import import ImportedMessage, ImportReport
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.agent_system import AgentSystem
from everlog.actors.ports.effects import ThreadRunner, in_place
from everlog.events import BadInput, UnknownAgent
from everlog.interfaces.common.bootstrap import open_view
from everlog.interfaces.imports.past_conversation import PastConversation
from everlog.store import typed


class RestoredAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Result of restoring one agent of a file."""

    name: str
    model: str
    existed: bool
    """True if the agent existed with the same messages, so that nothing was done."""
    imported: ImportReport | None
    """Report of the import; None if there was nothing to import."""


async def restore_past(
    system: AgentSystem,
    name: str,
    past: PastConversation,
    *,
    by: str = "",
    command: str = "everlog restore",
    aside: ThreadRunner = in_place,
) -> RestoredAgent:
    """Create the agent `name` as the file has it, and import its messages. Return what was done.

    `by`: id of the key with which a server was asked for it. `aside` runs what reads logs. Raises BadInput if there is
    an agent of that name which is not this one, and for unusable blocks or settings.
    """
    if await aside(_existing, system, name, past) == "whole":
        model = await aside(_model_of, system, name)
        return RestoredAgent(name=name, model=model, existed=True, imported=None)
    settings = msgspec.structs.replace(past.settings, blocks=past.blocks)
    agent = await system.agent(name, settings, command=command, by=by)
    for label in await aside(_other_blocks, system, name, past):  # persona and human, which a new agent has in any case
        await agent.remove_block(label)
    imported = await agent.import_messages(past.messages) if past.messages else None
    return RestoredAgent(name=name, model=agent.opened.model, existed=False, imported=imported)


def has_messages(system: AgentSystem | LocalSystem, name: str, said: Sequence[ImportedMessage]) -> bool:
    """Return True if the messages have refs and a message with each of them is in recall memory already."""
    refs = {getattr(message.event, "ref", "") for message in said} - {""}
    if not refs:
        return False
    try:
        with open_view(system, name, notify=False) as view:
            return refs <= {row["ref"] for row in view.rows("recall_memory")}
    except UnknownAgent:
        return False


def _other_blocks(system: AgentSystem, name: str, past: PastConversation) -> Sequence[str]:
    """Return the labels of the agent's blocks that are not in the file."""
    wanted = {block.label for block in past.blocks}
    with open_view(system, name, notify=False) as view:
        return [row["label"] for row in view.rows("core_memory") if row["label"] not in wanted]


def _model_of(system: AgentSystem, name: str) -> str:
    with open_view(system, name, notify=False) as view:
        return view.context().config.model


def _existing(system: AgentSystem, name: str, past: PastConversation) -> str:
    """Return `whole` if the agent of that name is the one of the file, `begun` if it has no messages yet, else `none`.

    Raises BadInput for another agent of that name.
    """
    try:
        with open_view(system, name, notify=False) as view:
            if view.rows("standing")[0]["deleted"]:
                return "none"
            own = {row["label"]: _shape_of(row) for row in view.rows("core_memory")}
            spoken = bool(view.rows("recall_memory"))
    except UnknownAgent:
        return "none"
    if past.messages and has_messages(system, name, past.messages):
        return "whole"
    wanted = {block.label: _shape_of(msgspec.structs.asdict(block)) for block in past.blocks}
    same = {label: shape for label, shape in own.items() if label in wanted} == wanted
    if spoken or not same:
        raise BadInput(
            f"There is an agent {name!r} already, and it is not the one of the file. --new-name gives this one another "
            f"name, or `everlog import {typed(name)} FILE` adds its messages. Nothing was restored."
        )
    return "begun" if past.messages or own.keys() != wanted.keys() else "whole"


def _shape_of(block: dict[str, Any]) -> tuple[Any, ...]:
    return block["value"], block["limit"], block["description"], block["read_only"]
